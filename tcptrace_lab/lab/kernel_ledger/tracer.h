/* One record of the tracer: what happened to a socket, and the sender's state at that moment.
 *
 * events.py reads these fields in this order. The compiler adds no padding.
 */
#ifndef TRACER_H
#define TRACER_H

enum kind {
	KIND_RECEIVED = 1,	/* tcp_probe, netif_receive_skb: a segment is about to be processed */
	KIND_SETTLED = 2,	/* softirq_exit, or another socket is next: the segment has been processed */
	KIND_WRITE = 3,		/* tcp_sendmsg_locked: the application writes; again after each wait for memory */
	KIND_WRITTEN = 4,	/* sock_send_length: the send call ends */
	KIND_READ = 5,		/* sock_recv_length: the receive call ends */
	KIND_TRANSMIT = 6,	/* net_dev_start_xmit: a segment is passed to the device */
	KIND_RETRANSMIT = 7,	/* tcp_retransmit_skb */
	KIND_RECOVERY = 8,	/* tcp_cong_state_set; detail_bytes is the new state */
	KIND_STATE = 9,		/* inet_sock_set_state; detail_bytes is the new state */
	KIND_ASKED_QUEUE = 10,	/* ioctl(SIOCOUTQ): the application queries its unacknowledged bytes */
};

struct record {
	unsigned long long time_ns;		/* CLOCK_MONOTONIC */
	unsigned long long socket;		/* address of the kernel's socket */
	unsigned long long paced_until_ns;	/* tcp_wstamp_ns: pacing inside TCP allows no segment before this time */
	unsigned long long pacing_timer_ns;	/* expiry of the pacing timer */
	unsigned long long pacing_rate;		/* bytes per second */
	unsigned char local_address[16];
	unsigned char remote_address[16];
	unsigned int namespace_inode;
	unsigned int detail_seq, detail_ack;	/* sequence and ACK number of the segment */
	int detail_bytes;			/* payload of the segment, result of the call, or new state */
	unsigned int write_seq, snd_nxt, snd_una, snd_wnd, snd_cwnd, ssthresh;
	unsigned int packets_out, sacked_out, lost_out, retrans_out;
	unsigned int mss_cache, snd_sml, unsent_skb_bytes, unsent_skb_seq, high_seq;
	unsigned int rcv_nxt, copied_seq, rcv_wup, rcv_wnd;
	unsigned int srtt_us, min_rtt_us, rto_jiffies;
	int wmem_queued, sndbuf, wmem_alloc;
	unsigned int gso_segments;
	unsigned short local_port, remote_port;
	unsigned short family;
	unsigned char kind, tcp_flags;
	unsigned char state, ca_state, pending, nonagle;
	unsigned char pacing_status, pacing_timer_state, chrono_type, no_space;
	/* Bits of unsent_marks: 1 if the first unsent segment is the last in the queue, 2 if it has a FIN. */
	unsigned char throttled, ack_pending, retransmits, unsent_marks;
};

_Static_assert(sizeof(struct record) == 216, "events.py reads records of this size");

#endif
