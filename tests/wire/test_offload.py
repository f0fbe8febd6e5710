"""Super-segments of offload are compared with the segments that they become on the wire.

The captures are hand-written exchanges, and live transfers captured before and after the network card.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

import tcptrace_lab
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import Bulk, Exchanges, Program
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel
from tcptrace_lab.schema import SEGMENTS
from tests.support import packets
from tests.support.captures import offload
from tests.support.judged import judged
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    0.010 C > S .         ack 1
    0.020 C > S FP. 1:4000(3999) ack 1
    0.031 S > C .         ack 4001
"""


def split(path: Path) -> pl.DataFrame:
    tables = tcptrace_lab.read(path)
    return offload.split(tables.segments, tables.connections).collect()


def test_a_super_segment_becomes_full_segments_and_a_rest(tmp_path: Path) -> None:
    """A super-segment of 3,999 bytes is split into segments of 1,460, 1,460 and 1,079 bytes.

    Only the last segment has PSH (8) and FIN (1). The second and the third segment leave in the burst of the first one.
    """
    rows = split(packets.capture(tmp_path / "super.pcap", TEXT)).filter(pl.col("frame") == 4)
    assert rows.select("seq", "payload_bytes", "in_flight_bytes", "piece", "pieces").rows() == [
        (1, 1460, 0, 0, 3),
        (1461, 1460, 1460, 1, 3),
        (2921, 1079, 2920, 2, 3),
    ]
    assert rows["flags"].to_list() == [16, 16, 16 + 8 + 1]
    assert rows["usable_window_bytes"].to_list() == [65_160, 63_700, 62_240]
    assert rows["released_by"].to_list()[1:] == ["burst", "burst"]
    assert rows["captured_payload_bytes"].sum() == 3999


def test_segments_within_the_mss_stay_as_they_are(tmp_path: Path) -> None:
    for path in (
        packets.capture(tmp_path / "plain.pcap", TEXT.replace("1:4000(3999)", "1:1461(1460)").replace("4001", "1462")),
        CAPTURES / "ethernet-loss.pcapng",
    ):
        rows = split(path)
        assert rows.select(SEGMENTS.names).equals(tcptrace_lab.read(path).segments.collect())
        assert rows["pieces"].unique().to_list() == [1]


def test_pieces_add_up_to_what_was_counted() -> None:
    path = CAPTURES / "ethernet-offload-bulk.pcapng.gz"
    (kernel,) = [1393]  # tcpi_data_segs_out in the JSON file of the capture
    rows = split(path)
    assert rows.filter(pl.col("payload_bytes") > 0).height == judged(path)["client_wire_data_segments"] == kernel
    assert rows["payload_bytes"].sum() == 2_000_000
    assert rows["payload_bytes"].max() == 1448


SAME = (
    "vantage",
    "vantage_confidence",
    "vantage_known_by",
    *(
        f"{side}_{name}"
        for side in ("client", "server")
        for name in (
            *("wire_data_segments", "full_segment_bytes", "initial_flight_bytes", "initial_flight_segments", "small_in_flight"),
            *("nagle", "nagle_confidence", "nagle_holds", "nagle_holds_over_full", "ack_policy", "ack_timer_ms", "ack_timer_kind"),
            *("acks_by_segments", "stretch_acks", "delayed_acks", "syn_options", "stack_guess"),
        )
    ),
)
"""Values that are equal in captures before and after the network card."""


@pytest.mark.live
def test_before_and_behind_the_card_the_same_is_concluded(tmp_path: Path) -> None:
    """The network card splits super-segments. Each transfer is captured at two points: before and after the card.

    One transfer has bulk data, and the other has small requests.
    """
    path = PathModel(delay_s=0.01)  # without a rate limit, each ACK is clearly prompt or clearly delayed
    medium = Medium("tap", 1_500, offloads=True, forward=path, backward=path)
    programs: dict[str, Program] = {"bulk": Bulk(300_000), "exchanges": Exchanges(writes_bytes=(4_000, 100), answer_bytes=3_000, count=6)}
    for name, program in programs.items():
        folder = tmp_path / name
        folder.mkdir()
        done = run(replace(Experiment(medium, program), vantages=("client", "client-wire")), folder)
        whole, cut = (judged(done.captures[vantage]) for vantage in ("client", "client-wire"))
        assert whole["client_super_segments"] > cut["client_super_segments"] == 0, name
        assert {key: whole[key] for key in SAME} == {key: cut[key] for key in SAME}, name
        assert whole["quality_reasons"] == ["offload"], name
