"""`verify` distinguishes two causes of wrong TCP checksums.

Either the path damaged the segment, or the network card fills in the checksum later. tshark calculates the checksums. The tests damage a
frame by flipping a bit in the last byte of its data.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpkt
import jsonschema

from tcptrace_lab import errors
from tcptrace_lab.cli import run
from tcptrace_lab.cli.tables.differences import headline
from tcptrace_lab.verify import verify
from tcptrace_lab.verify.output import write_json
from tests.support import needs
from tests.support.packets import capture

if TYPE_CHECKING:
    import pytest

SCHEMA = json.loads((Path(errors.__file__).parent / "outputs/schemas/verify.schema.json").read_text())

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK>
    0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK>
    0.011 C > S  .          ack 1  win 64240
"""

LOSS = f"""{HANDSHAKE}
    0.020 C > S P. 1:101    ack 1
    0.030 S > C .  ack 101  win 65160
    0.040 C > S P. 101:201  ack 1
    1.240 C > S P. 101:201  ack 1
    1.250 S > C .  ack 201  win 65160
"""
"""The server discards frame 6. Frame 7 retransmits it after a timeout."""


def damaged(path: Path, *frames: int) -> Path:
    """Flip a bit in the last byte of each frame whose number is in `frames`. Return the path."""
    with path.open("rb") as file:
        packets = list(dpkt.pcap.Reader(file))
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for number, (time, data) in enumerate(packets, 1):
            writer.writepkt(data[:-1] + bytes([data[-1] ^ 1]) if number in frames else data, time)
    return path


def reported(path: Path) -> dict[str, Any]:
    """Return the part of the JSON document about checksums."""
    needs.program("tshark")
    stream = io.BytesIO()
    done = verify(path, ["tshark"])
    assert done.unexplained == 0, headline(done)
    write_json(done, stream)
    document = json.loads(stream.getvalue())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    checksums: dict[str, Any] = document["checksums"]
    return checksums


def test_right_checksums_are_counted_and_no_more(tmp_path: Path) -> None:
    assert reported(capture(tmp_path / "fine.pcap", LOSS)) == {"checked": 8, "bad": 0, "lost_by_corruption": 0, "directions": []}


def test_segment_that_was_damaged_and_sent_again_is_a_loss_by_corruption(tmp_path: Path) -> None:
    found = reported(damaged(capture(tmp_path / "damaged.pcap", LOSS), 6))
    assert (found["checked"], found["bad"], found["lost_by_corruption"]) == (8, 1, 1)
    (direction,) = found["directions"]
    assert (direction["connection"], direction["from_client"], direction["verdict"]) == (0, True, "corruption")
    assert (direction["bad_with_data"], direction["retransmitted"], direction["frames"]) == (1, 1, [7])


def test_segments_that_arrive_with_wrong_checksums_are_the_cards(tmp_path: Path) -> None:
    """Two data segments of the client have wrong checksums. The server acknowledges both, and the client retransmits neither."""
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101    ack 1
        0.030 S > C .  ack 101  win 65160
        0.040 C > S P. 101:201  ack 1
        0.050 S > C .  ack 201  win 65160
        """
    found = reported(damaged(capture(tmp_path / "offload.pcap", text), 4, 6))
    assert (found["bad"], found["lost_by_corruption"]) == (2, 0)
    assert [one["verdict"] for one in found["directions"]] == ["offload"]


def test_resend_of_another_segment_does_not_make_a_wrong_checksum_corruption(tmp_path: Path) -> None:
    """Frame 4 has a wrong checksum, but it arrives. Frame 6 has a correct checksum and is lost."""
    found = reported(damaged(capture(tmp_path / "both.pcap", LOSS), 4))
    assert [(one["retransmitted"], one["verdict"]) for one in found["directions"]] == [(0, "offload")]


def test_cut_segments_are_not_checked(tmp_path: Path) -> None:
    found = reported(capture(tmp_path / "cut.pcap", LOSS, snaplen_bytes=96))
    assert found["checked"] == 5, "those without data"


def test_people_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    needs.program("tshark")
    assert run(["verify", str(damaged(capture(tmp_path / "damaged.pcap", LOSS), 6)), "--without", "tcptrace"]) == 0
    told_lines = " ".join(capsys.readouterr().out.split())
    assert "TCP checksums: 1 of 8 are wrong; 1 segment with data damaged and retransmitted" in told_lines
