"""What stacks and paths do at most and at least: the numbers that rules are written with."""

from __future__ import annotations

from tcptrace_lab.rules import of_direction

NS_PER_MS, RTT_NS = of_direction.NS_PER_MS, of_direction.RTT_NS
FIN, SYN, URG = 0x01, 0x02, 0x20

DELAYED_ACK_NS = 20 * NS_PER_MS
"""An ACK that lags this much behind the round trip was delayed: half of the shortest timer in use (Linux and FreeBSD, 40 ms)."""

LATEST_ACK_NS = 500 * NS_PER_MS
"""No ACK may be delayed longer (RFC 5681, 4.2)."""

LEAST_RTO_NS = 200 * NS_PER_MS
"""The least retransmission timeout of Linux (`TCP_RTO_MIN`)."""

LEAST_OVERRIDE_NS = 100 * NS_PER_MS
"""A sender that waits for more room in the window gives up no sooner (RFC 9293, 3.8.6.2.1: 0.1 to 1 s; BSD: `TCPTV_PERSMIN`, 5 s)."""

LONGEST_TIMEOUT_NS = 128_000 * NS_PER_MS
"""No stack waits longer for its retransmission timer: Linux 120 s (TCP_RTO_MAX), BSD 64 s (TCPTV_REXMTMAX), twice that with a slow tick."""

INITIAL_SEGMENTS = 10
"""The initial congestion window (RFC 6928)."""

TRAIN_PART = 8
"""A departure that an ACK lets go within this part of a round trip of the one before belongs to a train that the path has spaced; the waits
between flights are longer (a heuristic)."""

PROBE_ROUND_TRIPS, LATEST_PROBE, PROBE_TICKS_NS = 2, 2.25, 12 * NS_PER_MS
"""A tail-loss probe leaves so many smoothed round trips after the last segment (RFC 8985, 7.2); in Linux at least two jiffies later, and
its timer may run an eighth longer (`tcp_schedule_loss_probe`; kernel/time/timer.c: levels of eight)."""

CLUSTER_BYTES = 2048
"""A cluster of mbufs in 4.4BSD (`MCLBYTES`), to whole ones of which it rounds a larger MSS (`tcp_mss`)."""

LEAST_BUFFER_BYTES = 2048
"""No stack has a smaller send buffer by itself: 4.2BSD 2,048 bytes (`tcp_sendspace`). The smallest that a program can have in Linux
is 4,608 bytes (`SOCK_MIN_SNDBUF`), the kernel's own part of 832 for each segment included: one of 3,776 fills it, or several small ones,
and behind one of 2,241 it counts as full for a program that polls (`sk_stream_min_wspace`)."""
