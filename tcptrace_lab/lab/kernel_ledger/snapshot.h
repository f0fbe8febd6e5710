/* Copies the state of a TCP socket into a record. The kernel's type information (BTF) gives the offset of each field. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "tracer.h"

#define AF_INET6 10
#define SOCK_NOSPACE_BIT 2
#define TSQ_THROTTLED_BIT 0
#define FIN 1

extern void *bpf_rdonly_cast(const void *pointer, __u32 type) __ksym;

static __always_inline struct tcp_sock *as_tcp(const void *sk)
{
	return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
}

static __always_inline void record_addresses(struct record *r, const struct sock *sk)
{
	r->family = sk->__sk_common.skc_family;
	r->local_port = sk->__sk_common.skc_num;
	r->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	r->namespace_inode = sk->__sk_common.skc_net.net->ns.inum;
	__builtin_memset(r->local_address, 0, sizeof(r->local_address));
	__builtin_memset(r->remote_address, 0, sizeof(r->remote_address));
	if (r->family == AF_INET6) {
		bpf_probe_read_kernel(r->local_address, 16, &sk->__sk_common.skc_v6_rcv_saddr);
		bpf_probe_read_kernel(r->remote_address, 16, &sk->__sk_common.skc_v6_daddr);
	} else {
		*(__u32 *)r->local_address = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)r->remote_address = sk->__sk_common.skc_daddr;
	}
}

static __always_inline void record_unsent(struct record *r, const struct sock *sk)
{
	struct sk_buff *skb = sk->sk_write_queue.next;
	struct tcp_skb_cb *control;

	r->unsent_skb_bytes = 0;
	r->unsent_skb_seq = 0;
	r->unsent_marks = 0;
	if (sk->sk_write_queue.qlen == 0)
		return;
	skb = bpf_rdonly_cast(skb, bpf_core_type_id_kernel(struct sk_buff));
	control = bpf_rdonly_cast(skb->cb, bpf_core_type_id_kernel(struct tcp_skb_cb));
	r->unsent_skb_bytes = skb->len;
	r->unsent_skb_seq = control->seq;
	r->unsent_marks = (sk->sk_write_queue.qlen == 1) | (control->tcp_flags & FIN) << 1;
}

static __always_inline void record_sender(struct record *r, const struct tcp_sock *tp)
{
	const struct inet_connection_sock *icsk = &tp->inet_conn;
	const struct sock *sk = &icsk->icsk_inet.sk;
	struct socket *program_end = sk->sk_socket;

	r->write_seq = tp->write_seq;
	r->snd_nxt = tp->snd_nxt;
	r->snd_una = tp->snd_una;
	r->snd_wnd = tp->snd_wnd;
	r->snd_cwnd = tp->snd_cwnd;
	r->ssthresh = tp->snd_ssthresh;
	r->packets_out = tp->packets_out;
	r->sacked_out = tp->sacked_out;
	r->lost_out = tp->lost_out;
	r->retrans_out = tp->retrans_out;
	r->mss_cache = tp->mss_cache;
	r->snd_sml = tp->snd_sml;
	r->high_seq = tp->high_seq;
	r->rcv_nxt = tp->rcv_nxt;
	r->copied_seq = tp->copied_seq;
	r->rcv_wup = tp->rcv_wup;
	r->rcv_wnd = tp->rcv_wnd;
	r->srtt_us = tp->srtt_us >> 3;
	r->min_rtt_us = tp->rtt_min.s[0].v;
	r->rto_jiffies = icsk->icsk_rto;
	r->wmem_queued = sk->sk_wmem_queued;
	r->sndbuf = sk->sk_sndbuf;
	r->wmem_alloc = sk->sk_wmem_alloc.refs.counter;
	r->gso_segments = tp->gso_segs;
	r->state = sk->__sk_common.skc_state;
	r->ca_state = BPF_CORE_READ_BITFIELD(icsk, icsk_ca_state);
	r->pending = icsk->icsk_pending;
	r->nonagle = BPF_CORE_READ_BITFIELD(tp, nonagle);
	r->pacing_status = sk->sk_pacing_status;
	r->pacing_timer_state = tp->pacing_timer.state;
	r->pacing_timer_ns = tp->pacing_timer.node.expires;
	r->paced_until_ns = tp->tcp_wstamp_ns;
	r->pacing_rate = sk->sk_pacing_rate;
	r->chrono_type = tp->chrono_type;
	r->no_space = program_end ? program_end->flags >> SOCK_NOSPACE_BIT & 1 : 0;
	r->throttled = sk->sk_tsq_flags >> TSQ_THROTTLED_BIT & 1;
	r->ack_pending = icsk->icsk_ack.pending;
	r->retransmits = icsk->icsk_retransmits;
	record_unsent(r, sk);
}

/* Record the segment's sequence numbers, flags and payload size. `bytes` is its length from the TCP header at `header` to its end. */
static __always_inline void record_segment(struct record *r, const void *header, int bytes)
{
	struct tcphdr th = {};

	bpf_probe_read_kernel(&th, sizeof(th), header);
	r->detail_seq = bpf_ntohl(th.seq);
	r->detail_ack = bpf_ntohl(th.ack_seq);
	r->detail_bytes = bytes - th.doff * 4;
	r->tcp_flags = ((unsigned char *)&th)[13];
}

#endif
