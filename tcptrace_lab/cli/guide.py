"""What help, the man page and the docs say of each command beside its options: one line, and examples that can be typed as they stand.

A new command gets its entry here; a test holds that each has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer
    from typer.models import CommandInfo

WIDTH = 78
"""Columns of an example: help indents it by two."""


class Guide(NamedTuple):
    """One command.

    Attributes:
        short: its line in the list of commands.
        examples: what can be typed, and what it does.
    """

    short: str
    examples: tuple[tuple[str, str], ...]


GUIDES = {
    "analyze": Guide(
        "Where the time of a capture's connections went.",
        (
            ("tcptrace-lab analyze slow.pcapng", "verdict and findings, and a report in reports/slow.html"),
            ("tcptrace-lab analyze slow.pcapng --markdown -", "the same for a ticket, as Markdown"),
            ("tcptrace-lab analyze slow.pcapng --json - -q | jq .verdict", "for programs"),
            ("tcptrace-lab analyze slow.pcapng --whatif", "and what each remedy brings, by models of the stacks"),
            ("tcptrace-lab analyze ring_*.pcap -o both.html", "several files are one capture, merged by time"),
            ("tcptrace-lab analyze --pair at-client.pcap at-server.pcap", "two capture points: what the path did"),
            ('tcptrace-lab analyze slow.pcap --where "server_port = 443" --fail-on medium', "some connections; exit code 1 for a gate"),
            ("tcpdump -i eth0 -s 128 -c 100000 -w - tcp | tcptrace-lab analyze -", "from a pipe"),
        ),
    ),
    "annotate": Guide(
        "A copy for Wireshark, with findings as comments.",
        (("tcptrace-lab annotate slow.pcap -o told.pcapng && wireshark told.pcapng", "each finding stands at its frames"),),
    ),
    "archive": Guide("Look into archives of many captures.", ()),
    "archive gc": Guide(
        "Remove what no capture needs any more.", (("tcptrace-lab archive gc archive/", "results of other versions, and halves"),)
    ),
    "archive list": Guide("The captures of an archive.", (("tcptrace-lab archive list archive/", "with their findings and state"),)),
    "archive query": Guide(
        "SQL over the tables of an archive.",
        (('tcptrace-lab archive query archive/ "select id, cost_ns from findings"', "over all captures"),),
    ),
    "archive tables": Guide("Tables and columns of an archive.", (("tcptrace-lab archive tables archive/", "what a query can name"),)),
    "batch": Guide(
        "Analyze thousands of captures into an archive.",
        (("tcptrace-lab batch captures/ -o archive/", "what is there already is not done again"),),
    ),
    "capture": Guide(
        "Capture live, then analyze what was captured.",
        (
            ("sudo tcptrace-lab capture --list", "what can be captured from"),
            ('sudo tcptrace-lab capture -i eth0 --filter "tcp port 443" --duration 60', "a minute of it"),
            ("sudo tcptrace-lab capture -i eth0 --snaplen 128 --ring 5x100M", "until Ctrl-C; the last 500 MB are kept"),
        ),
    ),
    "compare": Guide(
        "Before and after: what changed, and whether by chance.",
        (
            ("tcptrace-lab compare before.pcap after.pcap", "one capture of each"),
            ("tcptrace-lab compare before-*.pcap vs after-*.pcap -o difference.html", "repetitions: differences can be tested"),
            ("tcptrace-lab compare run-*.pcap --repetitions", "means and 95 % intervals of one experiment"),
            ("tcptrace-lab compare base-*.pcap vs new-*.pcap --fail-on regression -q", "a gate: exit code 1 if slower beyond chance"),
        ),
    ),
    "export": Guide(
        "Tables, tcptrace's listing, or graphs for xplot.",
        (
            ("tcptrace-lab export slow.pcap -o segments.parquet", "a row per TCP segment"),
            ("tcptrace-lab export slow.pcap --table ledger --format csv", "each interval of time and its cause"),
            ("tcptrace-lab export slow.pcap --table messages --format ndjson", "a row per application message"),
            ("tcptrace-lab export call.pcap --table flows --format csv", "a row per UDP flow: pace, sizes, losses"),
            ("tcptrace-lab export slow.pcap --format tcptrace", "as tcptrace -lrW says it"),
            ("tcptrace-lab export slow.pcap --format xplot -o graphs", "a2b_tsg.xpl, a2b_rtt.xpl, …"),
        ),
    ),
    "lab": Guide("Live experiments on paths of this machine's own.", ()),
    "lab list": Guide("The experiments in the package.", (("tcptrace-lab lab list", "those of the published studies first"),)),
    "lab show": Guide("An experiment's file, to read or to change.", (("tcptrace-lab lab show NAME > own.toml", "a NAME of lab list"),)),
    "lab keys": Guide("Every key of an experiment's file.", (("tcptrace-lab lab keys", "with what each means"),)),
    "lab run": Guide(
        "Perform an experiment, analyze and report it.",
        (
            ("sudo tcptrace-lab lab run NAME --short", "a NAME of lab list, in its short form"),
            ("sudo tcptrace-lab lab run own.toml -o results/", "one of your own"),
        ),
    ),
    "predict": Guide(
        "Message sizes that stall, by a stack's rules.",
        (
            (
                (
                    "tcptrace-lab predict --stack sunos4 --mss 9148 --send-buffer 16K \\\n"
                    "      --receive-buffer 16K --grid 16K:51K:4K -o grid.html"
                ),
                "all pairs of buffers",
            ),
            ("tcptrace-lab predict --from slow.pcap", "with what the capture tells, and what had to be assumed"),
        ),
    ),
    "replay": Guide("Play a captured transfer again.", ()),
    "replay packets": Guide(
        "Send the frames of a capture into an interface.",
        (
            ("sudo tcptrace-lab replay packets slow.pcap -i veth0 --dry-run", "what would be sent"),
            ("sudo tcptrace-lab replay packets slow.pcap -i veth0 --speed 2x", "twice as fast as they were"),
            ("sudo tcptrace-lab replay packets slow.pcap -i lo --topspeed", "without waiting"),
        ),
    ),
    "replay transfer": Guide(
        "A captured transfer again, over real sockets.",
        (
            ("sudo tcptrace-lab replay transfer slow.pcap", "does the stall come back?"),
            ("sudo tcptrace-lab replay transfer slow.pcap --nodelay", "and would this cure it?"),
        ),
    ),
    "replay whatif": Guide(
        "What changes would do to a transfer, by models.",
        (
            ("tcptrace-lab replay whatif slow.pcap", "what the findings name as the cure"),
            ("tcptrace-lab replay whatif slow.pcap --nodelay --send-buffer 64K", "each alone, and both"),
        ),
    ),
    "replay script": Guide(
        "A minimal reproducer of a stall, in Python.",
        (
            ("tcptrace-lab replay script slow.pcap -o reproduce.py", "then: python3 reproduce.py, and with --nodelay"),
            ("tcptrace-lab replay script slow.pcap -o folder", "a packetdrill script beside it"),
        ),
    ),
    "simulate": Guide(
        "Two modelled TCP stacks talk; the capture of it.",
        (
            (
                (
                    "tcptrace-lab simulate --stack sunos4 --mss 9148 --send-buffer 16K \\\n"
                    '    --receive-buffer 24K --rate 100M --warm --client "write 8M/4K" -o a.pcap'
                ),
                "a throughput deadlock",
            ),
            ("tcptrace-lab simulate setting.toml -o model.pcap --truth why.json", "and why each byte waited"),
        ),
    ),
    "verify": Guide(
        "Our account held against tshark's and tcptrace's.",
        (("tcptrace-lab verify slow.pcapng --json differences.json", "each difference explained"),),
    ),
}
"""By what is typed."""


def tell(app: typer.Typer) -> None:
    """Give the commands of `app` their lines and examples."""
    for name, command in commands(app):
        guide = GUIDES.get(name)
        if guide is not None:
            command.short_help = guide.short
            command.epilog = epilog(guide)


def commands(app: typer.Typer, before: str = "") -> Iterator[tuple[str, CommandInfo]]:
    """What is typed for each command, and what Typer knows of it."""
    for command in app.registered_commands:
        own = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        yield f"{before}{own}", command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance, f"{before}{group.name or group.typer_instance.info.name} ")


def epilog(guide: Guide) -> str:
    """The examples, each below what it does; empty without any."""
    if not guide.examples:
        return ""
    lines = "\n".join(f"  # {words}\n  {command}" for command, words in guide.examples)
    return f"\b\nExamples:\n{lines}"
