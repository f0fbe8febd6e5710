"""The verdict: one sentence about a capture, true to its numbers, its direction, and its confidence."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import analyze, causes, schema, verdict
from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.rule import Case
from tcptrace_lab.causes.texts import rivals as rivals_in_words
from tcptrace_lab.findings.finding import Finding, Severity
from tests.support import packets
from tests.support.pages.report_frames import MS, Exchange, HandMade, analysis
from tests.support.places import CAPTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = {
    # The values are the cause that the capture was made to show (captures/README.md), and the program or host that has to change.
    "ethernet-nagle-on.pcapng": ("Nagle's algorithm waiting for delayed ACKs took 91%", "TCP_NODELAY on 192.0.2.1"),
    "ethernet-small-receive-window.pcapng": ("A full receive window on 192.0.2.2 took 87%", "a larger receive buffer on 192.0.2.2"),
    "ethernet-small-send-buffer.pcapng": ("Possibly a full send buffer on 192.0.2.1 took 71%", "a larger send buffer on 192.0.2.1"),
    "ethernet-slow-reader.pcapng": ("Zero receive window: the application on 192.0.2.2 was not reading for 69%", "earlier reading"),
    "ethernet-loss.pcapng": ("Most likely packet loss", "a path without packet loss"),
    "ethernet-syn-loss.pcapng": ("Opening the connection took 91%", "an answer to the first SYN"),
    "ethernet-application-limited.pcapng": (
        "Most likely the application on 192.0.2.1 (client) was not sending for 95%",
        "no TCP problem found",
    ),
    "ethernet-bottleneck.pcapng": ("Most likely the network", "a faster or shorter path, or fewer bytes or round trips, would help"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_capture_of_known_cause_is_reported_with_that_cause_and_who_can_fix_it(name: str) -> None:
    said = verdict.sentence(analyze(CAPTURES / name))
    assert all(words in said for words in KNOWN[name]), said


@pytest.mark.parametrize(
    ("name", "said", "remedy"),
    [
        (
            "atm9180-slow-reader.pcapng",
            "The application on 192.0.2.2 (server) was reading slowly",
            "let the receiving application read faster",
        ),
        (
            "ethernet-small-receive-window.pcapng",
            "The receive window (at most 10.1 kB) limited",
            "raise the receive buffer at the receiver",
        ),
    ],
)
def test_a_window_that_a_slow_reader_keeps_small_is_distinguished_from_a_small_buffer(name: str, said: str, remedy: str) -> None:
    """In the first capture, the reader sleeps 0.7 s before each read (captures/README.md).

    A larger buffer would not make the transfer faster.
    """
    (found,) = (one for one in analyze(CAPTURES / name).findings if one.id == "receiver-window-limited")
    assert found.title.startswith(said)
    assert found.remedy[0].startswith(remedy)


def test_a_slow_reader_is_one_fault_whether_its_window_is_closed_or_small() -> None:
    """Faster reading removes both findings, so it saves the sum of their costs."""
    analysis = analyze(CAPTURES / "atm9180-slow-reader.pcapng")
    reported = verdict.of(analysis)
    costs = [one.cost_ns or 0 for one in analysis.findings if one.id in {"zero-window", "receiver-window-limited"}]
    assert [one.id for one in reported.findings] == ["zero-window", "receiver-window-limited"]
    assert (len(costs), reported.cost_ns) == (2, sum(costs))
    assert reported.sentence.startswith("Small or zero receive window: the application on 192.0.2.2 was reading slowly for 74%")
    assert "; earlier reading saves up to" in reported.sentence


@pytest.mark.parametrize(
    ("woken_ms", "said"), [(0.05, "The receive window (at most 11.6 kB)"), (15, "The application on 10.0.0.2 (server) was reading slowly")]
)
def test_a_reader_that_empties_its_buffer_as_soon_as_it_is_woken_is_not_slow(tmp_path: Path, woken_ms: float, said: str) -> None:
    """Flights of eight segments fill a window of eight segments.

    The ACK of each flight offers a window of 1,000 bytes. The application reads the rest `woken_ms` later.
    """
    full, lines = 1_448, []
    for flight in range(15):
        first, at_ms = 1 + 8 * full * flight, 60 + (20.1 + woken_ms) * flight
        lines += [f"{at_ms + n / 100:.2f}ms C > S . {first + full * n}:{first + full * (n + 1)} ack 1" for n in range(8)]
        acked = f"S > C . ack {first + 8 * full} win"
        lines += [f"{at_ms + 20:.2f}ms {acked} 1000", f"{at_ms + 20 + woken_ms:.2f}ms {acked} {8 * full}"]
    text = f"""
        0ms  C > S S  0:0(0)        win 65535 <mss {full}, sackOK>
        20ms S > C S. 0:0(0) ack 1  win {8 * full} <mss {full}, sackOK>
        20ms C > S .         ack 1  win 65535
        """ + "\n".join(lines)
    (found,) = (one for one in analyze(packets.capture(tmp_path / "x.pcap", text)).findings if one.id == "receiver-window-limited")
    assert found.title.startswith(said)


def test_share_saving_and_life_are_those_of_the_ledger() -> None:
    """Nagle's algorithm takes 477 ms of 527 ms: eleven stalls of 44 ms, minus one RTT each."""
    of_nagle = verdict.of(analyze(CAPTURES / "ethernet-nagle-on.pcapng"))
    assert " took 91% of 527 ms; " in of_nagle.sentence
    assert of_nagle.sentence.endswith("saves up to 477 ms.")
    assert (of_nagle.conn, of_nagle.from_client) == (0, True)
    assert of_nagle.cost_ns == pytest.approx(11 * 43.4 * MS, rel=0.01)


def made(*, client: dict[str, int] | None = None, server: dict[str, int] | None = None, **of_second: int) -> HandMade:
    """Return an upload of 1,000 bytes with these times (ms) by cause and direction.

    `of_second` adds a second connection with these times of its client.
    """
    first = Exchange().send(0, "C", 1, 1000, ack=1).send(10, "S", 1, ack=1001)
    second = Exchange(conn=1, client="10.0.0.3", first_frame=3).send(0, "C", 1, 1000, ack=1).send(10, "S", 1, ack=1001)
    found = analysis(first, *([second] if of_second else []))
    rows = [_account(0, client or {}, server or {}), *([_account(1, of_second, {})] if of_second else [])]
    return replace(found, accounts=pl.LazyFrame(rows, schema=schema.ACCOUNTS.polars_schema()))


def _account(conn: int, client: dict[str, int], server: dict[str, int]) -> dict[str, int]:
    row: dict[str, Any] = {column.name: 0 if column.dtype == "Int64" else None for column in schema.ACCOUNTS} | {"conn": conn}
    row |= {f"client_{cause}_ns": ms * MS for cause, ms in client.items()}
    return row | {f"server_{cause}_ns": ms * MS for cause, ms in server.items()}


def fault(cause: str, cost_ms: int, **changes: Any) -> Finding:
    like = Finding(
        id=cause,
        severity=Severity.LOW,
        confidence=Confidence.PROVED,
        conn=0,
        from_client=True,
        cost_ns=cost_ms * MS,
        cost_share=None,
        title=cause,
        mechanism="",
        evidence_frames=(),
        limits="",
        remedy=(),
        predicted_gain=None,
        source="",
        causes=frozenset({cause}),
    )
    return replace(like, **changes)


def test_what_nobody_can_fix_is_reported_first_where_it_takes_more() -> None:
    found = replace(made(client={"network": 800, "receiver_window": 200}), findings=(fault("receiver-window", 200),))
    assert verdict.sentence(found) == (
        "Most likely the network (bytes in transit, or a queue draining at the rate of the path) took 80% of 1 s; 20% is fixable: "
        "a full receive window on 10.0.0.2; a larger receive buffer on 10.0.0.2 saves up to 200 ms."
    )
    possible = replace(found, findings=(fault("receiver-window", 200, confidence=Confidence.POSSIBLE),))
    assert "; possibly 20% is fixable: a full receive window on 10.0.0.2;" in verdict.sentence(possible)


def test_idle_time_is_no_rival_of_a_fault() -> None:
    """All shares are fractions of the active time, which excludes idle time."""
    slow_reader = [fault(cause, ms, cases=frozenset({Case.SLOW_READER})) for cause, ms in (("zero-window", 200), ("receiver-window", 300))]
    found = made(client={"zero_window": 200, "receiver_window": 300, "network": 400, "idle": 2000})
    told = verdict.of(replace(found, findings=tuple(slow_reader)))
    assert told.causes == {"zero-window", "receiver-window"}
    assert "for 56% of 900 ms active time (2 s idle)" in told.sentence


def test_repairs_and_what_follows_a_loss_are_one_story_as_sure_as_its_least_sure_part() -> None:
    times = {"loss_recovery": 300, "congestion_window": 300, "network": 400}
    findings = (fault("loss-recovery", 300), fault("congestion-window", 300, confidence=Confidence.CONSISTENT))
    assert verdict.sentence(replace(made(client=times), findings=findings)) == (
        "Most likely packet loss (loss recovery and a reduced congestion window) took 60% of 1 s; a path without packet loss saves up to "
        "600 ms."
    )


@pytest.mark.parametrize(
    ("network_ms", "unknown_ms", "said"),
    [(500, 200, "Most likely the network"), (450, 250, "Possibly the network"), (700, 0, "Most likely the network")],
)
def test_a_headline_is_less_sure_where_unknown_time_could_make_another_cause_the_largest(
    network_ms: int, unknown_ms: int, said: str
) -> None:
    """The application took 250 ms for certain. With the unknown time, the application possibly took as much as the network."""
    times = {"network": network_ms, "unknown": unknown_ms, "application": 250}
    assert verdict.sentence(made(client=times)).startswith(said)


@pytest.mark.parametrize(("application_ms", "said"), [(445, "Most likely the network"), (455, "Possibly the network")])
def test_a_headline_is_less_sure_if_the_next_cause_took_nearly_as_much(application_ms: int, said: str) -> None:
    """The active time is 1 s, so another cause is near if it took at most 50 ms less."""
    times = {"network": 500, "application": application_ms, "peer": 500 - application_ms}
    assert verdict.sentence(made(client=times)).startswith(said)


def test_unknown_time_that_could_change_the_order_makes_a_proved_fault_most_likely() -> None:
    times = {"timeout": 400, "network": 300, "unknown": 300}
    found = replace(made(client=times), findings=(fault("timeout", 400),))
    assert verdict.sentence(found).startswith("Most likely waiting for retransmission timeouts (RTO) took 40% of 1 s")


@pytest.mark.parametrize(("count", "said"), [(49, "; 48 more connections lose"), (50, "; at least 49 more connections lose")])
def test_the_headline_says_at_least_if_not_all_findings_of_the_capture_are_reported(count: int, said: str) -> None:
    """At most 50 findings are reported for a capture. If there are 50, further connections can lose time as well."""
    findings = tuple(fault("receiver-window", 400 if conn == 0 else 1, conn=conn) for conn in range(count))
    times = {"receiver_window": 400, "network": 600}
    assert said in verdict.sentence(replace(made(client=times), findings=findings))


def test_many_connections_with_one_fault_outweigh_one_with_another() -> None:
    """Two connections wait 300 + 300 ms for delayed ACKs. One connection has a small window for 400 ms."""
    times = {"delayed_ack": 300, "receiver_window": 400, "network": 300}
    findings = (fault("receiver-window", 400), fault("delayed-ack", 300), fault("delayed-ack", 299, conn=1))
    said = verdict.sentence(replace(made(client=times, delayed_ack=299, network=1), findings=findings))
    assert said.startswith("Waiting for delayed ACKs took 30% of 1 s in connection 0 (10.0.0.1 → 10.0.0.2);")
    assert said.endswith("saves up to 300 ms; 1 more connection loses 299 ms for the same reason.")


@pytest.mark.parametrize("order", [("timeout", "zero-window"), ("zero-window", "timeout")])
def test_faults_that_cost_the_same_are_both_reported_in_the_order_of_the_findings(order: tuple[str, str]) -> None:
    """Each of two findings costs 400 ms of 1 s. The verdict names the first finding and says that the second costs as much."""
    found = replace(made(client={"timeout": 400, "zero_window": 400, "network": 200}), findings=tuple(fault(cause, 400) for cause in order))
    reported = verdict.of(found)
    assert reported.findings[0].id == order[0]
    assert re.search(" (took|for) 40% of 1 s; ", reported.sentence)
    assert reported.sentence.endswith(f"saves up to 400 ms; another problem costs as much: {order[1]}.")


def test_the_verdict_is_on_the_direction_with_the_data_and_says_what_the_other_one_did_meanwhile() -> None:
    """The client's 1,000 bytes are all the data of the connection. The server sends no data."""
    found = verdict.of(made(client={"peer": 900, "network": 100}, server={"application": 890, "network": 110}))
    start = "Most likely waiting for messages from 10.0.0.2 took 90% of 1 s"
    assert found.sentence == f"{start}: the application on 10.0.0.2 (server) was not sending; no TCP problem found."
    assert (found.conn, found.from_client, found.why) == (0, True, "most data (1 kB of 1 kB)")
    late = verdict.sentence(made(client={"peer": 900, "network": 100}, server={"timeout": 890, "network": 110}))
    assert late.startswith(f"{start}, mostly because of waiting for retransmission timeouts (RTO); ")
    both = verdict.sentence(made(client={"peer": 900, "network": 100}, server={"application": 440, "network": 560}))
    assert both == f"{start}; no TCP problem found."


def test_a_silence_of_the_peers_application_has_its_name_in_headline_and_card() -> None:
    """The client waits 900 ms for the server, whose application is silent for 890 ms. One pause of the application lasts 600 ms."""
    silent = fault("application", 890, from_client=False, severity=Severity.INFO, confidence=Confidence.CONSISTENT, longest_ns=600 * MS)
    found = made(client={"peer": 900, "network": 100}, server={"application": 890, "network": 110})
    start = "Most likely the application on 10.0.0.2 (server) was not sending for 90% of 1 s"
    said = verdict.sentence(replace(found, findings=(silent,)))
    assert said == f"{start}, mostly in one pause of 600 ms; no TCP problem found."
    many = replace(silent, longest_ns=400 * MS)
    assert verdict.sentence(replace(found, findings=(many,))) == f"{start}; no TCP problem found."
    doubted = replace(silent, confidence=Confidence.POSSIBLE)
    assert verdict.sentence(replace(found, findings=(doubted,))).startswith("Most likely waiting for messages from 10.0.0.2 took 90%")


@pytest.mark.parametrize(
    ("pauses_ms", "titled", "said"),
    [
        ((900, 100, 100), "for 1.1 s in 3 pauses, the longest 900 ms", ", mostly in one pause of 900 ms; "),
        ((466, 467, 467), "for 1.4 s in 3 pauses, the longest 467 ms", " of 1.4 s; "),
        ((1400,), "for 1.4 s in 1 pause", ", in one pause of 1.4 s; "),
    ],
)
def test_a_share_says_whether_one_pause_or_many_made_it_up(pauses_ms: tuple[int, ...], titled: str, said: str, tmp_path: Path) -> None:
    """The capture is an upload of small messages between two ports of one address. The server answers each message after 2 ms."""
    at, seq = 2, 1
    lines = ["host C 127.0.0.1:40000", "host S 127.0.0.1:5001"]
    lines += ["0ms C > S S 0:0(0) win 65535 <mss 1460>", "2ms S > C S. 0:0(0) ack 1 win 65535 <mss 1460>", "2ms C > S . ack 1"]
    for pause_ms in (0, *pauses_ms):
        at += pause_ms
        lines += [f"{at}ms C > S P. {seq}:{seq + 500} ack 1", f"{at + 2}ms S > C . ack {seq + 500}"]
        seq += 500
    found = analyze(packets.capture(tmp_path / "pauses.pcap", "\n".join(lines)))
    (silent,) = (one for one in found.findings if one.id == "application-limited" and one.from_client)
    assert silent.title == f"The application on 127.0.0.1:40000 (client) was not sending {titled}"
    assert said in verdict.sentence(found)
    assert "the application on 127.0.0.1:40000 (client) was not sending for " in verdict.sentence(found)


def test_a_fault_of_the_silent_return_path_does_not_hide_that_of_the_upload() -> None:
    """One outage costs both directions 10 s, but only the client sends data."""
    of_upload = fault("timeout", 10_000)
    of_return = fault("receiver-window", 10_500, from_client=False)
    times = {"timeout": 10_000, "network": 1_000}
    found = verdict.of(replace(made(client=times, server={"receiver_window": 10_500}), findings=(of_return, of_upload)))
    assert (found.from_client, found.findings) == (True, (of_upload,))
    assert found.why == "fixable time (10 s) and most data (1 kB of 1 kB)"


def test_a_fault_in_little_data_is_reported_if_it_costs_ten_times_as_much() -> None:
    times = {"timeout": 1_000, "network": 1_000}
    for cost_ms, from_client in ((9_000, True), (11_000, False)):
        of_return = fault("receiver-window", cost_ms, from_client=False)
        found = verdict.of(replace(made(client=times, server={"receiver_window": cost_ms}), findings=(of_return, fault("timeout", 1_000))))
        assert found.from_client is from_client


def test_a_small_fault_in_little_data_follows_what_took_most_of_the_upload() -> None:
    """The client uploads 1,000 bytes. The server sends nothing, but in its direction, the receive window takes 100 ms of 1 s."""
    of_return = fault("receiver-window", 100, from_client=False)
    times = made(client={"network": 800, "peer": 200}, server={"application": 900, "receiver_window": 100})
    found = verdict.of(replace(times, findings=(of_return,)))
    assert (found.from_client, found.causes, found.findings) == (True, frozenset({"network"}), (of_return,))
    assert found.sentence == (
        "Most likely the network (bytes in transit, or a queue draining at the rate of the path) took 80% of 1 s; 10% of 1 s is fixable: "
        "a full receive window on 10.0.0.1; a larger receive buffer on 10.0.0.1 saves up to 100 ms."
    )


def printed(rtt_ms: float, late_ms: float) -> str:
    """Return an upload to a receiver with room for two segments.

    The receiver makes room again `late_ms` after two segments arrive. Once, the receiver's window is zero for 100 ms.
    """
    at, seq = 2 * rtt_ms, 1
    lines = [
        "0.000000 C > S  S   0:0(0)        win 65535 <mss 1460>",
        f"{rtt_ms / 1e3:.6f} S > C  S.  0:0(0) ack 1  win 2920 <mss 1460>",
        f"{rtt_ms / 1e3 + 1e-6:.6f} C > S  .          ack 1  win 65535",
    ]
    for n in range(60):
        for _ in range(2):
            lines.append(f"{at / 1e3:.6f} C > S  .  {seq}:{seq + 1460} ack 1")
            at, seq = at + 0.01, seq + 1460
        at += rtt_ms + late_ms
        if n == 30:
            lines.append(f"{at / 1e3:.6f} S > C  .  ack {seq} win 0")
            at += 100
        lines.append(f"{at / 1e3:.6f} S > C  .  ack {seq} win 2920")
        at += 0.02
    return "\n".join(lines)


@pytest.mark.parametrize(("rtt_ms", "late_ms", "is_slow"), [(0.5, 7.0, True), (7.0, 0.5, False)])
def test_a_small_window_is_the_readers_if_the_path_needs_less_and_the_window_was_zero_too(
    rtt_ms: float, late_ms: float, tmp_path: Path, *, is_slow: bool
) -> None:
    """In both cases, a round of two segments takes 7.5 ms.

    A larger receive buffer helps only in the second case, where the path is the limit.
    """
    found = analyze(packets.capture(tmp_path / "printer.pcap", printed(rtt_ms, late_ms)))
    (window,) = (one for one in found.findings if one.id == "receiver-window-limited")
    assert window.title.startswith("The application on 10.0.0.2 (server) was reading slowly") is is_slow
    cure = "faster reading saves up to" if is_slow else "a larger receive buffer on 10.0.0.2 saves up to"
    assert cure in verdict.sentence(found)


def test_what_is_only_possible_is_not_said_as_a_fact() -> None:
    found = replace(made(client={"timeout": 1000}), findings=(fault("timeout", 1000, confidence=Confidence.POSSIBLE),))
    assert verdict.sentence(found).startswith("Possibly waiting for retransmission timeouts (RTO) took 100% of 1 s;")


def held_by_nagle(nagle_ms: int, in_doubt: int = 0, **others: int) -> HandMade:
    """Return an analysis where Nagle's algorithm delays seven small segments of the client, for `nagle_ms` in total."""
    found = made(client={"nagle": nagle_ms, **others})
    held = {"nagle_holds": 7, "nagle_holds_over_full": 0, "nagle_holds_ambiguous": in_doubt}
    return replace(found, connections=found.connections.with_columns(**{f"client_{name}": pl.lit(count) for name, count in held.items()}))


@pytest.mark.parametrize(("nagle_ms", "in_doubt", "reported"), [(140, 0, True), (40, 0, False), (140, 7, False)])
def test_what_nagle_holds_can_be_fixed_though_more_went_to_a_program(nagle_ms: int, in_doubt: int, *, reported: bool) -> None:
    """Nagle's algorithm is fixable if it takes at least a twentieth of the time and its delays are not in doubt."""
    said = verdict.sentence(held_by_nagle(nagle_ms, in_doubt, application=1000 - nagle_ms))
    fixable = (
        "; 14% is fixable: Nagle's algorithm (small segments delayed by one RTT); "
        "TCP_NODELAY on 10.0.0.1, or writing each message with one call, would help."
    )
    assert said.endswith(fixable if reported else "; no TCP problem found.")


def test_what_nagle_holds_without_a_delayed_ack_can_be_fixed_too() -> None:
    assert verdict.sentence(held_by_nagle(700, network=300)) == (
        "Most likely Nagle's algorithm (small segments delayed by one RTT) took 70% of 1 s; "
        "TCP_NODELAY on 10.0.0.1, or writing each message with one call, would help."
    )


def test_time_that_the_capture_does_not_show_is_not_explained() -> None:
    found = made(client={"unknown": 700, "network": 300})
    words = "The capture does not show what took 70% of 1 s; "
    begun_late = replace(found, connections=found.connections.with_columns(quality_reasons=pl.lit(["start_missing"])))
    assert verdict.sentence(begun_late) == words + "start the capture before the connection opens."
    assert verdict.sentence(found) == words + "a capture at 10.0.0.1 would show more."
    at_sender = replace(found, connections=found.connections.with_columns(vantage=pl.lit("client")))
    assert verdict.sentence(at_sender) == words + "no TCP problem found in the remaining time."


@pytest.mark.parametrize(
    ("rivals", "either", "told_apart"),
    [
        (
            "nagle|send-buffer",
            "either Nagle's algorithm or a full send buffer",
            "a run with TCP_NODELAY on 10.0.0.1 shows whether Nagle's algorithm is the cause",
        ),
        (
            "application|send-buffer|congestion-window",
            "either an application that was not sending, a full send buffer or the congestion window",
            "TCP_INFO on 10.0.0.1 during the transfer (Linux: ss -ti) tells them apart",
        ),
        (
            "application|nagle|send-buffer",
            "either an application that was not sending, Nagle's algorithm or a full send buffer",
            "a run with TCP_NODELAY on 10.0.0.1 shows whether Nagle's algorithm is the cause",
        ),
    ],
)
def test_where_rivals_tie_both_are_named_and_what_distinguishes_them(rivals: str, either: str, told_apart: str) -> None:
    """If two causes with different remedies tie, the verdict is unknown and names both.

    A capture that lacks bytes does not show either cause.
    """
    found = made(client={"unknown": 700, "network": 300})
    tied = replace(found, accounts=found.accounts.with_columns(client_rivals=pl.lit(rivals)))
    reported = verdict.of(tied)
    assert reported.sentence == f"The capture does not show what took 70% of 1 s: {either}; {told_apart}."
    assert reported.to_dict()["rivals"] == rivals.split("|")
    lacks = tied.connections.with_columns(quality_reasons=pl.lit(["much_not_captured"]), client_not_captured_bytes=pl.lit(5000))
    reported = verdict.of(replace(tied, connections=lacks))
    assert (reported.sentence, reported.rivals) == (
        "The capture does not show what took 70% of 1 s; 5 kB of this direction are missing from the capture: capture without drops.",
        (),
    )


@pytest.mark.parametrize(("name", "cause"), [("loopback-small-send-buffer.pcapng", "send-buffer"), ("cooked-bulk.pcapng", "application")])
def test_the_rivals_of_a_real_transfer_include_what_it_was_made_to_wait_for(name: str, cause: str) -> None:
    """According to captures/README.md, the first transfer has a send buffer of 16 kB. Only the writing application limits the second."""
    account = analyze(CAPTURES / name).accounts.collect().row(0, named=True)
    assert account["client_unknown_ns"] > 0
    assert cause in rivals_in_words.names_of(account["client_rivals"])


def test_every_rival_that_the_engine_names_has_words() -> None:
    source = (ROOT / "rust/src/ledger/gates/ambiguous.rs").read_text().split("#[cfg(test)]")[0]
    named = {"-".join(re.findall("[A-Z][a-z]+", cause)).lower() for cause in re.findall(r"\(Cause::(\w+),", source)}
    assert named == set(rivals_in_words.NAMES) <= set(schema.CAUSES)


ONE_WAY = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460>
    0.020 C > S  .          ack 1  win 65535
    0.021 C > S  P. 1:101 ack 1
    0.321 C > S  P. 101:201 ack 1
    0.921 C > S  P. 201:301 ack 1
"""

WITH_A_HOLE = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460>
    0.020 C > S  .          ack 1  win 65535
    0.021 C > S  P. 1:101 ack 1
    0.041 S > C  .  ack 101
    3.021 C > S  P. 5101:5201 ack 1
    3.041 S > C  .  ack 5201
"""


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (ONE_WAY, "the capture has only one direction of the connection: capture both."),
        (ONE_WAY.split("\n", 2)[2], "the capture has only one direction of the connection: capture both, from its start."),
        (WITH_A_HOLE, "5 kB of this direction are missing from the capture: capture without drops."),
    ],
)
def test_the_headline_says_what_a_capture_lacks_that_cannot_show_the_cause(tmp_path: Path, text: str, advice: str) -> None:
    """The first capture lacks one direction, the second one also its start, and the third one 5,000 of 5,200 bytes."""
    said = verdict.sentence(analyze(packets.capture(tmp_path / "lacking.pcap", text)))
    assert said.startswith("The capture does not show what took"), said
    assert said.endswith("; " + advice), said


def test_the_headline_says_that_a_capture_contains_only_resets(tmp_path: Path) -> None:
    resets = "\n".join(f"{60 * at} C > S R 1:1" for at in range(3))
    said = verdict.sentence(analyze(packets.capture(tmp_path / "resets.pcap", resets)))
    assert said == "No connection in this capture carried data: all 3 segments are resets (RST)."


def test_a_capture_without_data_without_times_or_without_tcp_has_no_verdict_on_time() -> None:
    silent = analysis(Exchange().send(0, "C", 1, ack=1).send(1, "S", 1, ack=1))
    assert verdict.sentence(silent) == "No connection in this capture carried data."
    assert verdict.sentence(analysis(connections=0)) == "This capture contains no TCP connection: it is empty."
    timeless = analysis(Exchange().send(0, "C", 1, 10, ack=1), first_ts_ns=None)
    assert verdict.sentence(timeless) == "This capture has no timestamps, so it cannot show where the time went."


def test_every_cause_has_words_and_every_fault_that_is_known_has_a_cure() -> None:
    reported = causes.OURS
    assert set(reported) == set(schema.CAUSES)
    assert all(rule.lost_to for rule in reported.values())
    assert all(rule.advice.cure for rule in reported.values() if rule.advice and rule.advice.is_a_fault)
    assert all("{" in rule.advice.mechanism for rule in reported.values() if rule.advice), (
        "each tells its mechanism with the capture's numbers"
    )
    assert len({(rule.colour, rule.pattern) for rule in reported.values()}) == len(reported), "no two look alike"
    assert all(re.fullmatch("#[0-9a-f]{6}", rule.colour) for rule in reported.values())


ENDS = """
0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK>
0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK>
0.020 C > S  .          ack 1  win 65535
0.021 C > S  P. 1:1001 ack 1
0.041 S > C  .  ack 1001 win 65535
0.042 C > S  F. 1001:1001(0) ack 1
"""
FIN = "{} C > S  F. 1001:1001(0) ack 1\n"


def test_a_fin_that_had_to_be_repeated_is_no_quiet_close(tmp_path: Path) -> None:
    """The client sends four FINs in 15.1 s, and none of them is acknowledged."""
    text = ENDS + "".join(map(FIN.format, (0.342, 0.942, 15.142)))
    said = verdict.sentence(analyze(packets.capture(tmp_path / "ends.pcap", text)))
    assert said.startswith("Closing the connection took 15.1 s of")
    assert said.endswith("(client) sent its FIN 4 times: find out why answers are missing.")


def test_a_fin_that_comes_again_before_any_timer_is_a_copy(tmp_path: Path) -> None:
    """A path with a loop delivers a second FIN after 50 ms."""
    said = verdict.sentence(analyze(packets.capture(tmp_path / "ends.pcap", ENDS + FIN.format(0.092))))
    assert "times" not in said


def test_closing_is_not_all_that_the_headline_says(tmp_path: Path) -> None:
    """The last FIN is sent ten seconds after the first. The headline also says what took the time before the first FIN."""
    text = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK>
    0.020 C > S  .          ack 1  win 65535
    0.021 C > S  P. 1:101 ack 1
    0.041 S > C  .  ack 101 win 65535
    0.541 S > C  P. 1:1461 ack 101
    0.541 C > S  .  ack 1461 win 65535
    0.561 S > C  F. 1461:1461(0) ack 101
    0.561 C > S  .  ack 1462 win 65535
    10.561 C > S  F. 101:101(0) ack 1462
    10.581 S > C  .  ack 102
    """
    said = verdict.sentence(analyze(packets.capture(tmp_path / "close.pcap", text)))
    assert "Closing the connection took 10 s of 10.6 s; before that, most likely the application on" in said
    assert "was not sending for 89% of 561 ms" in said  # 500 ms of the 561 ms before the first FIN
