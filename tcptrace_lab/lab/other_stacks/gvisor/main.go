// Makes one TCP connection with gVisor's netstack over a tun device, and records netstack's own state at each event.
//
//	program FD RECORDS < script.json
//
// FD is an open tun device without packet information. The program writes one JSON line per event to RECORDS: the kind of the event, its
// time on the realtime clock, and the sender's state from netstack's probe. The script has addresses, socket options and steps. A step
// writes bytes, reads bytes, and sleeps. No step begins after `longest_s`. Two seconds later, the connection is aborted.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/nested"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

type step struct {
	Write   int     `json:"write"`
	Read    int     `json:"read"`
	SleepMS float64 `json:"sleep_ms"`
}

type script struct {
	Local             [4]byte `json:"local"`
	Remote            [4]byte `json:"remote"`
	Port              uint16  `json:"port"`
	MTU               uint32  `json:"mtu_bytes"`
	Nagle             bool    `json:"nagle"`
	CongestionControl string  `json:"congestion_control"`
	SendBuffer        int64   `json:"send_buffer_bytes"`
	ReceiveBuffer     int64   `json:"receive_buffer_bytes"`
	Times             int     `json:"times"`
	LongestS          float64 `json:"longest_s"`
	Steps             []step  `json:"steps"`
}

// One event. Fields that do not apply to its kind are left out.
type record struct {
	TimeNS  int64  `json:"time_ns"`
	Kind    string `json:"kind"`
	Seq     uint32 `json:"seq,omitempty"`
	Ack     uint32 `json:"ack,omitempty"`
	Bytes   int    `json:"bytes,omitempty"`
	Flags   uint8  `json:"flags,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	NoSpace bool   `json:"no_space,omitempty"`
	State   *state `json:"state,omitempty"`
}

// The state of the sender after a received segment was processed.
type state struct {
	SndUna      uint32 `json:"snd_una"`
	SndNxt      uint32 `json:"snd_nxt"`
	SndWnd      uint32 `json:"snd_wnd"`
	SndCwnd     int    `json:"snd_cwnd"`
	Ssthresh    int    `json:"ssthresh"`
	Outstanding int    `json:"outstanding"`
	SackedOut   int    `json:"sacked_out"`
	MSS         int    `json:"mss"`
	RcvNxt      uint32 `json:"rcv_nxt"`
	SRTTUS      int64  `json:"srtt_us"`
	RTTUS       int64  `json:"rtt_us"`
	RTOMS       int64  `json:"rto_ms"`
	IsRecovery  bool   `json:"is_recovery"`
	SndBufUsed  int    `json:"snd_buf_used"`
}

type log struct {
	mu  sync.Mutex
	out *bufio.Writer
}

func (l *log) add(r record) {
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME, &now)
	r.TimeNS = now.Nano()
	l.mu.Lock()
	defer l.mu.Unlock()
	line, err := json.Marshal(r)
	check(err)
	l.out.Write(append(line, '\n'))
}

func (l *log) probe(s *tcp.TCPEndpointState) {
	l.add(record{Kind: "settled", State: &state{
		SndUna: uint32(s.Sender.SndUna), SndNxt: uint32(s.Sender.SndNxt), SndWnd: uint32(s.Sender.SndWnd),
		SndCwnd: s.Sender.SndCwnd, Ssthresh: min(s.Sender.Ssthresh, math.MaxInt32),
		Outstanding: s.Sender.Outstanding, SackedOut: s.Sender.SackedOut, MSS: s.Sender.MaxPayloadSize,
		RcvNxt: uint32(s.Receiver.RcvNxt),
		SRTTUS: s.Sender.RTTState.SRTT.Microseconds(), RTTUS: s.Sender.RACKState.RTT.Microseconds(),
		RTOMS:      s.Sender.RTO.Milliseconds(),
		IsRecovery: s.Sender.FastRecovery.Active, SndBufUsed: s.SndBufState.SndBufUsed,
	}})
}

// A link that records each TCP segment.
type recorder struct {
	nested.Endpoint
	log *log
}

func (r *recorder) DeliverNetworkPacket(protocol tcpip.NetworkProtocolNumber, pkt *stack.PacketBuffer) {
	r.segment("received", pkt.ToView().AsSlice())
	r.Endpoint.DeliverNetworkPacket(protocol, pkt)
}

func (r *recorder) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, pkt := range pkts.AsSlice() {
		r.segment("transmit", pkt.ToView().AsSlice())
	}
	return r.Endpoint.WritePackets(pkts)
}

func (r *recorder) segment(kind string, packet []byte) {
	ip := header.IPv4(packet)
	if len(packet) < header.IPv4MinimumSize || ip.TransportProtocol() != header.TCPProtocolNumber {
		return
	}
	segment := header.TCP(ip.Payload())
	port := segment.SourcePort()
	if kind == "received" {
		port = segment.DestinationPort()
	}
	r.log.add(record{
		Kind: kind, Seq: segment.SequenceNumber(), Ack: segment.AckNumber(), Bytes: len(segment.Payload()),
		Flags: uint8(segment.Flags()), Port: port,
	})
}

func main() {
	fd, err := strconv.Atoi(os.Args[1])
	check(err)
	file, err := os.Create(os.Args[2])
	check(err)
	records := &log{out: bufio.NewWriterSize(file, 1<<20)}
	var s script
	check(json.NewDecoder(os.Stdin).Decode(&s))
	run(fd, &s, records)
	records.mu.Lock()
	check(records.out.Flush())
	check(file.Close())
}

func run(fd int, s *script, records *log) {
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: s.MTU})
	check(err)
	tap := &recorder{log: records}
	tap.Endpoint.Init(link, tap)
	net := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocolProbe(records.probe)},
	})
	control := tcpip.CongestionControlOption(s.CongestionControl)
	must(net.SetTransportProtocolOption(tcp.ProtocolNumber, &control))
	must(net.CreateNIC(1, tap))
	local := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(s.Local), PrefixLen: 32},
	}
	must(net.AddProtocolAddress(1, local, stack.AddressProperties{}))
	net.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: 1}})

	var queue waiter.Queue
	ep, fault := net.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	must(fault)
	ep.SocketOptions().SetDelayOption(s.Nagle)
	if s.SendBuffer > 0 {
		ep.SocketOptions().SetSendBufferSize(s.SendBuffer, true)
	}
	if s.ReceiveBuffer > 0 {
		ep.SocketOptions().SetReceiveBufferSize(s.ReceiveBuffer, true)
	}
	entry, ready := waiter.NewChannelEntry(waiter.WritableEvents | waiter.ReadableEvents | waiter.EventErr | waiter.EventHUp)
	queue.EventRegister(&entry)
	records.add(record{Kind: "connect"})
	fault = ep.Connect(tcpip.FullAddress{Addr: tcpip.AddrFrom4(s.Remote), Port: s.Port})
	if _, started := fault.(*tcpip.ErrConnectStarted); !started {
		must(fault)
	}
	<-ready
	must(ep.LastError())
	records.add(record{Kind: "connected"})
	end := time.Now().Add(time.Duration(s.LongestS * float64(time.Second)))
	timer := time.AfterFunc(time.Until(end)+2*time.Second, func() { ep.Abort() })
	defer timer.Stop()
	for range s.Times {
		for _, one := range s.Steps {
			if time.Now().After(end) {
				break
			}
			write(ep, one.Write, ready, records)
			read(ep, one.Read, ready, records)
			time.Sleep(time.Duration(one.SleepMS * float64(time.Millisecond)))
		}
	}
	records.add(record{Kind: "shutdown"})
	ep.Shutdown(tcpip.ShutdownWrite)
	// The peer closes the connection when it has read all bytes.
	var rest bytes.Buffer
	for {
		_, fault := ep.Read(&rest, tcpip.ReadOptions{})
		if _, waits := fault.(*tcpip.ErrWouldBlock); waits {
			<-ready
			continue
		}
		if fault != nil {
			break
		}
	}
	ep.Close()
	time.Sleep(100 * time.Millisecond)
	records.add(record{Kind: "closed"})
}

func write(ep tcpip.Endpoint, size int, ready <-chan struct{}, records *log) {
	for size > 0 {
		records.add(record{Kind: "write", Bytes: size})
		taken, fault := ep.Write(bytes.NewReader(make([]byte, size)), tcpip.WriteOptions{})
		_, waits := fault.(*tcpip.ErrWouldBlock)
		if fault != nil && !waits {
			return
		}
		size -= int(taken)
		records.add(record{Kind: "written", Bytes: int(taken), NoSpace: size > 0})
		if waits {
			<-ready
		}
	}
}

func read(ep tcpip.Endpoint, size int, ready <-chan struct{}, records *log) {
	for size > 0 {
		into := &limited{left: size}
		got, fault := ep.Read(into, tcpip.ReadOptions{})
		if _, waits := fault.(*tcpip.ErrWouldBlock); waits {
			<-ready
			continue
		}
		if fault != nil {
			return
		}
		size -= got.Count
		records.add(record{Kind: "read", Bytes: got.Count})
	}
}

// A writer that accepts at most `left` bytes.
type limited struct{ left int }

func (l *limited) Write(some []byte) (int, error) {
	taken := min(len(some), l.left)
	l.left -= taken
	if taken < len(some) {
		return taken, fmt.Errorf("no more is wanted")
	}
	return taken, nil
}

func must(fault tcpip.Error) {
	if fault != nil {
		check(fmt.Errorf("%s", fault.String()))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
