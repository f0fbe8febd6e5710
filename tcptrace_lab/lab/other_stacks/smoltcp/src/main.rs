//! Makes one TCP connection with smoltcp over a tun device, and records smoltcp's own state at each event.
//!
//! ```text
//! program FD RECORDS < script.json
//! ```
//!
//! FD is an open, non-blocking tun device without packet information. The program writes one JSON line per event to RECORDS: the kind of
//! the event, its time on the realtime clock, and after each change the sender's state. The script has addresses, socket options and steps.
//! A step writes bytes, reads bytes, and sleeps. No step begins after `longest_s`. Two seconds later, the connection is aborted.

mod device;
mod records;
mod steps;

use std::error::Error;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use serde::Deserialize;
use smoltcp::iface::{Config, Interface, PollIngressSingleResult, PollResult, SocketSet};
use smoltcp::phy::{Medium, TunTapInterface, wait};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};

use device::Recorder;
use steps::{Program, Step};

const LOCAL_PORT: u16 = 49_152;
/// How long an acknowledgment of the peer's FIN has to leave before the program ends.
const LINGER: Duration = Duration::from_millis(100);
/// The reserve after the last step before the connection is aborted.
const RESERVE: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Script {
    local: [u8; 4],
    remote: [u8; 4],
    port: u16,
    mtu_bytes: usize,
    nagle: bool,
    congestion_control: String,
    send_buffer_bytes: usize,
    receive_buffer_bytes: usize,
    ack_delay_ms: u64,
    timestamps: bool,
    times: usize,
    longest_s: f64,
    steps: Vec<Step>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let fd: RawFd = arguments.next().ok_or("no FD")?.parse()?;
    let path = arguments.next().ok_or("no RECORDS")?;
    let script: Script = serde_json::from_reader(std::io::stdin())?;
    records::begin()?;
    run(fd, script)?;
    records::save(&path)?;
    Ok(())
}

fn run(fd: RawFd, script: Script) -> Result<(), Box<dyn Error>> {
    let mut link = Link::new(fd, &script)?;
    let remote = Ipv4Address::from(script.remote);
    records::add("connect", &[]);
    let Link { interface, sockets, handle, .. } = &mut link;
    sockets.get_mut::<Socket>(*handle).connect(interface.context(), (remote, script.port), LOCAL_PORT)?;
    let begun = std::time::Instant::now();
    let last = begun + Duration::from_secs_f64(script.longest_s);
    while link.socket().state() == State::SynSent && begun.elapsed() < RESERVE {
        link.turn(None)?;
    }
    if !link.socket().may_send() {
        return Err("the connection was not opened".into());
    }
    records::add("connected", &[]);
    let mut program = Program::new(script.steps, script.times, last);
    let mut is_closed = None;
    while is_closed.is_none_or(|at: std::time::Instant| at.elapsed() < LINGER) {
        link.turn(Some(&mut program))?;
        if matches!(link.socket().state(), State::TimeWait | State::Closed) && is_closed.is_none() {
            is_closed = Some(std::time::Instant::now());
        }
        if is_closed.is_none() && std::time::Instant::now() > last + RESERVE {
            link.socket().abort();
        }
    }
    records::add("closed", &[]);
    Ok(())
}

/// The interface with its one socket.
struct Link {
    device: Recorder,
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: smoltcp::iface::SocketHandle,
    mtu: usize,
    fd: RawFd,
}

impl Link {
    fn new(fd: RawFd, script: &Script) -> Result<Self, Box<dyn Error>> {
        let tun = TunTapInterface::from_fd(fd, Medium::Ip, script.mtu_bytes)?;
        let fd = tun.as_raw_fd();
        let mut device = Recorder::new(tun);
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64; // of the initial sequence number
        let mut interface = Interface::new(config, &mut device, Instant::now());
        let local = IpCidr::new(IpAddress::from(Ipv4Address::from(script.local)), 32);
        interface.update_ip_addrs(|addresses| {
            let _ = addresses.push(local); // the empty list has room for one
        });
        interface.routes_mut().add_default_ipv4_route(Ipv4Address::from(script.remote))?;
        let buffer = |bytes: usize| SocketBuffer::new(vec![0; bytes]);
        let mut socket = Socket::new(buffer(script.receive_buffer_bytes), buffer(script.send_buffer_bytes));
        socket.set_nagle_enabled(script.nagle);
        let delay = smoltcp::time::Duration::from_millis(script.ack_delay_ms);
        socket.set_ack_delay((script.ack_delay_ms > 0).then_some(delay));
        socket.set_congestion_control(match script.congestion_control.as_str() {
            "reno" => CongestionControl::Reno,
            "cubic" => CongestionControl::Cubic,
            "none" => CongestionControl::None,
            other => return Err(format!("no congestion control {other}").into()),
        });
        if script.timestamps {
            socket.set_tsval_generator(Some(|| records::now_ns().wrapping_div(1_000_000) as u32));
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Ok(Self { device, interface, sockets, handle, mtu: script.mtu_bytes, fd })
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    /// Process all that is due: packets that have arrived, the program's next actions, and the stack's timers. If nothing was, wait.
    fn turn(&mut self, mut program: Option<&mut Program>) -> Result<(), Box<dyn Error>> {
        let mut has_received = false;
        while self.ingress() {
            has_received = true;
            self.egress();
        }
        let has_acted = program.as_mut().is_some_and(|program| program.act(self.socket()));
        let has_sent = self.egress();
        if has_received || has_sent {
            let mtu = self.mtu;
            return records::settled(self.socket(), mtu);
        }
        if has_acted {
            return Ok(());
        }
        let longest =
            program.and_then(|program| program.sleeps_for()).map_or(LINGER, |sleeps| sleeps.min(LINGER)).into();
        let delay = self.interface.poll_delay(Instant::now(), &self.sockets);
        wait(self.fd, Some(delay.map_or(longest, |delay| delay.min(longest))))?;
        Ok(())
    }

    /// Process one packet. Return whether there was one.
    fn ingress(&mut self) -> bool {
        let result = self.interface.poll_ingress_single(Instant::now(), &mut self.device, &mut self.sockets);
        result != PollIngressSingleResult::None
    }

    /// Send all that may be sent. Return whether something was sent.
    fn egress(&mut self) -> bool {
        let mut is_changed = false;
        while self.interface.poll_egress(Instant::now(), &mut self.device, &mut self.sockets) != PollResult::None {
            is_changed = true;
        }
        is_changed
    }
}
