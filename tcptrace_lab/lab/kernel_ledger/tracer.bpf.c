// The tracer's BPF programs. They make one record at each event of a TCP socket in the chosen network namespaces.
//
// No tracepoint shows the state after an ACK was processed. So each processor remembers the socket that it used last. The state of this
// socket is recorded when the softirq ends, when the processor uses another socket, and when a send or receive call ends.
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "snapshot.h"

#define SIOCOUTQ 0x5411
#define IOCTL_NUMBER 16 /* x86-64 */
#define IPV6_HEADER_BYTES 40 /* the shortest IPv4 and TCP headers have 40 bytes together, too */
#define MAX_NAMESPACES 64
#define MAX_SOCKETS 16384
#define BUFFER_BYTES (32 << 20)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_NAMESPACES);
	__type(key, __u32);
	__type(value, __u8);
} namespaces SEC(".maps");

/* Key of a socket, from the header fields of its segments. tcp_probe sees only established connections. For other connections, the key
 * finds the socket when a segment arrives at the device. */
struct ends {
	__u32 inode;
	__u16 local_port, remote_port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_SOCKETS);
	__type(key, struct ends);
	__type(value, __u64);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, BUFFER_BYTES);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} touched SEC(".maps");

__u64 lost = 0;

static __always_inline bool is_ours(const struct tcp_sock *tp)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	__u8 state = sk->__sk_common.skc_state;
	__u32 inode;

	if (state == TCP_TIME_WAIT || state == TCP_NEW_SYN_RECV || sk->sk_protocol != IPPROTO_TCP)
		return false;
	inode = sk->__sk_common.skc_net.net->ns.inum;
	return bpf_map_lookup_elem(&namespaces, &inode) != 0;
}

static __always_inline struct record *begin(const struct tcp_sock *tp, __u8 kind)
{
	struct record *r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);

	if (!r) {
		__sync_fetch_and_add(&lost, 1);
		return NULL;
	}
	r->time_ns = bpf_ktime_get_ns();
	r->socket = (__u64)tp;
	r->kind = kind;
	r->tcp_flags = 0;
	r->detail_seq = r->detail_ack = 0;
	r->detail_bytes = 0;
	record_addresses(r, &tp->inet_conn.icsk_inet.sk);
	record_sender(r, tp);
	return r;
}

static __noinline void record_settled(__u64 address)
{
	const struct tcp_sock *tp = as_tcp((void *)address);
	struct record *r;

	if (!is_ours(tp)) /* the socket has been closed in the meantime */
		return;
	r = begin(tp, KIND_SETTLED);
	if (r)
		bpf_ringbuf_submit(r, 0);
}

/* Remember the socket that this processor uses now. Record the state of the socket that it used before. */
static __always_inline void touch(const void *sk)
{
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&touched, &zero);

	if (!last)
		return;
	if (*last && *last != (__u64)sk)
		record_settled(*last);
	*last = (__u64)sk;
}

static __always_inline void forget(const void *sk)
{
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&touched, &zero);

	if (last && *last == (__u64)sk)
		*last = 0;
}

static __always_inline int simple(const void *sk, __u8 kind, int detail)
{
	const struct tcp_sock *tp = as_tcp(sk);
	struct record *r;

	if (!is_ours(tp))
		return 0;
	r = begin(tp, kind);
	if (!r)
		return 0;
	r->detail_bytes = detail;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(received, struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_sock *tp = as_tcp(sk);
	struct record *r;

	if (!is_ours(tp))
		return 0;
	touch(sk);
	r = begin(tp, KIND_RECEIVED);
	if (!r)
		return 0;
	record_segment(r, skb->data, skb->len);
	bpf_ringbuf_submit(r, 0);
	return 0;
}

/* Record a segment to a socket that is no longer established, before the segment is processed. tcp_probe does not see such segments. */
SEC("tp_btf/netif_receive_skb")
int BPF_PROG(arriving, struct sk_buff *skb)
{
	__u32 inode = skb->dev->nd_net.net->ns.inum;
	struct ends ends = {.inode = inode};
	unsigned char first[IPV6_HEADER_BYTES];
	const struct tcp_sock *tp;
	unsigned int header_bytes;
	struct tcphdr th = {};
	struct record *r;
	__u64 *socket;
	int bytes;

	if (!bpf_map_lookup_elem(&namespaces, &inode) || bpf_probe_read_kernel(first, sizeof(first), skb->data))
		return 0;
	if (first[0] >> 4 == 4 && first[9] == IPPROTO_TCP) {
		header_bytes = (first[0] & 15) * 4;
		bytes = (first[2] << 8 | first[3]) - header_bytes;
	} else if (first[0] >> 4 == 6 && first[6] == IPPROTO_TCP) {
		header_bytes = IPV6_HEADER_BYTES;
		bytes = first[4] << 8 | first[5];
	} else {
		return 0;
	}
	bpf_probe_read_kernel(&th, sizeof(th), skb->data + header_bytes);
	ends.local_port = bpf_ntohs(th.dest);
	ends.remote_port = bpf_ntohs(th.source);
	socket = bpf_map_lookup_elem(&sockets, &ends);
	if (!socket)
		return 0;
	tp = as_tcp((void *)*socket);
	if (!is_ours(tp) || tp->inet_conn.icsk_inet.sk.__sk_common.skc_state == TCP_ESTABLISHED)
		return 0;
	touch(tp);
	r = begin(tp, KIND_RECEIVED);
	if (!r)
		return 0;
	record_segment(r, skb->data + header_bytes, bytes);
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ended, unsigned int vector)
{
	__u32 zero = 0;
	__u64 *last = bpf_map_lookup_elem(&touched, &zero);

	if (last && *last) {
		record_settled(*last);
		*last = 0;
	}
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(write, const struct sock *sk)
{
	return simple(sk, KIND_WRITE, 0);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(written, struct sock *sk, int result)
{
	forget(sk);
	return simple(sk, KIND_WRITTEN, result);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(read_, struct sock *sk, int result)
{
	forget(sk);
	return simple(sk, KIND_READ, result);
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(transmit, const struct sk_buff *skb)
{
	const struct tcp_sock *tp;
	const void *header;
	struct record *r;

	if (!skb->sk)
		return 0;
	tp = as_tcp(skb->sk);
	if (!is_ours(tp))
		return 0;
	touch(skb->sk);
	r = begin(tp, KIND_TRANSMIT);
	if (!r)
		return 0;
	header = skb->head + skb->transport_header;
	record_segment(r, header, (int)(skb->len - (header - (void *)skb->data)));
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(retransmit, const struct sock *sk, const struct sk_buff *skb)
{
	const struct tcp_sock *tp = as_tcp(sk);
	struct record *r;

	if (!is_ours(tp))
		return 0;
	touch(sk);
	r = begin(tp, KIND_RETRANSMIT);
	if (!r)
		return 0;
	r->detail_seq = *(__u32 *)skb->cb; /* struct tcp_skb_cb begins with seq */
	r->detail_bytes = skb->len;
	bpf_ringbuf_submit(r, 0);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(recovery, struct sock *sk, const __u8 state)
{
	return simple(sk, KIND_RECOVERY, state);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(state_set, const struct sock *sk, int before, int after)
{
	struct ends ends = {};
	__u64 address = (__u64)sk;

	ends.inode = sk->__sk_common.skc_net.net->ns.inum;
	ends.local_port = sk->__sk_common.skc_num;
	ends.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (after == TCP_ESTABLISHED && bpf_map_lookup_elem(&namespaces, &ends.inode))
		bpf_map_update_elem(&sockets, &ends, &address, BPF_ANY);
	if (after == TCP_CLOSE) {
		forget(sk);
		bpf_map_delete_elem(&sockets, &ends);
	}
	return simple(sk, KIND_STATE, after);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(asked_queue, struct pt_regs *registers, long number)
{
	struct task_struct *task;
	struct file **files;
	struct file *file = NULL;
	struct socket *program_end;
	unsigned int descriptor;

	if (number != IOCTL_NUMBER || PT_REGS_PARM2_CORE_SYSCALL(registers) != SIOCOUTQ)
		return 0;
	task = (struct task_struct *)bpf_get_current_task();
	descriptor = PT_REGS_PARM1_CORE_SYSCALL(registers);
	files = BPF_CORE_READ(task, files, fdt, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + descriptor);
	if (!file)
		return 0;
	program_end = BPF_CORE_READ(file, private_data);
	return simple(BPF_CORE_READ(program_end, sk), KIND_ASKED_QUEUE, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
