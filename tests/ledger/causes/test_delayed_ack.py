"""The remedy for delayed ACKs names the socket option of the receiver's stack.

If the receiver's SYN shows no stack, the remedy names the options of several stacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import verdict
from tcptrace_lab.analysis import analyze
from tcptrace_lab.causes.texts import immediate_ack
from tcptrace_lab.schema.categories import STACKS
from tests.support import packets
from tests.support.ledgers import advised, judged, sums

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding

LINUX = "mss 1460, nop, nop, sackOK, nop, wscale 7"
WINDOWS = "mss 1460, nop, wscale 8, nop, nop, sackOK"
APPLE = "mss 1460, nop, wscale 6, nop, nop, TS val 1 ecr 1, sackOK, eol"
ASKED = "mss 1460, sackOK, TS val 1 ecr 0, nop, wscale 7"


def opened(client: str, server: str, *, at_client: bool = True) -> str:
    """Return a handshake with these SYN options and TTLs of client and server, captured at the client or at the server."""
    return f"""
        0.0000 C > S S  0:0(0)       win 65535 <{client}
        {"0.0010" if at_client else "0.0000"} S > C S. 0:0(0) ack 1 win 65535 <{server}
        0.0010 C > S .         ack 1 win 65535
        """


def held(count: int = 5, *, client_sends: bool = True) -> str:
    """Return requests of two writes of 100 bytes, and an answer of 50 bytes to each request.

    The second write waits for a delayed ACK of the first. If `client_sends` is false, the server sends the requests.
    """
    sender, receiver = ("C", "S") if client_sends else ("S", "C")
    lines, seq, got = [], 1, 1
    for place in range(count):
        at_ms = 100 * (place + 1)
        lines += [
            f"{at_ms}ms {sender} > {receiver} P. {seq}:{seq + 100} ack {got}",
            f"{at_ms + 60}ms {receiver} > {sender} . ack {seq + 100}",
            f"{at_ms + 60.1}ms {sender} > {receiver} P. {seq + 100}:{seq + 200} ack {got}",
            f"{at_ms + 61.1}ms {receiver} > {sender} P. {got}:{got + 50} ack {seq + 200}",
        ]
        seq, got = seq + 200, got + 50
    return "\n".join(lines)


def found(path: Path) -> dict[str, Finding]:
    return {one.id: one for one in advised(judged(path)).findings}


TOLD = {
    "linux": (f"{LINUX}> {{ttl 60}}", "(its SYN suggests Linux: TCP_QUICKACK, set again after every read)", "TcpAckFrequency"),
    "windows": (f"{WINDOWS}> {{ttl 120}}", "(its SYN suggests Windows: SIO_TCP_SET_ACK_FREQUENCY = 1", "QUICKACK"),
    "apple": (f"{APPLE}> {{ttl 60}}", "(its SYN suggests Apple: sysctl net.inet.tcp.delayed_ack=0)", "QUICKACK"),
    "unknown": ("mss 1460>", "(Linux: TCP_QUICKACK, set again after every read; Windows: SIO_TCP_SET_ACK_FREQUENCY = 1", "perhaps"),
}


@pytest.mark.parametrize("family", TOLD)
def test_a_receiver_is_given_the_switch_of_its_own_stack(tmp_path: Path, family: str) -> None:
    """The sender's SYN shows that the sender is Linux, but nothing about the receiver's stack."""
    server, switch, not_its_own = TOLD[family]
    text = opened(f"{ASKED}> {{ttl 64}}", server) + held()
    last = found(packets.capture(tmp_path / "exchange.pcap", text))["nagle-delayed-ack"].remedy[-1]
    assert switch in last
    assert not_its_own not in last


def test_where_the_server_sends_the_client_is_the_receiver(tmp_path: Path) -> None:
    text = opened(f"{WINDOWS}> {{ttl 128}}", f"{LINUX}> {{ttl 64}}", at_client=False) + held(client_sends=False)
    assert "suggests Windows" in found(packets.capture(tmp_path / "exchange.pcap", text))["nagle-delayed-ack"].remedy[-1]


def test_what_the_sender_can_do_is_reported_first_and_holds_for_any_stack(tmp_path: Path) -> None:
    text = opened(f"{LINUX}> {{ttl 64}}", f"{WINDOWS}> {{ttl 128}}") + held()
    remedy = found(packets.capture(tmp_path / "exchange.pcap", text))["nagle-delayed-ack"].remedy
    assert [one.split(" (")[0] for one in remedy] == [
        "write each message with one call",
        "set TCP_NODELAY at the sender",
        "disable delayed ACKs at the receiver",
    ]


def test_a_lock_shows_the_receivers_switch_and_the_verdict_names_none(tmp_path: Path) -> None:
    """The receiver sends an ACK after 2,868 bytes. They are 35% of its window (8,192 bytes) and less than two full segments.

    The send buffer has only 2,460 bytes (1,460 + 1,000). So each round ends with a delayed ACK.
    """
    lines, seq = [opened("mss 1460>", "mss 1460> {ttl 128}").replace("65535 <mss 1460> {ttl", "8192 <mss 1460> {ttl")], 1
    for place in range(8):
        at_ms = 100 + 200 * place
        lines += [
            f"{at_ms}ms C > S . {seq}:{seq + 1460} ack 1",
            f"{at_ms}ms C > S P. {seq + 1460}:{seq + 2460} ack 1",
            f"{at_ms + 199.9 if place else at_ms + 1}ms S > C . ack {seq + 2460} win 8192",
        ]
        seq += 2460
    path = packets.capture(tmp_path / "exchange.pcap", "\n".join(lines))
    assert any("disable delayed ACKs at the receiver (Linux: TCP_QUICKACK" in one for one in found(path)["throughput-deadlock"].remedy)
    said = verdict.sentence(analyze(path))
    assert "or disabling delayed ACKs on 10.0.0.2, saves" in said
    assert "QUICKACK" not in said


def test_every_family_that_a_syn_shows_has_a_switch_of_its_own_words() -> None:
    assert set(STACKS) == set(immediate_ack.SWITCHES)
    assert set(immediate_ack.NAMED) <= set(immediate_ack.SWITCHES)


def answers_behind_late_acks(count: int) -> str:
    """Return answers of 4,920 bytes, captured at the client. The client delays the last ACK of each answer by 38 ms.

    The next answer begins 0.18 to 0.21 ms after that ACK. The server's send buffer has room for the next answer only after everything is
    ACKed. The client's timer sends an ACK every 40 ms, so the answers are evenly spaced, too.
    """
    lines, seq = ["0.200ms C > S P. 1:101 ack 1"], 1
    for number in range(count):
        at_us = 1_600 + 40_000 * number + 15 * (number % 3)
        for place, bytes_count in enumerate((1460, 1460, 1460, 540)):
            lines.append(f"{at_us + 12 * place}us S > C {'P' if bytes_count == 540 else ''}. {seq}:{seq + bytes_count} ack 101")
            seq += bytes_count
            if place == 1:
                lines.append(f"{at_us + 17}us C > S . ack {seq}")
        lines.append(f"{1_600 + 40_000 * (number + 1) - 185 + 5 * (number % 2)}us C > S . ack {seq}")
    return "\n".join(lines)


def test_answers_that_wait_for_the_timer_of_delayed_acks_are_not_the_applications_clock(tmp_path: Path) -> None:
    opening = """
        0      C > S S  0:0(0)       win 65535 <mss 1460, sackOK, wscale 7>
        86us   S > C S. 0:0(0) ack 1 win 65535 <mss 1460, sackOK, wscale 7>
        98us   C > S .         ack 1 win 65535
    """
    found_ns = sums(judged(packets.capture(tmp_path / "x.pcap", opening + answers_behind_late_acks(20))), from_client=False)
    assert found_ns["delayed-ack"] > 0.9 * sum(found_ns.values())
    assert found_ns.get("application", 0) < 0.02 * sum(found_ns.values())
