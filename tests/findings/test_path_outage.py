"""A path outage is reported if the path carried no packets. A silence that something else explains is not a path outage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tcptrace_lab import verdict
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding


def opened(client: str = "C", server: str = "S", at_s: float = 0.0) -> str:
    """Return a handshake over a path with an RTT of 20 ms, captured at the client."""
    options = "<mss 1460, sackOK, TS val 10 ecr 0>"
    return f"""
    {at_s:.3f} {client} > {server}  S   0:0(0)        win 65535 {options}
    {at_s + 0.020:.3f} {server} > {client}  S.  0:0(0) ack 1  win 65535 {options}
    {at_s + 0.020:.3f} {client} > {server}  .          ack 1  win 65535 <TS val 11 ecr 10>
    """


def sent(count: int, *, client: str = "C", server: str = "S", at_s: float = 0.1, lost: int = 0) -> str:
    """Return `count` exchanges of one segment and its ACK, 40 ms apart. Each `lost`-th segment is lost and retransmitted after 220 ms."""
    lines = []
    for number in range(count):
        seq = 1 + 1000 * number
        segment = f"{client} > {server} P. {seq}:{seq + 1000} ack 1 <TS val 20 ecr 10>"
        lines.append(f"{at_s:.3f} {segment}")
        if lost and number % lost == 0:
            at_s += 0.220
            lines.append(f"{at_s:.3f} {segment}")
        lines.append(f"{at_s + 0.020:.3f} {server} > {client} . ack {seq + 1000} win 65535 <TS val 30 ecr 20>")
        at_s += 0.040
    return "\n".join(lines)


def void(
    *, client: str = "C", server: str = "S", seq: int = 40_001, at_s: float = 2.0, times_s: tuple[float, ...] = (0, 0.22, 0.66, 1.54)
) -> str:
    """Return two new segments, and timeout retransmits of the first of them. The answer to the last copy is not included."""
    first = f"{client} > {server} P. {seq}:{seq + 1000} ack 1 <TS val 40 ecr 30>"
    lines = [f"{at_s:.3f} {first}", f"{at_s + 0.001:.3f} {client} > {server} P. {seq + 1000}:{seq + 2000} ack 1 <TS val 40 ecr 30>"]
    return "\n".join([*lines, *(f"{at_s + later_s:.3f} {first}" for later_s in times_s[1:])])


def repaired(*, client: str = "C", server: str = "S", seq: int = 40_001, at_s: float = 3.56) -> str:
    """Return the answer to the last retransmit of `void`, then the retransmit of the second segment and its ACK."""
    return f"""
    {at_s:.3f} {server} > {client} . ack {seq + 1000} win 65535 <TS val 50 ecr 40>
    {at_s + 0.001:.3f} {client} > {server} P. {seq + 1000}:{seq + 2000} ack 1 <TS val 60 ecr 50>
    {at_s + 0.021:.3f} {server} > {client} . ack {seq + 2000} win 65535 <TS val 70 ecr 60>
    """


def outages(path: Path, text: str) -> list[Finding]:
    return [one for one in tcptrace_lab.analyze(packets.capture(path / "path.pcap", text)).findings if one.id == "path-outage"]


LAST_S = 0.1 + 39 * 0.040 + 0.020
"""Time (s) of the last ACK in `sent(40)`."""


def test_unanswered_retransmits_by_timer_are_an_outage_with_its_time_and_length(tmp_path: Path) -> None:
    """The server is silent from 1.680 s to 3.560 s. The client's unanswered segments are those sent from 2.000 s to 2.660 s."""
    (reported,) = outages(tmp_path, opened() + sent(40) + "\n" + void() + repaired())
    assert pytest.approx(1.68) == LAST_S
    assert reported.title == "Path outage at 2023-11-14 22:13:21.680 UTC: no packet got through for 660 ms to 1.88 s"
    assert (reported.conn, reported.from_client, reported.connections) == (0, True, 1)
    assert reported.cost_ns == pytest.approx(1_560_000_000, abs=5_000_000)  # time from the first lost segment to its ACK
    assert str(reported.confidence) == "consistent"
    assert "4 segments of 10.0.0.1, 2 of them sent by a timer, got no answer" in reported.mechanism


def test_the_timeouts_within_an_outage_are_no_finding_of_their_own(tmp_path: Path) -> None:
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "path.pcap", opened() + sent(40) + "\n" + void() + repaired()))
    assert "timeout" not in {one.id for one in analysis.findings}
    assert "a path outage (1.88 s without a packet from 10.0.0.2, from 2023-11-14 22:13:21.680 UTC)" in verdict.sentence(analysis)


def test_losses_outside_of_the_outage_stay_a_finding(tmp_path: Path) -> None:
    """Long before the outage, three of forty segments are lost once each. Each lost segment is retransmitted after 220 ms."""
    text = opened() + sent(40, lost=14) + "\n" + void(at_s=3.0, times_s=(0, 0.22, 0.66, 1.54, 3.3)) + repaired(at_s=6.32)
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "path.pcap", text))
    by_id = {one.id: one for one in analysis.findings}
    assert by_id["loss"].title == "Loss recovery took 660 ms in 3 waits, the longest 220 ms"
    assert by_id["loss"].cost_ns == 3 * 220_000_000
    assert by_id["path-outage"].cost_ns == pytest.approx(3_320_000_000, abs=5_000_000)
    assert "timeout" not in by_id


def test_data_that_arrives_late_may_be_a_suspended_host(tmp_path: Path) -> None:
    """The first answer ACKs everything that was sent during the silence, so the path or the peer delayed these segments."""
    text = opened() + sent(40) + "\n" + void() + "\n3.560 S > C . ack 42001 win 65535 <TS val 50 ecr 40>"
    (reported,) = outages(tmp_path, text)
    assert "all had arrived when the answer came" in reported.mechanism
    assert str(reported.confidence) == "possible"
    assert "A host that was suspended as a whole looks the same" in reported.limits


def at_receiver(skipped: int) -> str:
    """Return a capture at the server.

    The server's ACK at 1.680 s is lost, and so are the next `skipped` copies of the client's last segment. The copy sent at 3.200 s
    arrives.
    """
    lines = [line.strip() for line in (opened() + sent(40)).splitlines() if line.strip()]
    number, numbered = 100, []
    for line in lines:
        number += " C > S " in line
        numbered.append(f"{line} {{id {number}}}" if " C > S " in line else line)
    return (
        "\n".join(numbered)
        + f"""
    3.200 C > S P. 39001:40001 ack 1 <TS val 40 ecr 20> {{id {number + skipped + 1}}}
    3.200 S > C . ack 40001 win 65535 <TS val 50 ecr 40, sack 39001:40001>
    3.300 C > S P. 40001:41001 ack 1 <TS val 41 ecr 50> {{id {number + skipped + 2}}}
    3.300 S > C . ack 41001 win 65535 <TS val 51 ecr 41>
    """
    )


def test_silence_and_a_retransmit_of_acked_data_are_an_outage_seen_at_the_receiver(tmp_path: Path) -> None:
    """ACKs of one host and retransmits of the other host are missing, so neither direction worked."""
    (reported,) = outages(tmp_path, at_receiver(3))
    assert reported.title.endswith("no packet got through for up to 1.52 s")  # time from the ACK at 1.680 s to that at 3.200 s
    assert "1 ACK of 10.0.0.2 did not reach 10.0.0.1, which sent the data again" in reported.mechanism
    assert "3 segments of 10.0.0.1 are missing before the capture point (IP IDs)" in reported.mechanism
    assert str(reported.confidence) == "consistent"


def test_a_lost_ack_alone_is_no_outage_seen_at_the_receiver(tmp_path: Path) -> None:
    """No segment of the sender is missing, so possibly, the sender's timer is only slow."""
    assert outages(tmp_path, at_receiver(0)) == []


NOTHING = {
    "an application that pauses": opened()
    + sent(40)
    + "\n"
    + sent(1, at_s=5.0).replace("1:1001", "40001:41001").replace("1001 win", "41001 win"),
    "a retransmit that is answered at once": opened() + sent(40) + "\n" + void(times_s=(0, 0.60)) + repaired(at_s=2.62),
    "a peer that never answers again": opened() + sent(40) + "\n" + void(),
    "a stopped application: its kernel ACKs, then closes the window": opened()
    + sent(40)
    + """
    2.000 C > S P. 40001:41001 ack 1 <TS val 40 ecr 30>
    2.020 S > C . ack 41001 win 0 <TS val 41 ecr 40>
    2.240 C > S . 41000:41001 ack 1 <TS val 42 ecr 41>
    2.260 S > C . ack 41001 win 0 <TS val 43 ecr 42>
    2.700 C > S . 41000:41001 ack 1 <TS val 44 ecr 43>
    2.720 S > C . ack 41001 win 0 <TS val 45 ecr 44>
    4.000 S > C . ack 41001 win 65535 <TS val 46 ecr 45>
    4.001 C > S P. 41001:42001 ack 1 <TS val 47 ecr 46>
    4.021 S > C . ack 42001 win 65535 <TS val 48 ecr 47>
    """,
    "window probes that nobody answers": opened()
    + sent(40)
    + """
    2.000 C > S P. 40001:41001 ack 1 <TS val 40 ecr 30>
    2.020 S > C . ack 41001 win 0 <TS val 41 ecr 40>
    2.240 C > S P. 41001:41002 ack 1 <TS val 42 ecr 41>
    2.680 C > S P. 41001:41002 ack 1 <TS val 43 ecr 41>
    3.560 C > S P. 41001:41002 ack 1 <TS val 44 ecr 41>
    3.580 S > C . ack 41002 win 65535 <TS val 45 ecr 44>
    3.581 C > S P. 41002:42002 ack 1 <TS val 46 ecr 45>
    3.601 S > C . ack 42002 win 65535 <TS val 47 ecr 46>
    """,
    "a capture gap: the ACK covers bytes that the capture lacks": opened()
    + sent(40)
    + "\n"
    + void()
    + "\n3.560 S > C . ack 60001 win 65535 <TS val 50 ecr 40>"
    + "\n3.561 C > S P. 60001:61001 ack 1 <TS val 51 ecr 50>\n3.581 S > C . ack 61001 win 65535 <TS val 52 ecr 51>",
    "losses as frequent as in the rest of the connection": opened() + sent(40, lost=2) + "\n" + void(at_s=7.0) + repaired(at_s=8.56),
    "segments too large for the path": opened()
    + sent(40)
    + """
    2.000 C > S P. 40001:41461 ack 1 <TS val 40 ecr 30>
    2.220 C > S P. 40001:41461 ack 1 <TS val 41 ecr 30>
    2.660 C > S P. 40001:41461 ack 1 <TS val 42 ecr 30>
    3.540 C > S . 40001:40513 ack 1 <TS val 43 ecr 30>
    3.560 S > C . ack 40513 win 65535 <TS val 44 ecr 43>
    3.561 C > S . 40513:41025 ack 1 <TS val 45 ecr 44>
    3.581 S > C . ack 41025 win 65535 <TS val 46 ecr 45>
    """,
}


@pytest.mark.parametrize("what", NOTHING)
def test_no_outage_is_reported_where_something_else_explains_the_silence(tmp_path: Path, what: str) -> None:
    assert outages(tmp_path, NOTHING[what]) == []


def several(servers: tuple[str, ...], *, answers: bool = False) -> str:
    """Return one connection of the client to each of these servers.

    All connections fall silent at the same time; with `answers`, the last connection goes on.
    """
    hosts, lines = [], []
    for number, address in enumerate(servers):
        client, server = f"C{number}", f"S{number}"
        hosts.append(f"host C{number} 10.0.0.1:{41_000 + number} isn 1000\nhost S{number} {address}:80 isn 5000")
        is_up = answers and number == len(servers) - 1
        text = opened(client, server) + sent(80 if is_up else 40, client=client, server=server)
        text += "" if is_up else "\n" + void(client=client, server=server) + repaired(client=client, server=server)
        lines += [line.strip() for line in text.splitlines() if line.strip()]
    return "\n".join([*hosts, *sorted(lines, key=lambda line: float(line.split()[0]))])


def test_connections_of_two_hosts_that_are_silent_together_are_one_finding(tmp_path: Path) -> None:
    (reported,) = outages(tmp_path, several(("10.0.0.2", "10.0.0.2", "10.0.0.2")))
    assert (reported.connections, str(reported.confidence)) == (3, "consistent")
    assert reported.title.endswith("on 3 connections")
    assert "Silent at the same time: connections" in reported.mechanism


def test_servers_that_are_silent_together_prove_that_the_path_failed(tmp_path: Path) -> None:
    (reported,) = outages(tmp_path, several(("10.0.0.2", "10.0.0.3")))
    assert (reported.connections, str(reported.confidence)) == (2, "proved")
    assert "suspended" not in reported.limits


def test_a_packet_of_the_silent_host_on_another_connection_disproves_it(tmp_path: Path) -> None:
    assert outages(tmp_path, several(("10.0.0.2", "10.0.0.2"), answers=True)) == []


def test_another_server_that_answers_disproves_nothing(tmp_path: Path) -> None:
    (reported,) = outages(tmp_path, several(("10.0.0.2", "10.0.0.3"), answers=True))
    assert reported.connections == 1
