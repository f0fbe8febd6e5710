"""Converts the records of a stack's program to events of the kernel's ledger. Then the gates are determined as for Linux.

A program records each sent and received segment, each action of its application, and the state of its sender after each change. Between two
reports, the state changes with each write and each sent segment. `gvisor_truth.py` and `smoltcp_truth.py` express the rules of each stack
in the fields of Linux.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.kernel_ledger.events import READ, RECEIVED, RETRANSMIT, SCHEMA, SETTLED, STATE, TRANSMIT, WRITE, WRITTEN
from tcptrace_lab.lab.kernel_ledger.gates import CA_LOSS, TCP_NAGLE_OFF
from tcptrace_lab.lab.kernel_ledger.sockets import CLOSED, ESTABLISHED, FIN_WAIT1, SEQ_SPACE, SYN_SENT, Event, ahead
from tcptrace_lab.lab.networks.tcp_headers import FIN, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SOCKET = 1
"""Socket address in the records. Sockets of the kernel never have such a low address."""
_KINDS = {"connect": STATE, "connected": STATE, "shutdown": STATE, "closed": STATE, "write": WRITE, "written": WRITTEN, "read": READ}
_STATES = {"connect": SYN_SENT, "connected": ESTABLISHED, "shutdown": FIN_WAIT1, "closed": CLOSED}
_IPV4_FAMILY = 2


@dataclass(slots=True)
class Sender(ABC):
    """State of the sender between two events, by the rules of one stack.

    Attributes:
        nagle: True if Nagle's algorithm is on.
        socket: state of the socket, as fields of an event.
        touched_ns: time at which a segment was last received or sent.
        recovers_at: after a timeout, the sequence number whose ACK ends the recovery; None at other times.
        written_to: end of the bytes from completed write calls.
    """

    nagle: bool
    socket: Event = field(init=False, default=Event(time_ns=0, kind="", state=SYN_SENT))
    touched_ns: int = field(init=False, default=0)
    recovers_at: int | None = field(init=False, default=None)
    written_to: int = field(init=False, default=0)

    def set(self, **fields: Any) -> None:
        """Change fields of the socket's state."""
        self.socket = replace(self.socket, **fields)

    def settle(self, state: dict[str, Any]) -> None:
        """Take over the state that the stack reports."""
        if self.recovers_at is not None and ahead(state["snd_una"], self.recovers_at) >= 0:
            self.recovers_at = None
        self.set(
            retransmits=0 if ahead(state["snd_una"], self.socket.snd_una) > 0 else self.socket.retransmits,
            snd_una=state["snd_una"],
            snd_wnd=state["snd_wnd"],
            rcv_nxt=state["rcv_nxt"],
            mss_cache=state["mss"] or self.socket.mss_cache,
        )

    def depart(self, segment: dict[str, Any], end: int) -> bool:
        """Count a sent segment with data or a FIN, which ends before sequence number `end`.

        Return whether its bytes were sent before.
        """
        before = self.socket
        if ahead(end, before.snd_una) <= 0:
            return False
        if ahead(end, before.snd_nxt) <= 0:
            return bool(segment.get("bytes", 0))
        leaves_before_its_call_returns = ahead(end, before.write_seq) > 0
        self.set(snd_nxt=end, packets_out=before.packets_out + 1, write_seq=end if leaves_before_its_call_returns else before.write_seq)
        return False

    @abstractmethod
    def receive(self, segment: dict[str, Any]) -> None:
        """Note a received segment, which the stack has not processed yet."""

    @abstractmethod
    def is_timeout(self, at_ns: int) -> bool:
        """Return whether the retransmission timer sends the retransmission at `at_ns`."""

    @abstractmethod
    def hear(self, message: str) -> None:
        """Note a message of the stack."""

    @abstractmethod
    def complete(self) -> None:
        """Set the fields that follow from the others."""


def events(lines: Iterable[str], local: str, remote: str, remote_port: int, sender: Sender) -> pl.DataFrame:
    """Return the table of events of one connection.

    Args:
        lines: the records, as JSON.
        local: address of the stack; its port is in the records.
        remote: address of the peer.
        remote_port: port of the peer.
        sender: a sender by the rules of the stack that made the records.
    """
    records = sorted(map(json.loads, lines), key=lambda one: one["time_ns"])
    port = next((one["port"] for one in records if one["kind"] == "transmit"), 0)
    ends = {"socket": SOCKET, "local_address": local, "remote_address": remote, "local_port": port, "remote_port": remote_port}
    fixed: dict[str, Any] = dict.fromkeys(SCHEMA, 0) | ends | {"family": _IPV4_FAMILY}
    rows = [fixed | row for row in _rows(records, sender)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _rows(records: list[dict[str, Any]], sender: Sender) -> Iterator[dict[str, Any]]:
    for one in records:
        kind, at_ns = one["kind"], one["time_ns"]
        segment = {"detail_seq": one.get("seq", 0), "detail_ack": one.get("ack", 0), "detail_bytes": one.get("bytes", 0)}
        if kind == "settled":
            sender.settle(one["state"])
            yield _row(SETTLED, at_ns, sender, {})
        elif kind == "received":
            sender.receive(one)
            sender.touched_ns = at_ns
            yield _row(RECEIVED, at_ns, sender, segment | {"tcp_flags": one.get("flags", 0)})
        elif kind == "transmit":
            is_again = _depart(sender, one)
            if is_again and sender.is_timeout(at_ns):
                sender.set(retransmits=sender.socket.retransmits + 1, ca_state=CA_LOSS)
                sender.recovers_at = sender.socket.snd_nxt
            sender.touched_ns = at_ns
            yield _row(TRANSMIT, at_ns, sender, segment | {"tcp_flags": one.get("flags", 0)})
            if is_again:
                yield _row(RETRANSMIT, at_ns, sender, segment)
        elif kind in _KINDS:
            yield _row(_KINDS[kind], at_ns, sender, _of_program(sender, one) or segment)
        else:
            sender.hear(kind)


def _of_program(sender: Sender, one: dict[str, Any]) -> dict[str, int]:
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


def _depart(sender: Sender, segment: dict[str, Any]) -> bool:
    """Count a sent segment. Return whether its bytes were sent before."""
    flags, seq = segment.get("flags", 0), segment.get("seq", 0)
    if flags & SYN:
        sender.written_to = (seq + 1) % SEQ_SPACE
        sender.set(snd_una=seq, snd_nxt=sender.written_to, write_seq=sender.written_to)
        return False
    occupied = segment.get("bytes", 0) + bool(flags & FIN)
    return bool(occupied) and sender.depart(segment, (seq + occupied) % SEQ_SPACE)


def _row(kind: str, at_ns: int, sender: Sender, detail: dict[str, int]) -> dict[str, Any]:
    sender.complete()
    nonagle = 0 if sender.nagle else TCP_NAGLE_OFF
    return asdict(sender.socket) | {"kind": kind, "time_ns": at_ns, "nonagle": nonagle} | detail
