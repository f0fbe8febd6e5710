"""The fate of each packet is derived from hand-written path logs. The headers of a packet identify it in the log."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tcptrace_lab.lab.networks.path import Fate, LogEntry, PathLog
from tcptrace_lab.lab.networks.tcp_headers import tcp_head
from tcptrace_lab.lab.networks.truth import Event, Truth, at_receiver, at_sender, match

ISN = 0xFFFF_FF00
"""The ISN of all streams in this file, so that sequence numbers wrap in the first segments."""


ETHER = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
"""An Ethernet header with both addresses, because Scapy would otherwise ask the network for them."""


def packet(offset: int, payload_bytes: int, flags: str = "A", ip_id: int = 0, tsval: int | None = None) -> bytes:
    """Return a frame of the client whose sequence number is `offset` (SYN = 0)."""
    options = [] if tsval is None else [("NOP", None), ("NOP", None), ("Timestamp", (tsval, 0))]
    segment = TCP(sport=40_001, dport=5_001, seq=(ISN + offset) % 2**32, flags=flags, options=options)
    return bytes(ETHER / IP(src="192.0.2.1", dst="192.0.2.2", id=ip_id) / segment / Raw(bytes(payload_bytes)))


def log(packets: list[bytes], delivered: list[int]) -> PathLog:
    """Return a path log of `packets`.

    `delivered` has the indexes of the packets that arrived, in the order of their arrival.
    """
    entries = [LogEntry(place, place, len(frame), Fate.FORWARDED, None, frame[:128]) for place, frame in enumerate(packets)]
    return PathLog(entries, [(place, 1_000 + time) for time, place in enumerate(delivered)])


def truths(events: list[Event]) -> list[tuple[int, str | None]]:
    return [(event.index, event.truth and event.truth.value) for event in events]


FLIGHT = [packet(0, 0, "S"), packet(1, 0), packet(1, 1000), packet(1001, 1000), packet(2001, 1000)]


def test_headers_are_read_over_both_versions_of_ip_and_without_a_link() -> None:
    segment = TCP(sport=1, dport=2, seq=3, ack=4, flags="SA", options=[("MSS", 1460)])
    ipv4, ipv6 = IP(id=77) / segment / Raw(b"12345"), IPv6() / segment / Raw(b"12345")
    assert tcp_head(bytes(ETHER / ipv4), ethernet=True) == (1, 2, 3, 4, 0x12, 5, 77, None)
    assert tcp_head(bytes(ipv4), ethernet=False) == (1, 2, 3, 4, 0x12, 5, 77, None)
    assert tcp_head(bytes(ETHER / ipv6), ethernet=True) == (1, 2, 3, 4, 0x12, 5, None, None)
    assert tcp_head(bytes(IP() / TCP()), ethernet=False) is not None, "the shortest there is"
    stamped = tcp_head(packet(1, 10, tsval=77), ethernet=True)
    assert stamped is not None
    assert stamped.tsval == 77


@pytest.mark.parametrize("cut", [0, 13, 14, 33, 53])
def test_what_is_too_short_or_not_tcp_has_no_head(cut: int) -> None:
    assert tcp_head(packet(1, 10)[:cut], ethernet=True) is None
    assert tcp_head(bytes(Ether(src=ETHER.src, dst=ETHER.dst, type=0x0806)) + bytes(60), ethernet=True) is None


def test_segment_sent_again_after_its_loss_is_resent_at_both_ends() -> None:
    """Packet 2 is the first of three data segments. It is lost, and packet 5 retransmits it."""
    path = log([*FLIGHT, packet(1, 1000)], [0, 1, 3, 4, 5])
    assert truths(at_sender(path)) == [(0, "new"), (1, None), (2, "new"), (3, "new"), (4, "new"), (5, "resent")]
    assert truths(at_receiver(path)) == [(0, "new"), (1, None), (3, "new"), (4, "new"), (5, "resent")]


def test_segment_sent_again_although_it_was_only_late_is_needless_at_the_sender() -> None:
    """Packet 2 is late: it arrives second to last. Its retransmission, packet 5, arrives last."""
    path = log([*FLIGHT, packet(1, 1000)], [0, 1, 3, 4, 2, 5])
    assert truths(at_sender(path))[-1] == (5, "needless")
    assert truths(at_receiver(path))[-2:] == [(2, "reordered"), (5, "needless")]


def test_segment_that_arrives_behind_its_own_repetition_is_reordered() -> None:
    """When packet 5 arrives, the receiver cannot know that packet 2 will still arrive. So both "resent" and "needless" are right."""
    path = log([*FLIGHT, packet(1, 1000)], [0, 1, 3, 4, 5, 2])
    resent, late = at_receiver(path)[-2:]
    assert (resent.truth, resent.otherwise) == (Truth.RESENT, Truth.NEEDLESS)
    assert late.truth is Truth.REORDERED
    assert truths(at_sender(path))[-1] == (5, "needless")


def test_tail_that_is_resent_is_new_to_whoever_did_not_see_its_first_copy() -> None:
    """Packet 4 is lost, and packet 5 retransmits it.

    No packet arrives between the two, so the receiver cannot see that a packet is missing.
    """
    path = log([*FLIGHT, packet(2001, 1000)], [0, 1, 2, 3, 5])
    tail = at_receiver(path)[-1]
    assert (tail.truth, tail.otherwise) == (Truth.RESENT, Truth.NEW)
    assert truths(at_sender(path))[-1] == (5, "resent")


def test_late_original_with_a_timestamp_from_before_an_earlier_resend_is_thrown_away_by_the_receiver() -> None:
    """Packet 2 is lost, and packet 5 retransmits it with timestamp 240.

    Packet 3 is an original with timestamp 200. It arrives after packet 5, so PAWS discards it (RFC 7323, 5.3). Its retransmission, packet
    6, is therefore needed.
    """
    flight = [packet(0, 0, "S", tsval=100), packet(1, 0, tsval=140), *(packet(1 + 1000 * n, 1000, tsval=200) for n in range(3))]
    path = log([*flight, packet(1, 1000, tsval=240), packet(1001, 1000, tsval=241)], [0, 1, 4, 5, 3, 6])
    assert truths(at_sender(path))[-2:] == [(5, "resent"), (6, "resent")]
    assert truths(at_receiver(path))[-2:] == [(3, "reordered"), (6, "resent")]
    plain = [packet(0, 0, "S"), packet(1, 0), *(packet(1 + 1000 * n, 1000) for n in range(3))]
    path = log([*plain, packet(1, 1000), packet(1001, 1000)], [0, 1, 4, 5, 3, 6])
    assert truths(at_sender(path))[-2:] == [(5, "resent"), (6, "needless")], "without timestamps it was taken"


def test_second_copy_of_one_packet_is_copied_not_resent() -> None:
    path = log(FLIGHT, [0, 1, 2, 2, 3, 4])
    assert truths(at_receiver(path)) == [(0, "new"), (1, None), (2, "new"), (2, "copied"), (3, "new"), (4, "new")]
    assert [truth for _, truth in truths(at_sender(path))] == ["new", None, "new", "new", "new"]


def test_new_packet_overtaken_by_an_older_stretch_sent_again_came_in_order() -> None:
    """Packet 2 is lost. Its retransmission, packet 5, overtakes the new packet 4.

    The bytes of packet 4 follow the bytes of packet 2, so neither packet is out of order.
    """
    path = log([*FLIGHT, packet(1, 1000)], [0, 1, 3, 5, 4])
    assert truths(at_receiver(path))[-2:] == [(5, "resent"), (4, "new")]


def test_second_repetition_of_a_segment_is_needed_if_the_first_was_lost_too() -> None:
    path = log([*FLIGHT, packet(1, 1000), packet(1, 1000)], [0, 1, 3, 4, 6])
    assert truths(at_sender(path))[-2:] == [(5, "resent"), (6, "resent")]


def test_connection_that_reuses_the_ports_starts_a_stream_of_its_own() -> None:
    path = log([*FLIGHT, packet(500, 0, "S")], [0, 1, 2, 3, 4, 5])
    assert truths(at_receiver(path))[-1] == (5, "new")


def test_capture_of_other_packets_is_refused() -> None:
    events = at_sender(log([packet(0, 0, "S", ip_id=7)], []))
    row = {"frame": 1, "wire_seq": ISN, "payload_bytes": 0, "flags": 2, "ip_id": 7}
    assert [found["frame"] for _, found in match(events, [row])] == [1]
    with pytest.raises(ValueError, match="not packet 0 of the log"):
        match(events, [row | {"ip_id": 8}])
