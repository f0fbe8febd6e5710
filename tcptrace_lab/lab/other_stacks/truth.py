"""Converts gVisor's records to events of the kernel's ledger, so that the gates are determined as for Linux.

Netstack's probe reports the sender's state after each received segment. Between two reports, the application's writes and sent segments
change this state. Three rules of netstack (`transport/tcp/snd.go`) differ from those of Linux. The differences are expressed in the fields
of Linux:

- Nagle's algorithm delays a partial segment while *any* data is in flight, as RFC 896 says: `snd_sml` is the end of all sent data.
- A segment waits until the whole segment fits the window. Segments are never deferred. So the first unsent segment counts as at most one
  MSS.
- Netstack compares `Outstanding` with the congestion window, so `Outstanding` is used as the number of packets in flight.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.kernel_ledger.events import READ, RECEIVED, RETRANSMIT, SCHEMA, SETTLED, STATE, TRANSMIT, WRITE, WRITTEN
from tcptrace_lab.lab.kernel_ledger.gates import CA_LOSS, CA_RECOVERY, IS_LAST, TCP_NAGLE_OFF
from tcptrace_lab.lab.kernel_ledger.sockets import CLOSED, ESTABLISHED, FIN_WAIT1, SEQ_SPACE, SYN_SENT, Event, ahead
from tcptrace_lab.lab.networks.tcp_headers import FIN, SYN
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOCKET = 1
"""Socket address in the records. Sockets of the kernel never have such a low address."""
TIMER_SHARE = 0.9
"""A retransmission is a timeout if at least this share of the RTO has passed.

An earlier retransmission is a tail loss probe (a choice).
"""
_KINDS = {"connect": STATE, "connected": STATE, "shutdown": STATE, "closed": STATE, "write": WRITE, "written": WRITTEN, "read": READ}
_STATES = {"connect": SYN_SENT, "connected": ESTABLISHED, "shutdown": FIN_WAIT1, "closed": CLOSED}
_IPV4_FAMILY = 2


@dataclass(slots=True)
class _Sender:
    """State of the sender between two events.

    Attributes:
        socket: state of the socket, as fields of an event.
        rto_ns: the retransmission timeout.
        touched_ns: when a segment was last received or sent.
        recovers_at: after a timeout, the sequence number whose ACK ends the recovery.
        written_to: end of the bytes that completed write calls have written.
    """

    socket: Event
    rto_ns: int = NS_PER_S
    touched_ns: int = 0
    recovers_at: int | None = None
    written_to: int = 0

    def set(self, **fields: Any) -> None:
        """Change fields of the socket's state."""
        self.socket = replace(self.socket, **fields)


def events(lines: Iterable[str], local: str, remote: str, remote_port: int, *, nagle: bool) -> pl.DataFrame:
    """Return the table of events of one connection.

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
    sender = _Sender(Event(time_ns=0, kind="", state=SYN_SENT, nonagle=0 if nagle else TCP_NAGLE_OFF))
    rows = [fixed | row for row in _rows(records, sender)]
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
                sender.set(retransmits=sender.socket.retransmits + 1, ca_state=CA_LOSS)
                sender.recovers_at = sender.socket.snd_nxt
            sender.touched_ns = at_ns
            yield _row(TRANSMIT, at_ns, sender, segment | {"tcp_flags": one.get("flags", 0)})
            if is_again:
                yield _row(RETRANSMIT, at_ns, sender, segment)
        else:
            yield _row(_KINDS[kind], at_ns, sender, _of_program(sender, one) or segment)


def _of_program(sender: _Sender, one: dict[str, Any]) -> dict[str, int]:
    """Apply an action of the program to the sender. Return the details of the event.

    For a change of state, the detail is the new state.
    """
    if one["kind"] in _STATES:
        sender.set(state=_STATES[one["kind"]])
        return {"detail_bytes": sender.socket.state}
    if one["kind"] == "written":
        sender.written_to = (sender.written_to + one.get("bytes", 0)) % SEQ_SPACE
        sender.set(write_seq=sender.written_to, no_space=int(one.get("no_space", False)))
    return {}


def _settle(sender: _Sender, state: dict[str, Any]) -> None:
    before = sender.socket
    sacked_out = max(state["sacked_out"], 0)
    if sender.recovers_at is not None and ahead(state["snd_una"], sender.recovers_at) >= 0:
        sender.recovers_at = None
    sender.rto_ns = state["rto_ms"] * NS_PER_MS
    sender.set(
        retransmits=0 if ahead(state["snd_una"], before.snd_una) > 0 else before.retransmits,
        snd_una=state["snd_una"],
        snd_wnd=state["snd_wnd"],
        rcv_nxt=state["rcv_nxt"],
        snd_cwnd=max(state["snd_cwnd"], 0),
        ssthresh=max(state["ssthresh"], 0),
        packets_out=max(state["outstanding"], 0) + sacked_out,  # netstack may have subtracted SACKed packets from `outstanding` twice
        sacked_out=sacked_out,
        mss_cache=state["mss"] or before.mss_cache,
        ca_state=CA_LOSS if sender.recovers_at is not None else CA_RECOVERY if state["is_recovery"] else 0,
        srtt_us=state["srtt_us"],
        min_rtt_us=min(state["rtt_us"], before.min_rtt_us or state["rtt_us"]) if state["rtt_us"] else before.min_rtt_us,
    )


def _depart(sender: _Sender, segment: dict[str, Any]) -> bool:
    """Count a sent segment.

    Return whether the segment's bytes were sent before. A zero-window probe carries a byte that is already acknowledged.
    """
    flags, size, seq = segment.get("flags", 0), segment.get("bytes", 0), segment.get("seq", 0)
    occupied = size + bool(flags & SYN) + bool(flags & FIN)
    if flags & SYN:
        sender.written_to = (seq + 1) % SEQ_SPACE
        sender.set(snd_una=seq, snd_nxt=sender.written_to, write_seq=sender.written_to)
        return False
    before, end = sender.socket, (seq + occupied) % SEQ_SPACE
    if not occupied or ahead(end, before.snd_una) <= 0:
        return False
    if ahead(end, before.snd_nxt) <= 0:
        return bool(size)
    leaves_before_its_call_returns = ahead(end, before.write_seq) > 0
    sender.set(snd_nxt=end, packets_out=before.packets_out + 1, write_seq=end if leaves_before_its_call_returns else before.write_seq)
    return False


def _row(kind: str, at_ns: int, sender: _Sender, detail: dict[str, int]) -> dict[str, Any]:
    unsent_bytes, mss = max(sender.socket.unsent_bytes, 0), sender.socket.mss_cache
    sender.set(
        snd_sml=sender.socket.snd_nxt,
        unsent_skb_bytes=min(unsent_bytes, mss),
        unsent_marks=IS_LAST if unsent_bytes <= mss else 0,
    )
    return asdict(sender.socket) | {"kind": kind, "time_ns": at_ns} | detail
