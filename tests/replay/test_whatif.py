"""A model predicts what a change saves. Captures of the schedule with and without the change check the prediction."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.replay import whatif
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.evidence import gather
from tcptrace_lab.replay.model import capacity_bytes
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.whatif import MAX_LEDGER_ERROR, WhatIf, predict
from tests.support import published
from tests.support.command import only_line, tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path


def foretold(name: str, *changes: Changes) -> WhatIf:
    evidence = gather([str(CAPTURES / name)])
    return predict(evidence, reconstruct(evidence), changes)


def life_s(name: str) -> float:
    return gather([str(CAPTURES / name)]).life_ns / 1e9


@pytest.mark.parametrize("medium", ["ethernet", "atm9180", "atm9188", "loopback"])
def test_nodelay_takes_as_long_as_the_capture_of_the_same_schedule_with_it(medium: str) -> None:
    found = foretold(f"{medium}-nagle-on.pcapng", Changes(nodelay=True))
    (one,) = found.predictions
    assert abs(found.fitted.duration_error) < 0.02
    assert one.duration_s == pytest.approx(life_s(f"{medium}-nagle-off.pcapng"), rel=0.1)
    assert one.min_duration_s <= one.duration_s <= one.max_duration_s
    assert one.saved_s == pytest.approx(life_s(f"{medium}-nagle-on.pcapng") - one.duration_s)


def test_twice_the_send_bound_takes_half_of_the_rounds() -> None:
    found = foretold("ethernet-small-send-buffer.pcapng", Changes(send_buffer_bytes=32_768))
    (one,) = found.predictions
    # A round takes 20.4 ms. 200,000 bytes take 13 rounds with a buffer of 16,384 bytes, and 7 rounds with 32,768 bytes. The handshake and
    # the close take equally long with both buffers.
    assert one.saved_s == pytest.approx(6 * 0.0204, rel=0.2)


def test_changes_are_ranked_by_what_they_save_and_useless_ones_save_nothing() -> None:
    nodelay, window = Changes(nodelay=True), Changes(receive_buffer_bytes=1 << 20)
    found = foretold("ethernet-nagle-on.pcapng", window, nodelay)
    assert [one.changes for one in found.predictions] == [nodelay, window]
    assert found.predictions[1].saved_s == pytest.approx(0, abs=0.01)


def test_a_model_that_takes_longer_with_a_larger_buffer_predicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    capture, larger, smaller = "ethernet-small-send-buffer.pcapng", Changes(send_buffer_bytes=32_768), Changes(send_buffer_bytes=8_192)
    (slower,) = foretold(capture, smaller).predictions
    assert slower.saved_s < -0.1  # a smaller buffer makes the transfer longer
    real, asked = whatif._duration_ns, {8_192, 32_768}  # noqa: SLF001  (no capture is sure to make a model go wrong)
    monkeypatch.setattr(
        whatif, "_duration_ns", lambda schedule, *rest: 10**10 if schedule.client.send_buffer_bytes in asked else real(schedule, *rest)
    )
    with pytest.raises(CaptureInsufficient, match="takes longer than before"):
        foretold(capture, larger)
    assert foretold(capture, smaller).predictions[0].duration_s == 10


def test_a_transfer_that_no_model_makes_again_is_refused_with_by_how_much() -> None:
    """The path of the capture reorders packets, and the models' paths cannot do this.

    The best model, an old stack, takes about as long as the capture, but it has other waits.
    """
    with pytest.raises(CaptureInsufficient) as refused:
        foretold("ethernet-reordering-at-server.pcapng", Changes(nodelay=True))
    words = r"no model fits connection 0: the best fit \(\w+\) gives (\d+)% of a direction's time to other causes than the capture"
    said = re.fullmatch(words, refused.value.what)
    assert said is not None, refused.value.what
    assert int(said[1]) > 100 * MAX_LEDGER_ERROR


def test_ends_that_send_at_once_are_refused() -> None:
    with pytest.raises(CaptureInsufficient, match="both ends send at once"):
        foretold("ethernet-two-way.pcapng", Changes(nodelay=True))


@pytest.mark.parametrize(
    ("asked", "mss", "least", "most"), [(8_192, 1_448, 10_136, 11_584), (16_384, 1_448, 20_272, 21_720), (65_536, 9_128, 82_152, 100_408)]
)
def test_a_receive_buffer_takes_what_linux_offered_of_it(asked: int, mss: int, least: int, most: int) -> None:
    # `least` is the largest window in the capture, in whole segments. `most` is one or two segments more. The captures are
    # ethernet-small-receive-window, ethernet-slow-reader and atm9180-slow-reader.
    assert least <= capacity_bytes(asked, mss) < most


def test_the_command_writes_what_it_says(tmp_path: Path) -> None:
    document = tmp_path / "whatif.json"
    done = tcptrace_lab(
        "replay", "whatif", CAPTURES / "ethernet-nagle-on.pcapng", "--nodelay", "--receive-buffer", "1M", "--json", document
    )
    assert done.returncode == 0, done.stderr
    assert max(len(line) for line in done.stdout.decode().splitlines() if "frame.number" not in line) <= 80
    reported = json.loads(document.read_text())
    published.check("whatif", reported)
    assert [one["changes"] for one in reported["predictions"]][-1] == "--receive-buffer 1048576"
    assert {one["changes"] for one in reported["predictions"]} == {
        "--nodelay",
        "--receive-buffer 1048576",
        "--nodelay --receive-buffer 1048576",
    }
    assert reported["fit"]["stack"] == "linux"


def test_a_poor_fit_is_one_line_and_its_exit_code() -> None:
    done = tcptrace_lab("replay", "whatif", CAPTURES / "ethernet-reordering-at-server.pcapng", "--nodelay", "-q")
    assert (done.returncode, "no model fits" in only_line(done.stderr)) == (3, True)
