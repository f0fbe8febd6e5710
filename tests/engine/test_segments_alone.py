"""The engine can return segments without the tables of connections and departures. The rows of segments are then unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import schema
from tcptrace_lab._core import Engine
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

_CAPTURES = sorted((ROOT / "captures").rglob("*.pcap*"))
_JUDGED = schema.SEGMENTS.names[: schema.SEGMENTS.names.index("wait_ns")]


@pytest.mark.parametrize("capture", _CAPTURES, ids=lambda capture: capture.name)
def test_the_same_segments_without_connections_and_departures(capture: Path) -> None:
    everything = Engine([str(capture)])
    alone = Engine([str(capture)], columns=_JUDGED, summaries=False)
    rows = pl.DataFrame(everything.segments())
    assert rows.height > 0
    assert_frame_equal(pl.DataFrame(alone.segments()), rows.select(_JUDGED))
    assert_frame_equal(pl.DataFrame(alone.revisions()), pl.DataFrame(everything.revisions()))
    assert pl.DataFrame(alone.connections()).is_empty()
    assert alone.info() == everything.info()
