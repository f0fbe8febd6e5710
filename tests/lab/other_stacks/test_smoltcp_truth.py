"""smoltcp's records are converted to events of the kernel's ledger, and the gates follow from these events.

The records are written by hand.
"""

from __future__ import annotations

from typing import Any

import pytest

from tcptrace_lab.lab.networks.tcp_headers import FIN
from tcptrace_lab.lab.other_stacks.smoltcp_truth import SmoltcpSender
from tests.support.kernel import stack_records
from tests.support.kernel.stack_records import END_MS, handshake, offset, program, reported, sent, wrote

MSS, WINDOW = 1_000, 10_000


def acked(at_ms: float, una: int, nxt: int, **state: Any) -> list[dict[str, Any]]:
    """Return two records: an ACK, and the sender's state after smoltcp has processed the ACK and sent its answer."""
    usual = {"snd_nxt": offset(nxt), "snd_wnd": WINDOW, "snd_cwnd": 10_000, "ssthresh": (1 << 64) - 1, "mss": MSS, "rcv_nxt": 1}
    return reported(at_ms, una, usual | {"duplicate_acks": 0} | state)


def opened(**state: Any) -> list[dict[str, Any]]:
    """Return the records of a handshake that takes 20 ms. After it, the sender has the values in `state`."""
    return handshake(acked(20, 1, 1, **state))


def gates_at(records: list[dict[str, Any]], at_ms: float, *, nagle: bool = False) -> list[str]:
    return stack_records.gates_at(records, at_ms, SmoltcpSender(nagle))


def test_the_handshake_and_a_program_that_has_nothing_to_send() -> None:
    records = [*opened(), *wrote(30, 500, (1, 500)), *acked(50, 501, 501), *wrote(90, 500, (501, 500))]
    assert gates_at(records, 10) == ["handshake"]
    assert gates_at(records, 70) == ["own-turn"]


@pytest.mark.parametrize(("nagle", "gate"), [(True, "nagle"), (False, "open")])
def test_with_nagle_a_partial_segment_waits_behind_anything_in_flight(nagle: bool, gate: str) -> None:  # noqa: FBT001
    records = [*opened(), *wrote(30, MSS, (1, MSS)), *wrote(32, 300), *acked(60, 1 + MSS, 1 + MSS + 300), sent(60.1, 1 + MSS, 300)]
    assert gates_at(records, 45, nagle=nagle) == [gate]


def test_after_the_close_nothing_waits_for_nagle() -> None:
    records = [*opened(), *wrote(30, MSS, (1, MSS)), *wrote(32, 300), program(40, "shutdown"), sent(40.1, 1 + MSS, 300, FIN)]
    assert gates_at(records, 35, nagle=True) == ["nagle"]
    assert gates_at(records, 45, nagle=True) == ["closing"]


@pytest.mark.parametrize(("nagle", "gates"), [(True, ["congestion-window"]), (False, ["open"])])
def test_the_congestion_window_is_in_bytes_and_only_nagle_waits_until_a_whole_segment_fits(nagle: bool, gates: list[str]) -> None:  # noqa: FBT001
    """The congestion window is 2,500 bytes, and 2,000 bytes are in flight. So only half a segment fits."""
    records = [*opened(snd_cwnd=2_500), *wrote(30, 9 * MSS, (1, MSS), (1 + MSS, MSS))]
    assert gates_at(records, 45, nagle=nagle) == gates
    assert gates_at([*records, sent(31, 1 + 2 * MSS, 500)], 45, nagle=nagle) == ["congestion-window"]


@pytest.mark.parametrize(("nagle", "gates"), [(True, ["receiver-window"]), (False, ["open"])])
def test_without_congestion_control_only_the_window_limits(nagle: bool, gates: list[str]) -> None:  # noqa: FBT001
    records = [*opened(snd_cwnd=None, ssthresh=None, snd_wnd=2_500), *wrote(30, 9 * MSS, (1, MSS), (1 + MSS, MSS))]
    assert gates_at(records, 45, nagle=nagle) == gates
    assert gates_at([*records, sent(31, 1 + 2 * MSS, 500)], 45, nagle=nagle) == ["receiver-window"]


def test_a_write_that_finds_no_space_waits_for_the_send_buffer_and_nagle_can_close_before_it() -> None:
    full = [*opened(), *wrote(30, 2 * MSS, (1, MSS), (1 + MSS, MSS)), program(31, "written", no_space=True)]
    assert gates_at(full, 45, nagle=True) == ["send-buffer"]
    with_rest = [*opened(), *wrote(30, MSS + 300, (1, MSS)), program(31, "written", no_space=True)]
    assert gates_at(with_rest, 45, nagle=True) == ["nagle", "send-buffer"]


def test_after_a_timeout_everything_is_sent_again_and_recovery_lasts_until_all_is_acknowledged() -> None:
    """After the timeout, the congestion window is one segment. Only segments that were sent after the timeout count as in flight."""
    records = [*opened(), *wrote(30, 5 * MSS, (1, MSS), (1 + MSS, MSS), (1 + 2 * MSS, MSS)), program(132, "timeout"), sent(132, 1, MSS)]
    records += [*acked(132.1, 1, 1 + MSS, snd_cwnd=MSS)[1:], *acked(152, 1 + MSS, 1 + MSS, snd_cwnd=3 * MSS)]
    records += [sent(152.1, 1 + MSS, MSS), sent(152.2, 1 + 2 * MSS, MSS), *acked(152.3, 1 + MSS, 1 + 3 * MSS, snd_cwnd=3 * MSS)[1:]]
    records += [*acked(172, 1 + 3 * MSS, 1 + 3 * MSS), sent(172.1, 1 + 3 * MSS, MSS), sent(172.2, 1 + 4 * MSS, MSS)]
    records += acked(192, 1 + 5 * MSS, 1 + 5 * MSS)
    assert gates_at(records, 100)[0] == "timeout"
    assert gates_at(records, 140) == ["loss-recovery", "congestion-window"]
    assert gates_at(records, 160) == ["loss-recovery"]
    assert gates_at(records, 180) == ["sent-all"]


def test_a_fast_retransmit_is_no_timeout_and_the_next_new_ack_ends_the_recovery() -> None:
    records = [*opened(), *wrote(30, 5 * MSS, *((1 + number * MSS, MSS) for number in range(5)))]
    records += [*acked(60, 1, 1 + 5 * MSS, duplicate_acks=2), program(61, "fast-retransmit"), sent(61, 1, MSS)]
    records += [*acked(62, 1, 1 + 5 * MSS, duplicate_acks=3), *acked(82, 1 + 2 * MSS, 1 + 5 * MSS), *wrote(300, 500, (1 + 5 * MSS, 500))]
    assert gates_at(records, 45) != ["timeout"]
    assert gates_at(records, 70) == ["loss-recovery"]
    assert gates_at(records, 90) == ["own-turn"]


def test_a_probe_of_a_closed_window_is_not_sent_data() -> None:
    """The window probe carries the next byte of the stream.

    When the window opens, a segment carries this byte again. That segment is not a retransmission.
    """
    records = [*opened(), *wrote(30, MSS, (1, MSS)), *acked(50, 1 + MSS, 1 + MSS, snd_wnd=0), *wrote(60, MSS), sent(200, 1 + MSS, 1)]
    records += [*acked(220, 1 + MSS, 1 + MSS, snd_wnd=0), *acked(260, 1 + MSS, 1 + 2 * MSS), sent(260.1, 1 + MSS, MSS)]
    assert gates_at(records, 150) == ["zero-window"]
    assert gates_at(records, 240) == ["zero-window"]
    assert gates_at([*records, *wrote(END_MS - 10, 1, (1 + 2 * MSS, 1))], 300) == ["own-turn"]
