"""gVisor's own records as events of the kernel's ledger: the same gates follow from them.

Netstack's probe tells the sender's state after each received segment; between two of these, what was written and what left changes it.
Three rules of netstack differ from Linux', and are expressed in the fields that Linux has for its own (`transport/tcp/snd.go`):

- Nagle's algorithm holds a partial segment behind *anything* in flight, as RFC 896 says: `snd_sml` is the end of all that was sent.
- A segment waits until the window has room for all of it; nothing is deferred to become larger: the first unsent segment is no longer
  than the MSS.
- `Outstanding` is compared with the congestion window: it stands for the packets in flight.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.kernel_ledger.events import READ, RECEIVED, RETRANSMIT, SCHEMA, SETTLED, STATE, TRANSMIT, WRITE, WRITTEN
from tcptrace_lab.lab.kernel_ledger.gates import CA_LOSS, CA_RECOVERY, IS_LAST, TCP_NAGLE_OFF
from tcptrace_lab.lab.kernel_ledger.sockets import CLOSED, ESTABLISHED, FIN_WAIT1, SEQ_SPACE, SYN_SENT, ahead
from tcptrace_lab.lab.networks.tcp_headers import FIN, SYN
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOCKET = 1
"""Address of the socket in the records; the kernel has none so low."""
TIMER_SHARE = 0.9
"""A retransmission after this share of the RTO was sent by the retransmission timer, an earlier one by a tail loss probe (a choice)."""
_KINDS = {"connect": STATE, "connected": STATE, "shutdown": STATE, "closed": STATE, "write": WRITE, "written": WRITTEN, "read": READ}
_STATES = {"connect": SYN_SENT, "connected": ESTABLISHED, "shutdown": FIN_WAIT1, "closed": CLOSED}
_IPV4_FAMILY = 2


@dataclass(slots=True)
class _Sender:
    """The sender between two events, by the names of the events' table; and what they do not have.

    Attributes:
        rto_ns: the retransmission timeout.
        touched_ns: when a segment was last received or sent.
        recovers_at: after a timeout, the byte whose ACK ends the recovery from it.
        written_to: the end of what calls that have returned have written.
    """

    state: int = SYN_SENT
    ca_state: int = 0
    write_seq: int = 0
    snd_nxt: int = 0
    snd_una: int = 0
    snd_wnd: int = 0
    snd_cwnd: int = 10
    ssthresh: int = 0x7FFFFFFF
    packets_out: int = 0
    sacked_out: int = 0
    mss_cache: int = 1_448
    snd_sml: int = 0
    unsent_skb_bytes: int = 0
    unsent_marks: int = 0
    nonagle: int = 0
    no_space: int = 0
    retransmits: int = 0
    rcv_nxt: int = 0
    srtt_us: int = 0
    min_rtt_us: int = 0
    rto_ns: int = NS_PER_S
    touched_ns: int = 0
    recovers_at: int | None = None
    written_to: int = 0


_OWN = frozenset({"rto_ns", "touched_ns", "recovers_at", "written_to"})


def events(lines: Iterable[str], local: str, remote: str, remote_port: int, *, nagle: bool) -> pl.DataFrame:
    """The table of events of one connection.

    Args:
        lines: the records, as JSON.
        local: address of the stack; its port is in the records.
        remote: address of the peer.
        remote_port: port of the peer.
        nagle: whether Nagle's algorithm was on.
    """
    records = sorted(map(json.loads, lines), key=lambda one: one["time_ns"])
    port = next((one["port"] for one in records if one["kind"] == "transmit"), 0)
    ends = {"socket": SOCKET, "local_address": local, "remote_address": remote, "local_port": port, "remote_port": remote_port}
    fixed: dict[str, Any] = dict.fromkeys(SCHEMA, 0) | ends | {"family": _IPV4_FAMILY}
    rows = [fixed | row for row in _rows(records, _Sender(nonagle=0 if nagle else TCP_NAGLE_OFF))]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _rows(records: list[dict[str, Any]], sender: _Sender) -> Iterator[dict[str, Any]]:
    for one in records:
        kind, at_ns = one["kind"], one["time_ns"]
        segment = {"detail_seq": one.get("seq", 0), "detail_ack": one.get("ack", 0), "detail_bytes": one.get("bytes", 0)}
        if kind == "settled":
            _settle(sender, one["state"])
            yield _row(SETTLED, at_ns, sender, {})
        elif kind == "received":
            sender.touched_ns = at_ns
            yield _row(RECEIVED, at_ns, sender, segment | {"tcp_flags": one.get("flags", 0)})
        elif kind == "transmit":
            is_again = _depart(sender, one)
            if is_again and at_ns - sender.touched_ns >= TIMER_SHARE * sender.rto_ns:
                sender.retransmits += 1
                sender.ca_state, sender.recovers_at = CA_LOSS, sender.snd_nxt
            sender.touched_ns = at_ns
            yield _row(TRANSMIT, at_ns, sender, segment | {"tcp_flags": one.get("flags", 0)})
            if is_again:
                yield _row(RETRANSMIT, at_ns, sender, segment)
        else:
            yield _row(_KINDS[kind], at_ns, sender, _of_program(sender, one) or segment)


def _of_program(sender: _Sender, one: dict[str, Any]) -> dict[str, int]:
    """What the program did; for a change of state, the new one."""
    if one["kind"] in _STATES:
        sender.state = _STATES[one["kind"]]
        return {"detail_bytes": sender.state}
    if one["kind"] == "written":
        sender.written_to = (sender.written_to + one.get("bytes", 0)) % SEQ_SPACE
        sender.write_seq = sender.written_to
        sender.no_space = int(one.get("no_space", False))
    return {}


def _settle(sender: _Sender, state: dict[str, Any]) -> None:
    if ahead(state["snd_una"], sender.snd_una) > 0:
        sender.retransmits = 0
    sender.snd_una, sender.snd_wnd, sender.rcv_nxt = state["snd_una"], state["snd_wnd"], state["rcv_nxt"]
    sender.snd_cwnd, sender.ssthresh = max(state["snd_cwnd"], 0), max(state["ssthresh"], 0)
    sender.packets_out = max(state["outstanding"], 0) + max(
        state["sacked_out"], 0
    )  # what is SACKed may be subtracted from the former twice
    sender.sacked_out = max(state["sacked_out"], 0)
    sender.mss_cache = state["mss"] or sender.mss_cache
    if sender.recovers_at is not None and ahead(sender.snd_una, sender.recovers_at) >= 0:
        sender.recovers_at = None
    sender.ca_state = CA_LOSS if sender.recovers_at is not None else CA_RECOVERY if state["is_recovery"] else 0
    sender.rto_ns = state["rto_ms"] * NS_PER_MS
    sender.srtt_us = state["srtt_us"]
    if state["rtt_us"]:
        sender.min_rtt_us = min(state["rtt_us"], sender.min_rtt_us or state["rtt_us"])


def _depart(sender: _Sender, segment: dict[str, Any]) -> bool:
    """Count what leaves; whether it was sent before. A probe of a closed window is a byte that is acknowledged already."""
    flags, size, seq = segment.get("flags", 0), segment.get("bytes", 0), segment.get("seq", 0)
    occupied = size + bool(flags & SYN) + bool(flags & FIN)
    if flags & SYN:
        sender.snd_una, sender.snd_nxt = seq, (seq + 1) % SEQ_SPACE
        sender.write_seq = sender.written_to = sender.snd_nxt
        return False
    end = (seq + occupied) % SEQ_SPACE
    if not occupied or ahead(end, sender.snd_una) <= 0:
        return False
    if ahead(end, sender.snd_nxt) <= 0:
        return bool(size)
    sender.snd_nxt = end
    sender.packets_out += 1
    if ahead(sender.snd_nxt, sender.write_seq) > 0:  # it leaves before the call that writes it returns
        sender.write_seq = sender.snd_nxt
    return False


def _row(kind: str, at_ns: int, sender: _Sender, detail: dict[str, int]) -> dict[str, Any]:
    unsent = max(ahead(sender.write_seq, sender.snd_nxt), 0)
    sender.snd_sml = sender.snd_nxt
    sender.unsent_skb_bytes = min(unsent, sender.mss_cache)
    sender.unsent_marks = IS_LAST if unsent <= sender.mss_cache else 0
    fields = {name: value for name, value in asdict(sender).items() if name not in _OWN}
    return {"kind": kind, "time_ns": at_ns, **fields, **detail}
