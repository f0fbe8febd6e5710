"""The engine returns equal tables of judged waits from memory and from temporary files. A full disk gives a clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import _core, schema
from tcptrace_lab.engine import reread
from tcptrace_lab.errors import OutputUnwritable

if TYPE_CHECKING:
    from pathlib import Path

BATCH_ROWS = 4096


def _worth() -> list[tuple[int, int, float, bool, bool]]:
    """Return limits that accept the waits of every cause, even the shortest ones."""
    return [(code, 1, 0.0, False, False) for code in range(len(schema.CAUSES))]


def _engine(capture: Path, **settings: Any) -> _core.Engine:
    return _core.Engine([str(capture)], BATCH_ROWS, columns=[], ledger=list(schema.LEDGER.names), worth=_worth(), **settings)


def _table(stream: _core.ArrowStream) -> pl.DataFrame:
    data: Any = stream
    return pl.DataFrame(data)


def _tables(capture: Path, **settings: Any) -> dict[str, pl.DataFrame]:
    engine = _engine(capture, **settings)
    pulled = list(reread.pulled_all(engine))
    tables = {name: pl.concat([getattr(rows, name) for rows in pulled]) for name in ("accounts", "ledger", "notes")}
    ending = {"kinds": engine.kinds(), "waits": engine.waits(), "locks": engine.locks(), "directions": engine.directions()}
    return tables | {name: _table(stream) for name, stream in ending.items()}


@pytest.fixture
def capture(request: pytest.FixtureRequest) -> Path:
    return request.config.rootpath / "captures" / "ethernet-random-loss.pcapng"


def test_waits_that_go_to_a_temporary_file_come_to_the_same(capture: Path) -> None:
    in_memory, spooled = _tables(capture), _tables(capture, waits_memory_bytes=1000)
    assert not in_memory["ledger"].is_empty()
    for name, table in in_memory.items():
        assert table.equals(spooled[name]), name


def test_no_room_for_waits_is_a_clean_error(capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    with pytest.raises(OutputUnwritable, match="temporary files"):
        list(reread.pulled_all(_engine(capture, waits_memory_bytes=1000)))
    with pytest.raises(FileNotFoundError):
        _engine(capture, waits_memory_bytes=1000).kinds()


def test_the_ledger_fills_every_life_and_sums_to_the_accounts(capture: Path) -> None:
    tables = _tables(capture)
    ns = pl.col("end_ns") - pl.col("start_ns")
    by_cause = tables["ledger"].group_by("conn", "from_client", "cause").agg(ns=ns.sum())
    accounts = tables["accounts"]
    for conn, from_client, cause, spent in by_cause.iter_rows():
        side = "client" if from_client else "server"
        column = f"{side}_{cause.replace('-', '_')}_ns"
        assert accounts.filter(pl.col("conn") == conn)[column].item() == spent
    total = accounts.select(pl.sum_horizontal("^.*_ns$")).to_series().sum()
    assert total == by_cause["ns"].sum()


def test_kinds_count_the_intervals_and_their_median_is_exact(capture: Path) -> None:
    tables = _tables(capture)
    ns = pl.col("end_ns") - pl.col("start_ns")
    by = ["conn", "from_client", "cause"]
    reported = tables["ledger"].group_by(by).agg(ns=ns.sum(), waits=pl.len(), median_ns=ns.median()).sort(by)
    kinds = reread.frame(_engine(capture).kinds(), schema.LEDGER).sort(by)
    assert kinds.select(*by, "ns", "waits", "median_ns").equals(reported)


def test_a_cause_that_there_is_not_is_refused(capture: Path) -> None:
    with pytest.raises(ValueError, match="unknown cause"):
        _core.Engine([str(capture)], worth=[(len(schema.CAUSES), 1, 0.0, False, False)])


def test_nothing_is_judged_unless_it_is_asked_for(capture: Path) -> None:
    engine = _core.Engine([str(capture)], BATCH_ROWS)
    pulled = list(reread.pulled_all(engine))
    assert all(table.is_empty() for rows in pulled for table in (rows.accounts, rows.ledger, rows.notes))
    assert all(_table(stream).is_empty() for stream in (engine.kinds(), engine.waits(), engine.locks(), engine.directions()))
