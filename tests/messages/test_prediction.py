"""The predictions of `tcptrace-lab predict` agree with Comer and Lin's table of buffers and with Liu's ranges.

The command takes its parameters from its options or from a capture.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.cli.commands.predict import _grid, _span
from tcptrace_lab.errors import UsageError
from tcptrace_lab.messages import prediction
from tcptrace_lab.report.pack import unpack
from tcptrace_lab.simulation import At, write_capture
from tcptrace_lab.stacks import STACKS, Host, Link, Read, Setting, Write, simulate
from tests.support import packets, published
from tests.support.captures.size_sweeps import exchange, shuffled, swept
from tests.support.command import only_line, tcptrace_lab

if TYPE_CHECKING:
    from pathlib import Path

K = 1024
ATM = ("--stack", "sunos4", "--mss", "9148", "--send-buffer", "16K", "--receive-buffer", "16K")

COMER_LIN_SLOW = [
    *((16, receive) for receive in (24, 28, 32, 36, 40, 44, 48, 51)),
    *((20, receive) for receive in (40, 44, 48, 51)),
    *((24, receive) for receive in (48, 51)),
]
"""The pairs of send and receive buffers (KB) for which Comer and Lin's Table 2 has a rate below 2 Mb/s."""


def predicted(*arguments: str | Path) -> dict[str, Any]:
    done = tcptrace_lab("predict", *arguments, "--json", "-", "--quiet")
    assert done.returncode == 0, done.stderr.decode()
    document: dict[str, Any] = json.loads(done.stdout)
    published.check("prediction", document)
    return document


def test_liu_s_atm_ranges_as_json() -> None:
    document = predicted(*ATM, "--sizes", "1:50K")
    assert [(one["from_bytes"], one["to_bytes"]) for one in document["ranges"]] == [
        (4 * K + 1, 12 * K - 1),
        (16 * K + 1, 24 * K - 1),
        (28 * K + 1, 36 * K - 1),
        (40 * K + 1, 48 * K - 1),
    ]
    assert {one["stalls"] for one in document["ranges"]} == {"always"}
    assert document["deadlock"]["possible"] is False
    assert len(document["assumptions"]) == 1  # the only assumption is the size of the pieces


def test_every_slow_cell_of_comer_and_lin_can_lock() -> None:
    """In Comer and Lin's table, 14 of 100 cells are slow.

    The model predicts a possible deadlock for all slow cells, and for at most six other cells.
    """
    cells = predicted(*ATM, "--grid", "16K:51K:4K", "--sizes", "1:1K")["grid"]
    can = {(cell["send_buffer_bytes"] // K, cell["receive_buffer_bytes"] // K) for cell in cells if cell["deadlock_possible"]}
    assert len(cells) == 100
    assert set(COMER_LIN_SLOW) <= can
    assert len(can - set(COMER_LIN_SLOW)) <= 6


def test_law_s_buffers_lock_as_irix_has_them_in_force() -> None:
    """IRIX rounds a buffer of 4 KB to 2,920 bytes, and a buffer of 5 KB to 4,380 bytes.

    With 5 KB, a deadlock is possible only if writes leave part of the buffer unused.
    """
    law = ("--stack", "irix6.2", "--mss", "1460", "--copy", "1K", "--sizes", "1:1K")
    four, five = (predicted(*law, "--send-buffer", size, "--receive-buffer", size) for size in ("4K", "5K"))
    assert (four["parameters"]["send_buffer_bytes"], five["parameters"]["send_buffer_bytes"]) == (2920, 4380)
    assert four["rounded"] == [f"the stack rounds the {which} buffer from 4,096 to 2,920 bytes" for which in ("send", "receive")]
    assert (four["deadlock"]["possible"], five["deadlock"]["possible"], five["deadlock"]["possible_if_unused"]) == (True, False, True)


@pytest.mark.parametrize(
    ("send", "copy", "words"),
    [
        ("2800", "1K", "a stream can deadlock: send buffer of 2,800 bytes < 1,460 bytes that the sender waits for + 1,434 bytes that the"),
        ("3000", "1K", "a stream can deadlock: send buffer of 3,000 bytes ≥ 1,460 bytes that the sender waits for + 1,434 bytes that the"),
        ("3800", "4K", "its writes leave more than 906 bytes of the send buffer unused (at most 1,023 bytes can be unused)"),
        ("4096", "4K", "no stream can deadlock: send buffer of 4,096 bytes ≥ 1,460 bytes"),
    ],
)
def test_whether_a_stream_can_lock_is_said_with_what_writes_may_leave_unused(send: str, copy: str, words: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    asked = ("--stack", "sunos4", "--mss", "1460", "--send-buffer", send, "--receive-buffer", "4K", "--copy", copy, "--sizes", "1:1K")
    done = tcptrace_lab("predict", *asked, "-o", page)
    assert words in " ".join(done.stdout.decode().split())
    assert words[1:] in page.read_text().replace("&lt;", "<")


def test_what_a_capture_shows_is_taken_from_it(tmp_path: Path) -> None:
    capture = packets.capture(tmp_path / "sweep.pcap", exchange(shuffled(swept())))
    known = prediction.from_captures([[str(capture)]]).parameters
    assert (known.mss_bytes, known.copy_bytes, known.receive_buffer_bytes) == (1460, 4096, 65160 << 7)
    document = predicted("--from", capture, "--stack", "sunos4", "--send-buffer", "16K", "--receive-buffer", "16K", "--sizes", "1:6K")
    asked = document["parameters"]
    assert (asked["mss_bytes"], asked["send_buffer_bytes"], asked["copy_bytes"]) == (1460, 16 * K, 4096)
    assert (document["ranges"][0]["from_bytes"], document["ranges"][0]["to_bytes"]) == (4097, 5555)
    assert [(one["from_bytes"], one["to_bytes"]) for one in document["measured"]["ranges"]] == [(4200, 5550)]


def swept_capture(path: Path, stack: str) -> Path:
    """Write a capture of echoed messages of many sizes over Ethernet, and return its path.

    Both hosts have this stack and buffers of 16 KB.
    """
    sizes = range(500, 30_000, 700)
    asks = tuple(step for size in sizes for step in (Write(size), Read(size)))
    echoes = tuple(step for size in sizes for step in (Read(size), Write(size)))
    client, server = (Host(STACKS[stack], 16 * K, 16 * K, program=program) for program in (asks, echoes))
    link = Link(10_000_000, 50_000)
    setting = Setting(client, server, link, link, mss_bytes=1460)
    with path.open("wb") as stream:
        write_capture(simulate(setting), setting, stream, at=At.CLIENT)
    return path


@pytest.mark.parametrize(("stack", "copy"), [("sunos4", 4096), ("bsd4.4", 2048)])
def test_a_stack_shows_by_the_heartbeat_of_its_acks_and_the_pieces_of_its_writes(tmp_path: Path, stack: str, copy: int) -> None:
    """In this sweep, both stacks send the same ACKs. The stacks differ in the size of the pieces that a sender copies."""
    capture = swept_capture(tmp_path / "sweep.pcap", stack)
    document = predicted("--from", capture)
    assert (document["stack"]["name"], document["parameters"]["copy_bytes"]) == (stack, copy)
    assert [words.split(":")[0].split(",")[0].split(" is ")[0] for words in document["assumptions"]] == [
        "the stack",
        "the receive buffer",
        "the send buffer",
    ]


def test_what_the_caller_says_is_not_reported_as_assumed(tmp_path: Path) -> None:
    capture = swept_capture(tmp_path / "sweep.pcap", "sunos4")
    said = ("--stack", "sunos4", "--receive-buffer", "16K", "--send-buffer", "16K")
    assert predicted("--from", capture, *said)["assumptions"] == []


def test_a_stack_that_the_capture_does_not_show_is_not_guessed(tmp_path: Path) -> None:
    done = tcptrace_lab("predict", "--from", swept_capture(tmp_path / "sweep.pcap", "solaris2.5"), "--quiet")
    assert done.returncode == 2
    line = only_line(done.stderr)
    assert "the capture does not show the stack" in line
    assert "ACKs more than two segments at a time" in line
    assert "--stack" in line


def test_the_terminal_has_ranges_and_grid_on_stdout_and_what_was_written_on_stderr(tmp_path: Path) -> None:
    done = tcptrace_lab("predict", *ATM, "--grid", "16K:24K:8K", "-o", tmp_path / "page.html")
    assert done.returncode == 0
    words = done.stdout.decode()
    for said in ("4,097", "12,287", "no stream can deadlock", "16K", "24K"):
        assert said in words
    assert done.stderr.startswith(b"tcptrace-lab: page written: ")


def test_the_page_draws_ranges_and_has_a_table_of_buffers(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert tcptrace_lab("predict", *ATM, "--grid", "16K:24K:8K", "-o", page, "--quiet").returncode == 0
    (packed,) = re.findall(r'<script type="application/octet-stream" id="packed">([^<]*)</script>', page.read_text())
    (ranges,) = unpack(packed)
    assert 4097 in ranges["data"][0]["x"]
    assert re.findall(r'<th scope="row">(\w+)</th>', page.read_text()) == ["16K", "24K"]
    assert re.findall(r"<td style=[^>]*>([^<]*)</td>", page.read_text()) == ["62%", "65%!", "24%", "14%"]


def test_linux_needs_no_buffers_and_says_what_it_assumes() -> None:
    document = predicted("--stack", "linux", "--mss", "1448", "--sizes", "1:8K")
    assert document["ranges"] == [{"from_bytes": 4097, "to_bytes": 5543, "stalls": "timing-dependent"}]
    assert document["deadlock"] is None
    assert len(document["assumptions"]) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--mss", "1460"), "the stack is unknown"),
        (("--stack", "vms", "--mss", "1460"), "no rules for the stack 'vms'"),
        (("--stack", "sunos4"), "the MSS is unknown"),
        (("--stack", "sunos4", "--mss", "1460"), "the receive buffer is unknown"),
        (("--stack", "sunos4", "--mss", "0", "--receive-buffer", "16K"), "mss_bytes must be at least 1"),
        (("--stack", "linux", "--mss", "1"), "in pieces of 1 "),
        ((*ATM, "--sizes", "64K"), "not a range of sizes"),
        ((*ATM, "--sizes", "9:1"), "empty range of sizes"),
        ((*ATM, "--sizes", "1:999G"), "are more than"),
        ((*ATM, "--grid", "16K:51K"), "not a grid"),
        ((*ATM, "--grid", "1:64K:1"), "65,536 buffers"),
        ((*ATM, "--grid", "1K:64K:1K"), "a grid of 64"),
        ((*ATM, "--connection", "1"), "--connection needs a capture"),
        ((*ATM, "--separate"), "--separate needs captures"),
        ((*ATM, "-o", "-"), "standard output"),
        (("--from", "nowhere.pcap"), "nowhere.pcap"),
    ],
)
def test_what_cannot_be_predicted_is_reported_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = tcptrace_lab("predict", *arguments, "--quiet")
    assert done.returncode in {2, 3}
    assert words in only_line(done.stderr)


def test_a_grid_has_its_last_size_itself() -> None:
    assert [size // K for size in _grid("16K:51K:4K")] == [16, 20, 24, 28, 32, 36, 40, 44, 48, 51]
    assert _grid("16K:24K:8K") == [16 * K, 24 * K]
    assert _span("1:64K") == (1, 64 * K)
    with pytest.raises(UsageError):
        _grid("16K:51K:0")
