"""Runs every published experiment in the models, and writes `results.md` beside this file: `python benchmarks/papers/run.py`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

from papers import abrams_chen, comer_lin, law, liu, mosher, published
from tcptrace_lab.stacks.events import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

RESULTS = Path(__file__).with_name("results.md")

PHASES = 20
"""Number of phases over which round trips of 8 KB are averaged. They are 10 ms apart."""

USUAL_MS = (160, 300)
"""The usual range of means by phase (ms). It holds if the delayed-ACK timers of the hosts do not fire close together."""


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(str(cell) for cell in row) + " |" for row in rows)])


def percent(modelled: float, measured: float) -> str:
    """Return the relative error of the model as text."""
    return f"{100 * (modelled / measured - 1):+.1f} %"


def comer_lin_tables() -> str:
    """Return the results of both grids.

    The grids show one phase and judge four phases. The slow cells are also run in long transfers. The ablations leave out one rule each.
    """
    parts = ["## Comer & Lin 1994; Liu et al. 1995, tables 2 and 3", comer_lin.__doc__ or ""]
    for no_delay in (False, True):
        measured = published.comer_lin(no_delay=no_delay)
        runs = [{cell: comer_lin.mbps(*cell, no_delay=no_delay, phase_ns=phase) for cell in measured} for phase in comer_lin.PHASES_NS]
        right = [sum(comer_lin.agrees(measured[cell], run[cell]) for cell in measured) for run in runs]
        sizes = sorted({send for send, _ in measured})
        grid = [[f"{send}K", *(f"{runs[0][send, receive]:.2f} ({measured[send, receive]:.2f})" for receive in sizes)] for send in sizes]
        name = "Table 3 (TCP_NODELAY)" if no_delay else "Table 2"
        found = f"Slow or fast as measured: {', '.join(map(str, right))} of {len(measured)} cells at the four phases."
        parts += [
            f"### {name}\n\n{found} Mb/s of the model at the first phase, and as measured:",
            table(["send \\ receive", *(f"{size}K" for size in sizes)], grid),
        ]
        slow = {cell: value for cell, value in measured.items() if value < comer_lin.SLOW_MBPS}
        rows: list[list[object]] = []
        for cell, value in slow.items():
            modelled = comer_lin.mbps(*cell, no_delay=no_delay, transfer_bytes=comer_lin.LONG_TRANSFER_BYTES)
            rows.append([f"{cell[0]}K / {cell[1]}K", value, f"{modelled:.3f}", percent(modelled, value)])
        parts += ["Slow cells in transfers of 8 MB:", table(["send / receive", "measured", "model", "off"], rows)]
    reads = []
    for no_delay in (False, True):
        measured = published.comer_lin(no_delay=no_delay)
        run = {cell: comer_lin.mbps(*cell, no_delay=no_delay, read_bytes=2 * comer_lin.CALL_BYTES) for cell in measured}
        reads.append(sum(comer_lin.agrees(measured[cell], run[cell]) for cell in measured))
    parts.append(f"With reads of 8 KB: {reads[0]} of 100 cells of Table 2 and {reads[1]} of Table 3 right.")
    measured = published.comer_lin(no_delay=False)
    without_share = {cell: comer_lin.mbps(*cell, stack=liu.without("percent")) for cell in measured}
    rounded = {cell: comer_lin.mbps(*cell, mss_bytes=8192) for cell in measured}
    for name, run in (("without the 35 % rule", without_share), ("with the MSS rounded to 8192", rounded)):
        parts.append(f"Table 2 {name}: {sum(comer_lin.agrees(measured[c], run[c]) for c in measured)} of {len(measured)} cells right.")
    return "\n\n".join(parts)


def liu_ranges() -> str:
    """Return the results for every message size over ATM and Ethernet, the ablations, and the round trips."""
    parts = ["## Liu et al. 1995: sizes that stall", liu.__doc__ or ""]
    sizes = range(1, liu.LARGEST_BYTES + 1)
    for atm, expected in ((True, liu.published_atm()), (False, liu.published_ethernet())):
        line = "ATM" if atm else "Ethernet"
        found = liu.ranges(sizes, lambda size, atm=atm: liu.stalls(size, atm=atm))  # type: ignore[misc]
        cured = not any(liu.stalls(size, atm=atm, no_delay=True) for size in liu.edges(expected))
        parts.append(
            f"{line}, every size from 1 to {liu.LARGEST_BYTES:,}: "
            f"{'exactly the published ranges' if found == expected else f'not the published ranges: {found}'}; "
            f"with NODELAY {'none' if cured else 'some'} of the sizes at their edges stalls."
        )
        sample = range(1, liu.LARGEST_BYTES, 211)
        rows = []
        for rule in ("copy", "half", "segments", "percent"):
            stack = liu.without(rule)
            wrong = sum(liu.stalls(size, atm=atm, stack=stack) != liu.inside(size, expected) for size in sample)
            rows.append([rule, f"{wrong} of {len(sample)}"])
        parts += [f"{line}: without one rule, sizes of a sample that are wrong:", table(["rule", "wrong"], rows)]
    means = []
    for step in range(PHASES):
        trips = liu.round_trips(8192, 20, every_ns=1_010_000_000, server_phase_ns=(step * 10 + 5) * NS_PER_MS)
        means.append(sum(trips) / len(trips) / NS_PER_MS)
    usual = sum(USUAL_MS[0] <= mean <= USUAL_MS[1] for mean in means)
    parts.append(
        f"Round trip of 8 KB, mean over {PHASES} phases: {sum(means) / len(means):.0f} ms (published: 200); by phase "
        f"{min(means):.0f} to {max(means):.0f} ms, {USUAL_MS[0]} to {USUAL_MS[1]} at {usual} of them. "
        "The way out waits 0 to 200 ms, by when it is sent; the way back as long as one host's heartbeat follows the other's."
    )
    trips = liu.round_trips(8192, 12, every_ns=1_010_000_000)
    tooth = ", ".join(f"{trip / NS_PER_MS:.0f}" for trip in trips)
    parts.append(f"Their alarm of one second, 10 ms late each time: {tooth} ms (a saw-tooth).")
    return "\n\n".join(parts)


def law_deadlock() -> str:
    """Return the throughput for each size of the buffers."""
    rows = [
        [size, f"{law.mbps(size):.3f}", f"{law.mbps(size, no_delay=True):.2f}", f"{law.mbps(size, stack='bsd4.4'):.3f}"]
        for size in (3072, 4096, 4379, 4380, 5120, 8192)
    ]
    irix, solaris = law.blocked_after_bytes(61_440), law.blocked_after_bytes(8192, stack="solaris2.5")
    slept = f"A program that writes segments first sleeps after {irix:,} bytes on a buffer of 61,440 (measured: 61,320),"
    return "\n\n".join(
        [
            "## Law 1998: writes of 1 KB over Ethernet",
            law.__doc__ or "",
            "Measured: 0.04 Mb/s at 4 KB, 6.3 with NODELAY, no lock above 3 segments.",
            table(["buffers", "Mb/s", "with NODELAY", "4.4BSD, which rounds up"], rows),
            f"{slept} on Solaris after {solaris:,} on one of 8,192 (measured: 8,760).",
        ]
    )


def mosher_calls() -> str:
    """Return the number of calls by routine and by size."""
    measured = published.mosher_calls()
    modelled = {size: mosher.calls(size) for size in mosher.SIZES}
    rows = [
        [routine, *(f"{modelled[size][routine]:,} ({percent(modelled[size][routine], measured[routine][size])})" for size in mosher.SIZES)]
        for routine in modelled[1]
    ]
    return "\n\n".join(
        [
            "## Mosher 1985: calls for 10,000 writes",
            mosher.__doc__ or "",
            table(["routine", *(f"{size} bytes" for size in mosher.SIZES)], rows),
        ]
    )


def abrams_chen_tables() -> str:
    """Return the results for two PCs, and for figure 8."""
    pcs = abrams_chen.between_pcs()
    rows: list[list[object]] = [
        ["40 KB, ms", 345.452, f"{pcs.ms:.1f}", percent(pcs.ms, 345.452)],
        ["idle", "45.3 %", f"{100 * pcs.idle_share:.1f} %", percent(pcs.idle_share, 0.453)],
    ]
    for kib, measured in ((1, 1.677), (2, 2.06), (3, None)):
        found = abrams_chen.into_the_d310(kib * 1024).mbps
        rows.append([f"figure 8, {kib}K, Mb/s", measured or "like 2K", f"{found:.3f}", percent(found, measured) if measured else ""])
    return "\n\n".join(
        [
            "## Abrams & Chen 1991",
            abrams_chen.__doc__ or "",
            f"Segments of the transfer: {' + '.join(map(str, pcs.segments[:4]))} and so on; an ACK after {pcs.acks[0] - 1:,} bytes each.",
            table(["", "measured", "model", "off"], rows),
        ]
    )


def main() -> int:
    """Run all experiments, print the time of each, and write the results."""
    parts = ["# The published experiments, modelled\n\nWritten by `python benchmarks/papers/run.py`; do not edit."]
    every: tuple[Callable[[], str], ...] = (comer_lin_tables, liu_ranges, law_deadlock, mosher_calls, abrams_chen_tables)
    for part in every:
        since = time.monotonic()
        parts.append(part())
        print(f"{part.__name__}: {time.monotonic() - since:.0f} s", flush=True)
    RESULTS.write_text("\n\n".join(part.strip() for part in parts) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
