"""Small-packet trouble: tinygrams that would fit in fewer segments, and segments cut to silly windows.

The findings give the cost in segments and bytes. The headers of these exchanges have 54 bytes: 14 of Ethernet, 20 of IPv4, 20 of TCP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.engine.segments import read
from tcptrace_lab.findings import small_packets
from tests.support.ledgers import advised, judged_text
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding


OPENED = """
    0.000 C > S  S   0:0(0)        win 8192 <mss 1460>
    0.020 S > C  S.  0:0(0) ack 1  win 8192 <mss 1460>
    0.020 C > S  .          ack 1  win 8192
"""


def small(tmp_path: Path, text: str) -> list[Finding]:
    judged = advised(judged_text(tmp_path, OPENED + text)).findings
    return [finding for finding in judged if finding.id in {"tinygrams", "silly-window"}]


def writes(count: int, size: int, each_ms: int) -> str:
    """Return segments of `size` bytes, one every `each_ms`, each acknowledged 20 ms later."""
    moments = []
    for number in range(count):
        at_ms = 40 + number * each_ms
        end = 1 + (number + 1) * size
        moments += [(at_ms, 1, f"C > S P. {end - size}:{end} ack 1"), (at_ms + 20, 0, f"S > C . ack {end} win 8192")]
    return "\n".join(f"{at_ms / 1000:.3f} {line}" for at_ms, _, line in sorted(moments))


def test_writes_faster_than_their_acks_are_tinygrams(tmp_path: Path) -> None:
    """40 × 100 bytes fit in ⌈4000/1460⌉ = 3 segments. Headers are 2160 of 6160 bytes, 35 %."""
    (found,) = small(tmp_path, writes(40, 100, 5))
    assert (found.id, str(found.severity), found.conn, found.from_client) == ("tinygrams", "low", 0, True)
    assert (found.cost_ns, found.cost_share) == (None, None)
    assert found.title == "40 small segments (100 B on average) would fit in 3 full ones"
    assert "Headers (54 bytes each) are 35% of the bytes" in found.mechanism
    assert "40 ACKs" in found.mechanism
    assert found.evidence_frames == (5,)


def test_writes_slower_than_their_acks_are_the_programs_pace(tmp_path: Path) -> None:
    assert small(tmp_path, writes(40, 100, 50)) == []


@pytest.mark.parametrize(("pieces", "reported"), [(2, []), (3, ["tinygrams"])])
def test_messages_of_two_pieces_are_no_stream_of_tinygrams(tmp_path: Path, pieces: int, reported: list[str]) -> None:
    """A small segment counts if it follows another small one.

    In messages of two pieces, only one of two segments counts. In messages of three pieces, two of three count.
    """
    text, at_ms, end = "", 40, 1
    for _ in range(15):
        for _ in range(pieces):
            text += f"{at_ms / 1000:.3f} C > S P. {end}:{end + 100} ack 1\n"
            at_ms, end = at_ms + 1, end + 100
        text += f"{(at_ms + 20) / 1000:.3f} S > C . ack {end}\n"
        at_ms += 50
    assert [finding.id for finding in small(tmp_path, text)] == reported


def test_a_mean_above_an_eighth_of_a_segment_proves_no_tinygrams(tmp_path: Path) -> None:
    """An eighth of a full segment is 1460 / 8 = 182.5 bytes. So writes of 182 bytes are tinygrams, and writes of 183 bytes are not."""
    assert [finding.id for finding in small(tmp_path, writes(40, 182, 5))] == ["tinygrams"]
    assert small(tmp_path, writes(40, 183, 5)) == []


def test_segments_that_fill_tiny_windows_to_the_byte_are_cut(tmp_path: Path) -> None:
    """The largest window is 8192, so windows below min(1460, 4096) are silly.

    24 × 200 bytes fit in ⌈4800/1460⌉ = 4 segments, which saves 20 × 54 bytes of headers.
    """
    text, at, end = "", 0.04, 1
    for _ in range(24):
        text += f"{at:.3f} S > C . ack {end} win 200\n{at + 0.001:.3f} C > S . {end}:{end + 200} ack 1 win 8192\n"
        at, end = at + 0.022, end + 200
    text += f"{at:.3f} S > C . ack {end} win 8192\n"
    (found,) = small(tmp_path, text)
    assert (found.id, str(found.severity), str(found.confidence)) == ("silly-window", "low", "proved")
    assert found.title == "24 of 24 segments are cut to silly windows, down to 200 bytes"
    assert "These 4,800 bytes would fit in 4 full segments" in found.mechanism
    assert "add 1,080 bytes" in found.mechanism
    assert found.evidence_frames[:2] == (5, 7)


def test_small_segments_that_leave_room_in_a_small_window_are_not_cut(tmp_path: Path) -> None:
    text, at, end = "", 0.04, 1
    for _ in range(24):
        text += f"{at:.3f} S > C . ack {end} win 300\n{at + 0.001:.3f} C > S P. {end}:{end + 200} ack 1 win 8192\n"
        at, end = at + 0.022, end + 200
    assert small(tmp_path, text) == []


def test_a_window_that_moves_by_full_segments_is_not_silly(tmp_path: Path) -> None:
    text, at, end = "", 0.04, 1
    for number in range(24):
        size = 1460 if number % 2 else 100
        text += f"{at:.3f} S > C . ack {end} win 1460\n{at + 0.001:.3f} C > S P. {end}:{end + size} ack 1 win 8192\n"
        at, end = at + 0.022, end + size
    assert small(tmp_path, text) == []


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_no_transfer_of_this_kernel_has_small_packet_trouble(path: Path) -> None:
    """The captures have bulk transfers, losses, slow readers, small windows, and messages in pieces with Nagle's algorithm on and off."""
    found = read(path)
    assert small_packets.findings(found.segments, found.connections) == ()


def messages(count: int, sizes: list[int], *, wait_ms: int = 0, each_ms: int = 300) -> str:
    """Return messages of segments with these sizes, PSH on the last.

    With `wait_ms`, the last segment waits that long for the ACK of the earlier ones.
    """
    moments, end = [], 1
    for number in range(count):
        at_ms = 40.0 + number * each_ms
        for place, size in enumerate(sizes):
            last = place + 1 == len(sizes)
            if last and wait_ms:
                moments.append((at_ms + wait_ms - 0.1, f"S > C . ack {end}"))
            moments.append((at_ms + (wait_ms if last else 0.05 * place), f"C > S {'P.' if last else '.'} {end}:{end + size} ack 1"))
            end += size
        moments.append((at_ms + wait_ms + 30, f"S > C . ack {end}"))
    return "".join(f"{at_ms / 1000:.5f} {line}\n" for at_ms, line in moments)


def test_messages_cut_where_a_buffer_ends_are_priced(tmp_path: Path) -> None:
    """According to Mosher, a buffer of 2048 bytes cuts a message of 1025 bytes after byte 1024.

    20 messages take 40 segments, but could take only 20. The first three segments of a direction are not judged, so the first two messages
    are not counted. The third message ends in frame 11.
    """
    (found,) = small(tmp_path, messages(22, [1024, 1]))
    assert (found.id, str(found.severity), str(found.confidence)) == ("tinygrams", "info", "consistent")
    assert found.title == "20 messages are cut at 1,024 bytes, at the end of a buffer, not of a full segment"
    assert "at most 20 of 44 segments, 1,080 bytes of headers (54 each)" in found.mechanism
    assert "waited" not in found.mechanism
    assert found.evidence_frames == (11,)


def test_what_is_cut_off_may_wait_for_an_ack(tmp_path: Path) -> None:
    """The finding counts 20 waits of 200 ms each."""
    (found,) = small(tmp_path, messages(22, [1024, 1], wait_ms=200, each_ms=500))
    assert str(found.severity) == "low"
    assert "The rest of the messages waited for the ACK of the earlier data, 4 s in total" in found.mechanism


@pytest.mark.parametrize(
    "sizes",
    [
        [1460, 1460, 1176, 904],  # 5,000 bytes: sosend passes on 4096 bytes, then 904
        [1460, 1460, 1176, 1460, 444],  # 6,000 bytes, also cut at 4096
    ],
)
def test_a_socket_that_hands_on_four_clusters_cuts_at_4096(tmp_path: Path, sizes: list[int]) -> None:
    (found,) = small(tmp_path, messages(22, sizes))
    assert "are cut at 4,096 bytes" in found.title


def test_messages_a_little_longer_than_full_segments_leave_a_packet_for_next_to_nothing(tmp_path: Path) -> None:
    """A message of 2921 bytes takes two segments of 1460 bytes and one of 1 byte."""
    (found,) = small(tmp_path, messages(22, [1460, 1460, 1]))
    assert found.title == "21 messages are cut at 2,920 bytes, so that the rest is at most an eighth of a segment"
    assert "Full segments of 1,460 bytes end there" in found.mechanism


@pytest.mark.parametrize(
    "sizes",
    [
        [1460, 588],  # cut at the end of a full segment, with much data left
        [1460, 183],  # the rest is more than an eighth of a segment
        [1000, 25],  # no stack has buffers of 1000 bytes
        [1024, 1024],  # writes of 1024 bytes: nothing is cut
        [1024],
    ],
)
def test_messages_that_end_segments_elsewhere_are_not_cut(tmp_path: Path, sizes: list[int]) -> None:
    assert small(tmp_path, messages(22, sizes)) == []
