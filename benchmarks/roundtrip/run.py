"""Simulates 300 settings drawn at random, and compares our ledger of their captures with the model's own ledger.

    python benchmarks/roundtrip/run.py [sweeps | SEEDS…]

Without arguments, the tables are written to `results.md` beside this file. With `sweeps`, only the second part of this file is written.
With seeds (`7 20-40`), one line per setting is printed.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from roundtrip.compare import WITHIN, Compared, compare
from roundtrip.settings import PROGRAMS, STACK_NAMES, drawn
from roundtrip.sweeps import Sweep, sweep

RESULTS = Path(__file__).with_name("results.md")
SETTINGS = 300
SWEEPS = 160

WORDS = """# The model's own ledger, and ours of its captures

{settings} settings drawn at random (`settings.py`: stacks, MSS, buffers, rates, delays, losses, NODELAY and programs), each captured at
the sender of each direction that carries data. A direction is right if our ledger and the model's own agree on at least 98 % of its life.
`seen.py` says, as code, what a capture cannot show. The third column ignores it, the fourth takes it into account. Run in {took_s:.0f} s
of one core.

{table}

{stacks}

Of all directions' time, {told:.1%} agrees with the model, {shown:.1%} as far as a capture shows it.

The largest remaining confusions: cause of the model → our cause, and the share of a direction's life, summed over all directions that are
wrong:

{confused}

Seeds of wrong directions, for `run.py SEED`: {seeds}

"""

SWEEPS_TITLE = "# Sweeps of message sizes\n"
SWEEPS_WORDS = """
{sweeps} sweeps of echoed messages, three sizes in each KB (`sweeps.py`). A sweep is right if exactly the ranges that the rules predict are
found. A size at the edge of a range may stall in the capture although the rules say that it never does, because the receiver's timer beat
while it was in transit: it counts as "beyond". A size that is found and did not stall is wrong. If messages follow each other at once, all
stalls are as long as the phase between both hosts' timers; with random pauses, some are short by chance. A stall cannot be seen if it adds
less than one RTT (1 ms on a LAN), and a range needs three visible ones. Nothing is reported either if more than a tenth of the other sizes
stall; sizes that the rules call timing-dependent may.

| messages | sweeps | right | ranges | missed | sizes beyond | wrong |
|---|---:|---:|---:|---:|---:|---:|
{swept}

Wrong, one behind the other: {swept_off}.

Wrong, with random pauses: {paused_off}.
"""


def told(seed: int, kind: str, words: str, way: Compared) -> str:
    """Return one direction in a line of text."""
    worst = ", ".join(f"{one} → {other} {share:.1%}" for (one, other), share in Counter(way.confused).most_common(3))
    sender = "client" if way.from_client else "server"
    return f"{seed} {kind} ({sender}) off {way.off_seen_share:.1%} ({way.off_share:.1%}): {worst}; {words}"


def one_by_one(seeds: list[int]) -> None:
    """Print the differences of each seed, and the causes that are confused most often."""
    counts: Counter[str] = Counter()
    confused: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        setting = drawn(seed)
        for way in compare(setting):
            counts["directions"] += 1
            counts["right"] += way.off_share <= WITHIN
            counts["right as shown"] += way.right
            if not way.right:
                confused.update(way.confused)
                print(told(seed, setting.kind, setting.words, way), flush=True)
    print(dict(counts))
    for (one, other), share in confused.most_common(20):
        print(f"{one} → {other}: {share:.2f}")


def ledgers() -> str:
    """Compare all settings, and return the first part of `results.md`."""
    began_s = time.process_time()
    ways: defaultdict[str, list[Compared]] = defaultdict(list)
    by_stack: defaultdict[str, list[Compared]] = defaultdict(list)
    confused: Counter[tuple[str, str]] = Counter()
    off: list[int] = []
    for seed in range(SETTINGS):
        setting = drawn(seed)
        for way in compare(setting):
            ways[setting.kind].append(way)
            by_stack[setting.stack].append(way)
            if not way.right:
                confused.update(way.confused)
                off.append(seed)
    everything = [way for kind in PROGRAMS for way in ways[kind]]
    return WORDS.format(
        settings=SETTINGS,
        took_s=time.process_time() - began_s,
        table=table("programs", {kind: ways[kind] for kind in PROGRAMS} | {"all": everything}),
        stacks=table("stack", {name: by_stack[name] for name in STACK_NAMES}),
        told=1 - sum(way.off_share for way in everything) / len(everything),
        shown=1 - sum(min(way.off_share, way.off_seen_share) for way in everything) / len(everything),
        confused="\n".join(f"- {one} → {other}: {share:.2f}" for (one, other), share in confused.most_common(12)),
        seeds=", ".join(str(seed) for seed in sorted(set(off))) or "none",
    )


def table(of: str, rows: dict[str, list[Compared]]) -> str:
    """Return a table of the number of directions, and how many of them are right."""
    lines = [f"| {of} | directions | right | right as far as shown |", "|---|---:|---:|---:|"]
    for name, found in rows.items():
        right, shown = sum(way.off_share <= WITHIN for way in found), sum(way.right for way in found)
        lines.append(f"| {name} | {len(found)} | {right} ({right / len(found):.0%}) | {shown} ({shown / len(found):.0%}) |")
    return "\n".join(lines)


def sweeps() -> str:
    """Run all sweeps, and return the second part of `results.md`."""
    (line, off), (paused, paused_off) = swept(pauses=False), swept(pauses=True)
    told_off, told_paused_off = ("; ".join(words) or "none" for words in (off, paused_off))
    return SWEEPS_TITLE + SWEEPS_WORDS.format(sweeps=SWEEPS, swept=f"{line}\n{paused}", swept_off=told_off, paused_off=told_paused_off)


def swept(*, pauses: bool) -> tuple[str, list[str]]:
    """Return a line of the table, and a description of each wrong sweep."""
    found: list[Sweep] = [sweep(seed, pauses=pauses) for seed in range(SWEEPS)]
    count, missed = sum(one.ranges for one in found), sum(len(one.missed) for one in found)
    beyond, wrong = sum(len(one.beyond) for one in found), sum(len(one.wrong) for one in found)
    right = sum(one.right for one in found)
    name = "with random pauses" if pauses else "one behind the other"
    off = [
        f"{one.words} ({len(one.missed)} of {one.ranges} missed, {len(one.wrong)} sizes wrong, {one.normal} normal)"
        for one in found
        if not one.right
    ]
    return f"| {name} | {len(found)} | {right} ({right / len(found):.0%}) | {count} | {missed} | {beyond} | {wrong} |", off


def _seeds(word: str) -> list[int]:
    first, _, last = word.partition("-")
    return list(range(int(first), int(last or first) + 1))


if __name__ == "__main__":
    if sys.argv[1:] == ["sweeps"]:
        RESULTS.write_text(RESULTS.read_text().partition(SWEEPS_TITLE)[0] + sweeps())
    elif len(sys.argv) > 1:
        one_by_one([seed for word in sys.argv[1:] for seed in _seeds(word)])
    else:
        RESULTS.write_text(ledgers() + sweeps())
