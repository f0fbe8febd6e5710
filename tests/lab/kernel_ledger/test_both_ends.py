"""The events of both ends explain each wait, and decide which causes a right verdict on the wait can name.

The events are written by hand.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab.lab.kernel_ledger.both_ends import Sides, between, trips_between
from tcptrace_lab.lab.kernel_ledger.causes import allowed_causes
from tcptrace_lab.lab.kernel_ledger.events import read_records
from tcptrace_lab.lab.kernel_ledger.ledger import kernel_ledger
from tcptrace_lab.lab.kernel_ledger.sockets import Endpoint, lives, pairs
from tests.support.kernel.events import CLIENT, MS, SERVER, client, event, sending, server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tcptrace_lab.lab.kernel_ledger.sockets import Event


def test_whose_turn_it_is_by_who_writes_next() -> None:
    """A request of 100 bytes arrives after 10 ms.

    The server needs 30 ms for its answer of 50 bytes. The answer arrives 10 ms later, and the client pauses for 20 ms.
    """
    here = client(event(0, "write"), event(50, "received", **sending(0, 100)), event(70, "write", **sending(0, 100, rcv_nxt=50)))
    there = server(
        event(10, "received", rcv_nxt=0),
        event(10, "settled", rcv_nxt=100),
        event(40, "write", rcv_nxt=100),
        event(40, "transmit", rcv_nxt=100, **sending(50, 0)),
        event(40, "written", rcv_nxt=100, **sending(0, 50)),
        event(60, "received", rcv_nxt=100, **sending(0, 50)),
    )
    sides = Sides(here, there)
    asked, answered = event(0, "written", **sending(0, 100)), event(50, "settled", **sending(0, 100, rcv_nxt=50))
    assert (sides.turn(asked, 5 * MS), sides.in_transit(asked, 5 * MS)) == ("peer-turn", True)
    assert (sides.turn(asked, 20 * MS), sides.in_transit(asked, 20 * MS)) == ("peer-turn", False)
    assert sides.turn(asked, 45 * MS) == "peer-in-transit"
    assert sides.turn(answered, 55 * MS) == "own-turn"
    assert sides.turn(answered, 75 * MS) == "sent-all"


def test_bytes_that_the_peers_tcp_holds_are_its_own() -> None:
    held = sending(5_000, 1_000)
    sides = Sides(client(event(0, "read")), server(event(0, "written", **held), event(9, "received", **held)))
    assert sides.turn(event(0, "read"), MS) == "peer-held"


def test_packets_later_than_the_fastest_were_in_a_queue() -> None:
    left = [event(at, "transmit", detail_seq=1_000 * at, detail_bytes=1_000) for at in range(3)]
    came = [event(at, "received", detail_seq=1_000 * number, detail_bytes=1_000) for number, at in enumerate((10, 14, 18))]
    sender, receiver = client(*left), server(*came)
    path = between(sender, receiver, trips_between(sender, receiver))
    assert path.least_transit_ns == 10 * MS
    assert path.queues == [(11 * MS, 18 * MS)]


def test_an_ack_that_leaves_late_was_held_for_as_long_as_the_sender_waits() -> None:
    left = client(event(0, "transmit", detail_seq=0, detail_bytes=100), event(5, "transmit", detail_seq=100, detail_bytes=100))
    came = server(
        event(10, "received", detail_seq=0, detail_bytes=100),
        event(15, "received", detail_seq=100, detail_bytes=100),
        event(50, "transmit", detail_ack=200),
    )
    assert between(left, came, trips_between(left, came)).acks_held == [(0, 60 * MS)]


def test_an_ack_that_leaves_soon_was_not_held() -> None:
    left = client(event(0, "transmit", detail_seq=0, detail_bytes=100))
    came = server(event(10, "received", detail_seq=0, detail_bytes=100), event(15, "transmit", detail_ack=100))
    assert between(left, came, trips_between(left, came)).acks_held == []


@pytest.mark.parametrize(
    ("closed", "last", "context", "exact", "others"),
    [
        ("pacing receiver-window", "receiver-window", "", "receiver-window", "pacing"),
        ("congestion-window", "congestion-window", "growing", "slow-start", "congestion-window"),
        ("congestion-window", "congestion-window", "", "congestion-window", "slow-start"),
        ("congestion-window", "congestion-window", "queue", "network", "congestion-window slow-start"),
        ("congestion-window", "congestion-window", "ack-held", "congestion-window", "slow-start delayed-ack"),
        ("nagle", "nagle", "", "nagle", "nagle-delayed-ack"),
        ("nagle", "nagle", "ack-held", "nagle-delayed-ack", "nagle"),
        ("nagle", "nagle", "queue", "nagle", "nagle-delayed-ack network"),
        ("receiver-window", "receiver-window", "queue", "receiver-window", "network"),
        ("pacing", "pacing", "queue", "pacing", ""),
        ("pacing", "pacing", "paced-as-line", "pacing", "network"),
        ("own-turn", "own-turn", "", "application", ""),
        ("own-turn", "own-turn", "unacked", "application", ""),
        ("own-turn", "own-turn", "unacked round-trip", "application", "network"),
        ("own-turn", "own-turn", "in-transit unacked", "application", "network"),
        ("peer-turn", "peer-turn", "", "peer", ""),
        ("peer-turn", "peer-turn", "unacked round-trip", "peer", "network"),
        ("peer-turn", "peer-turn", "in-transit unacked", "network", "peer"),
        ("peer-in-transit", "peer-in-transit", "", "network", "peer"),
        ("timeout", "timeout", "", "timeout", "loss-recovery"),
    ],
)
def test_gates_name_one_cause_exactly_and_allow_others(closed: str, last: str, context: str, exact: str, others: str) -> None:
    words = allowed_causes(closed.split(), last.split(), context.split(), MS)
    assert words is not None
    assert words.exact == {exact}
    assert words.accepted == {exact, *others.split()}


def test_network_is_wrong_by_the_strict_count_while_the_program_has_written_nothing() -> None:
    words = allowed_causes(["own-turn"], ["own-turn"], ["in-transit", "unacked"], MS)
    assert words is not None
    assert words.strict == {"application"}


def test_opening_closing_and_work_of_the_kernel_are_not_compared() -> None:
    assert all(allowed_causes([gate], [gate], [], MS) is None for gate in ("handshake", "closing", "open", "sent-all"))


def table(*each: tuple[int, Endpoint, Endpoint, Event]) -> pl.DataFrame:
    """Return a table of these socket events, with the columns of the table that is made from the tracer's records."""
    rows = [
        {"socket": socket, "local_address": local.address, "local_port": local.port, "remote_address": remote.address}
        | {"remote_port": remote.port}
        | {name: getattr(event, name) for name in event.__slots__}
        for socket, local, remote, event in each
    ]
    return pl.DataFrame(rows)


def test_a_socket_of_the_kernel_lives_once_for_each_connection() -> None:
    unknown = Endpoint("", 0)
    events = table(
        (7, Endpoint("192.0.2.2", 5_001), unknown, event(0, "state", state=7, detail_bytes=10)),
        (8, CLIENT, SERVER, event(1, "state", state=7, detail_bytes=2)),
        (9, unknown, CLIENT, event(2, "state", state=10, detail_bytes=3)),
        (9, SERVER, CLIENT, event(2, "state", state=3, detail_bytes=1)),
        (8, CLIENT, SERVER, event(3, "write")),
        (8, CLIENT, SERVER, event(4, "state", detail_bytes=7)),
        (8, CLIENT, SERVER, event(5, "state", state=7, detail_bytes=2)),
    )
    found = pairs(lives(events))
    first, second, third = ((life.local, life.is_client, len(life.events), other and other.local) for life, other in found)
    assert first == (CLIENT, True, 3, SERVER)
    assert second == (SERVER, False, 2, CLIENT)
    assert third[:3] == (CLIENT, True, 1)


def test_the_ledger_of_a_question_and_its_answer_adds_up() -> None:
    asked, answered = sending(0, 100, min_rtt_us=20_000), {"snd_una": 100, "snd_nxt": 100, "write_seq": 100, "rcv_nxt": 50}
    events = table(
        (8, CLIENT, SERVER, event(0, "state", state=7, detail_bytes=2)),
        (9, SERVER, CLIENT, event(0, "state", state=7, detail_bytes=3)),
        (8, CLIENT, SERVER, event(1, "write")),
        (8, CLIENT, SERVER, event(1, "transmit", detail_bytes=100, **sending(100, 0))),
        (8, CLIENT, SERVER, event(1, "written", **asked)),
        (9, SERVER, CLIENT, event(11, "received", detail_bytes=100)),
        (9, SERVER, CLIENT, event(11, "read", rcv_nxt=100)),
        (9, SERVER, CLIENT, event(41, "write", rcv_nxt=100)),
        (9, SERVER, CLIENT, event(41, "written", rcv_nxt=100, **sending(0, 50))),
        (8, CLIENT, SERVER, event(51, "received", **asked)),
        (8, CLIENT, SERVER, event(51, "read", **answered)),
        (8, CLIENT, SERVER, event(71, "write", **answered)),
    )
    rows = kernel_ledger(events).filter(pl.col("is_client"))
    names = ["start_ns", "end_ns", "gates", "context"]
    spent = [(start / MS, end / MS, gates[0], context[1:]) for start, end, gates, context in rows.select(names).iter_rows()]
    assert spent[1:] == [
        (1, 11, "peer-turn", ["in-transit", "unacked", "round-trip"]),
        (11, 21, "peer-turn", ["unacked", "round-trip"]),  # the ACK of the question is possibly in transit
        (21, 41, "peer-turn", ["unacked"]),
        (41, 51, "peer-in-transit", ["unacked"]),
        (51, 71, "own-turn", []),
    ]
    assert rows["least_transit_ns"].unique().to_list() == [10 * MS]


def record(time_ns: int, kind: int, write_seq: int, family: int, address: bytes) -> bytes:
    head = struct.pack("<5Q16s16s3Ii", time_ns, 7, time_ns + 5, 0, 0, address, address, 1, 2, 3, -4)
    numbers = struct.pack("<26I", write_seq, *range(25))
    return head + numbers + struct.pack("<3H14B4x", 80, 81, family, kind, *range(13))


def test_records_become_rows_in_order_of_time_on_the_clock_of_captures(tmp_path: Path) -> None:
    ipv4, ipv6 = bytes([192, 0, 2, 1]) + bytes(12), bytes.fromhex("20010db8000000000000000000000001")
    mapped = bytes(10) + b"\xff\xff" + bytes([192, 0, 2, 9])
    written: Sequence[bytes] = (record(30, 1, 11, 2, ipv4), record(10, 6, 22, 10, ipv6), record(20, 9, 33, 10, mapped))
    (tmp_path / "raw").write_bytes(b"".join(written))
    rows = read_records(tmp_path / "raw", 1_000)
    names = ["time_ns", "paced_until_ns", "kind", "write_seq", "detail_bytes", "local_address", "local_port", "remote_port", "unsent_marks"]
    assert rows.select(names).rows() == [
        (1_010, 1_015, "transmit", 22, -4, "2001:db8::1", 80, 81, 12),
        (1_020, 1_025, "state", 33, -4, "192.0.2.9", 80, 81, 12),
        (1_030, 1_035, "received", 11, -4, "192.0.2.1", 80, 81, 12),
    ]


@pytest.mark.parametrize(("arrives", "held"), [(False, "tail-probe"), (True, "peer-turn")])
def test_a_probe_of_the_tail_held_the_sender_only_if_the_tail_was_lost(*, arrives: bool, held: str) -> None:
    """A question of 100 bytes is retransmitted after 40 ms, and the server answers after 60 ms.

    If `arrives` is false, the first copy of the question was lost.
    """
    asked = sending(0, 100)
    again = event(41, "transmit", detail_bytes=100, **asked)
    first = [(9, SERVER, CLIENT, event(11, "received", detail_bytes=100)), (9, SERVER, CLIENT, event(11, "read", rcv_nxt=100))]
    events = table(
        (8, CLIENT, SERVER, event(0, "state", state=7, detail_bytes=2)),
        (9, SERVER, CLIENT, event(0, "state", state=7, detail_bytes=3)),
        (8, CLIENT, SERVER, event(1, "transmit", detail_bytes=100, **sending(100, 0))),
        (8, CLIENT, SERVER, event(1, "written", **asked)),
        *(first if arrives else []),
        (8, CLIENT, SERVER, again),
        (8, CLIENT, SERVER, event(41, "retransmit", detail_bytes=100, **asked)),
        (8, CLIENT, SERVER, event(41, "settled", **asked)),
        (9, SERVER, CLIENT, event(51, "received", detail_bytes=100, rcv_nxt=100 if arrives else 0)),
        (9, SERVER, CLIENT, event(60, "write", rcv_nxt=100)),
        (8, CLIENT, SERVER, event(70, "received", **asked)),
    )
    rows = kernel_ledger(events).filter(pl.col("is_client"), pl.col("start_ns") <= 25 * MS, pl.col("end_ns") > 25 * MS)
    assert rows["gates"].to_list() == [[held]]
