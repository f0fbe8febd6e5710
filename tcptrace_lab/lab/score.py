"""Compares the engine's verdicts on live transfers with the path's log: `python -m tcptrace_lab.lab.score [NAME…] [--seeds N]`.

The output has one line per experiment, seed and capture point. Then the wrong verdicts follow, grouped by kind, with their frames. The
script needs root. `--keep DIR` keeps the captures for inspection.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.experiment import Experiment, Outcome, run
from tcptrace_lab.lab.networks import truth
from tcptrace_lab.lab.networks.truth import Truth
from tcptrace_lab.lab.trials import TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.engine.segments import Tables

KIND_NAMES = {
    **dict.fromkeys(schema.RESENT, Truth.RESENT),
    "new": Truth.NEW,
    "spurious": Truth.NEEDLESS,
    "out_of_order": Truth.REORDERED,
    "network_duplicate": Truth.COPIED,
}
"""The ground truth that each kind of verdict stands for. A verdict with any other kind is wrong."""

_AGAIN = frozenset({Truth.RESENT, Truth.NEEDLESS})


@dataclass(slots=True)
class Score:
    """The score of the verdicts at one capture point.

    Attributes:
        events: number of packets that were not new, or whose verdict is not `new`.
        exact: number of events whose verdict has the correct kind.
        told_apart: number of events whose verdict is correct about loss, reordering or duplication. At the sender, the verdict must say
            whether a retransmit was needed. At the receiver, the verdict must say whether a packet was late, retransmitted (needed or not),
            or duplicated.
        wrong: for each (truth, kind), the frames of the events with this wrong verdict.
    """

    events: int = 0
    exact: int = 0
    told_apart: int = 0
    wrong: dict[tuple[str, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def __iadd__(self, other: Score) -> Self:
        """Add the counts. `wrong` is not changed, because frame numbers of different captures cannot be combined."""
        self.events += other.events
        self.exact += other.exact
        self.told_apart += other.told_apart
        return self

    @property
    def share(self) -> float:
        """Return the share of the events that `told_apart` counts, or 1 if there are no events."""
        return self.told_apart / self.events if self.events else 1.0


def score(outcome: Outcome, vantage: str, *, ethernet: bool = True) -> Score:
    """Compare the verdicts on both directions of one capture with the log.

    Raises:
        ValueError: the capture and the log have different packets.
    """
    assert outcome.relay is not None  # noqa: S101  (scores exist only for experiments with a path)
    tables = read(outcome.captures[vantage])
    found = Score()
    for from_client, log in ((True, outcome.relay.forward_log), (False, outcome.relay.backward_log)):
        near = from_client is vantage.startswith("client")
        events = truth.at_sender(log, ethernet=ethernet) if near else truth.at_receiver(log, ethernet=ethernet)
        _judge(truth.match(events, rows(tables, from_client=from_client)), near=near, found=found)
    return found


def rows(tables: Tables | Analysis, *, from_client: bool) -> Iterable[dict[str, Any]]:
    """Return the rows of one direction of a capture, with the sequence numbers of the header (`wire_seq`)."""
    side = "client" if from_client else "server"
    isn = tables.connections.select("conn", pl.col(f"{side}_isn").cast(pl.Int64).alias("isn"))
    segments = tables.segments.filter(pl.col("from_client") == from_client)
    wanted = segments.select("frame", "conn", "seq", "payload_bytes", "flags", "ip_id", pl.col("kind").cast(pl.String))
    placed = wanted.join(isn, on="conn", maintain_order="left").with_columns(wire_seq=(pl.col("seq") + pl.col("isn")) % truth.SEQ_SPACE)
    return placed.collect().iter_rows(named=True)


def _judge(pairs: Sequence[tuple[truth.Event, dict[str, Any]]], *, near: bool, found: Score) -> None:
    for event, row in pairs:
        if event.truth is None:
            continue
        kind_name = KIND_NAMES.get(row["kind"])
        allowed = {event.truth, event.otherwise}
        if event.truth is Truth.NEW and kind_name is Truth.NEW:
            continue
        found.events += 1
        exact = kind_name in allowed
        found.exact += exact
        found.told_apart += exact or (not near and kind_name in _AGAIN and event.truth in _AGAIN)
        if not exact:
            found.wrong[event.truth.value, row["kind"]].append(row["frame"])


def main(arguments: list[str] | None = None) -> int:
    """Run the requested experiments and print the scores. Return the exit code."""
    options = _parse(arguments)
    total = Score()
    print(f"{'experiment':28} {'seed':>4} {'vantage':12} {'events':>6} {'apart':>7} {'exact':>7}  wrong: truth > kind, frames")
    try:
        for name in options.names or TRIALS:
            for seed in range(1, options.seeds + 1):
                total += _one(name, seed, options.keep)
    except TcptraceLabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{'all':28} {'':4} {'':12} {total.events:6} {total.share:7.1%} {total.exact / max(total.events, 1):7.1%}")
    return 0


def _one(name: str, seed: int, keep: Path | None) -> Score:
    total = Score()
    with tempfile.TemporaryDirectory(prefix="score-") as work:
        directory = Path(work) if keep is None else keep / f"{name}-{seed}"
        directory.mkdir(parents=True, exist_ok=True)
        outcome = run(seeded(TRIALS[name], seed), directory)
        for vantage in outcome.captures:
            found = score(outcome, vantage, ethernet=TRIALS[name].medium.kind != "tun")
            wrong = "; ".join(f"{was} > {kind} {_some(frames)}" for (was, kind), frames in sorted(found.wrong.items()))
            exact = found.exact / found.events if found.events else 1.0
            print(f"{name:28} {seed:4} {vantage:12} {found.events:6} {found.share:7.1%} {exact:7.1%}  {wrong}", flush=True)
            total += found
    return total


def seeded(experiment: Experiment, seed: int) -> Experiment:
    """Return a copy of the experiment whose path uses the random draws of `seed`."""
    medium = experiment.medium
    forward, backward = replace(medium.forward, seed=seed), replace(medium.backward, seed=seed + 1_000)
    return replace(experiment, medium=replace(medium, forward=forward, backward=backward))


def _some(frames: list[int], most: int = 6) -> str:
    more = f" and {len(frames) - most} more" if len(frames) > most else ""
    return ", ".join(map(str, frames[:most])) + more


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tcptrace_lab.lab.score", description="Compare the engine's verdicts on segments with the path's log."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"experiments (default: all): {', '.join(TRIALS)}")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="run each experiment with the seeds 1 to N (default: 1)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="folder in which the captures remain")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in TRIALS]
    if unknown:
        parser.error(f"no experiment called {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
