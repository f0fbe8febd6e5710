"""Compares predictions of `replay whatif` with real transfers, each made unchanged and with the change.

    python benchmarks/replay/whatif.py [--wide] [-o DIR] [--drawn N] [--seed S] [--part I/N] [--only-make] [--again DIR]

The transfers come from `whatif_cases.py`. They are those of known cause and more of their kinds, or random ones with `--wide`. Each
transfer is made twice between namespaces: unchanged, and with NODELAY, a larger receive buffer or a larger send bound. The prediction uses
only the first capture.

The script prints a table and its summary: the median and the 90th percentile of the errors, the number of measured times within the
predicted range, and the width of this range.

It needs root and dumpcap, and it takes three minutes for 60 transfers. `-o` keeps the captures, `--only-make` makes no prediction, and
`--again` uses the captures of an earlier run. `--part 1/4` makes every fourth transfer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whatif_cases import alike, wide

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.experiment import run
from tcptrace_lab.replay.changes import Changes
from tcptrace_lab.replay.evidence import gather
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.whatif import predict

if TYPE_CHECKING:
    from whatif_cases import Case

MEDIAN_BOUND, NINTH_DECILE_BOUND = 0.05, 0.15
ATTEMPTS = 3


def make(case: Case, folder: Path) -> None:
    """Make both transfers of a case and write them to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, experiment in (("original", case.experiment), ("changed", case.changed)):
        own = folder / stem
        own.mkdir(exist_ok=True)
        for attempt in range(ATTEMPTS):
            try:
                run(experiment, own)
                break
            except TcptraceLabError:
                if attempt + 1 == ATTEMPTS:
                    raise
    (folder / "case.json").write_text(json.dumps({"name": case.name, "changes": case.changes.words(), "size": _size(case.changes)}))


def _size(changes: Changes) -> list[int | None]:
    return [changes.send_buffer_bytes, changes.receive_buffer_bytes]


def judge(folder: Path) -> dict[str, Any]:
    """Return the predicted and the measured effect of the change."""
    told = json.loads((folder / "case.json").read_text())
    send, receive = told["size"]
    changes = Changes(nodelay="--nodelay" in told["changes"], send_buffer_bytes=send, receive_buffer_bytes=receive)
    evidence = gather([str(folder / "original" / "client.pcapng")])
    measured_s = gather([str(folder / "changed" / "client.pcapng")]).life_ns / 1e9
    line = {"name": told["name"], "change": told["changes"], "original_s": evidence.life_ns / 1e9, "measured_s": measured_s}
    try:
        foretold = predict(evidence, reconstruct(evidence), [changes])
    except TcptraceLabError as error:
        return line | {"refused": error.what}
    (one,) = foretold.predictions
    return line | {
        "fit": foretold.fitted.duration_error,
        "predicted_s": one.duration_s,
        "min_duration_s": one.min_duration_s,
        "max_duration_s": one.max_duration_s,
        "error": one.duration_s / measured_s - 1,
    }


def show(lines: list[dict[str, Any]]) -> bool:
    """Print the table and its summary. Return whether the bounds hold."""
    print("| transfer | change | took | model of it | predicted | range | measured | error |\n|---|---|---|---|---|---|---|---|")
    for line in lines:
        begin = f"| {line['name']} | `{line['change']}` | {line['original_s']:.3f} s "
        if "refused" in line:
            print(f"{begin}| refused: {line['refused']} | | | {line['measured_s']:.3f} s | |")
            continue
        print(
            f"{begin}| {line['fit']:+.1%} | {line['predicted_s']:.3f} s "
            f"| {line['min_duration_s']:.3f}–{line['max_duration_s']:.3f} s | {line['measured_s']:.3f} s | {line['error']:+.1%} |"
        )
    errors = sorted(abs(line["error"]) for line in lines if "error" in line)
    if len(errors) < 2:  # noqa: PLR2004
        return False
    median, ninth = statistics.median(errors), statistics.quantiles(errors, n=10, method="inclusive")[8]
    inside = sum(line["min_duration_s"] <= line["measured_s"] <= line["max_duration_s"] for line in lines if "error" in line)
    width = statistics.median((line["max_duration_s"] - line["min_duration_s"]) / line["predicted_s"] for line in lines if "error" in line)
    print(
        f"\n{len(errors)} predictions ({len(lines) - len(errors)} refused): median error {median:.1%}, ninth decile {ninth:.1%}; "
        f"{inside} measured times lie in the range that was given (median width: {width:.0%} of the time)."
    )
    return bool(median <= MEDIAN_BOUND and ninth <= NINTH_DECILE_BOUND)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison. Return 1 if the bounds do not hold."""
    parser = argparse.ArgumentParser(
        prog="python benchmarks/replay/whatif.py", description="Predictions of what a change does, and what it did."
    )
    parser.add_argument("--drawn", type=int, default=60, metavar="N", help="so many drawn transfers of all kinds, of which those that fit")
    parser.add_argument("--wide", action="store_true", help="draw widely, and none of the fixed ones")
    parser.add_argument("--seed", type=int, default=4, metavar="S", help="of what is drawn")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="only every Nth, from the Ith on")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="keep the captures here")
    parser.add_argument("--only-make", action="store_true", help="foretell nothing yet (with -o)")
    parser.add_argument("--again", type=Path, metavar="DIR", help="judge what is kept here")
    options = parser.parse_args(arguments)
    if options.again:
        return int(not show([judge(path.parent) for path in sorted(options.again.glob("*/case.json"))]))
    first, every = (int(word) for word in options.part.split("/"))
    with tempfile.TemporaryDirectory() as scratch:
        base = options.output or Path(scratch)
        drawn = (wide if options.wide else alike)(options.drawn, options.seed)
        chosen = [(number, case) for number, case in enumerate(drawn) if number % every == first - 1]
        for number, case in chosen:
            make(case, base / f"{number:03}")
        if options.only_make:
            return 0
        return int(not show([judge(base / f"{number:03}") for number, _ in chosen]))


if __name__ == "__main__":
    sys.exit(main())
