"""A summary line and examples for each command, for the help, the man page and the docs. Every example can be run as written.

A test checks that every command has an entry here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer
    from typer.models import CommandInfo

FIRST_STEPS = """\
tcptrace-lab says where the time of slow TCP transfers went, and what to change.

  a capture      tcptrace-lab analyze slow.pcapng --open
  none yet       sudo tcptrace-lab capture
  many           tcptrace-lab batch FOLDER -o archive
  a fix to test  tcptrace-lab compare before.pcapng after.pcapng

tcptrace-lab --help lists all commands, and COMMAND --help shows examples.
"""
"""Text that the program prints if it is called without a command."""

WIDTH = 78
"""Maximum width of an example. The help indents examples by two blanks."""


class Guide(NamedTuple):
    """One command.

    Attributes:
        short: its line in the list of commands.
        examples: pairs of a command line and its effect.
    """

    short: str
    examples: tuple[tuple[str, str], ...]


GUIDES = {
    "analyze": Guide(
        "Find out what takes time in the connections of a capture.",
        (
            ("tcptrace-lab analyze slow.pcapng --open", "verdict, findings, and a report, opened in the browser"),
            ("tcptrace-lab analyze slow.pcapng --markdown -", "as Markdown, for a ticket"),
            ("tcptrace-lab analyze slow.pcapng --json - -q | jq .verdict", "for scripts"),
            ("tcptrace-lab analyze slow.pcapng --whatif", "with the gain of each remedy, from models of the stacks"),
            ("tcptrace-lab analyze ring_*.pcap -o both.html", "several files are one capture, merged by time"),
            ("tcptrace-lab analyze --pair at-client.pcap at-server.pcap", "two capture points: what the path between them did"),
            (
                'tcptrace-lab analyze slow.pcap --where "server_port = 443" --fail-on medium',
                "selected connections; exit code 1 for a CI gate",
            ),
            ("tcpdump -i eth0 -s 128 -c 100000 -w - tcp | tcptrace-lab analyze -", "from a pipe"),
        ),
    ),
    "annotate": Guide(
        "Write a copy for Wireshark with findings as comments.",
        (
            ("tcptrace-lab annotate slow.pcap -o marked.pcapng && wireshark marked.pcapng", "each finding is a comment on its frames"),
            ("tcptrace-lab annotate slow.pcap --profile slow-profile", "columns, colours and filters by cause"),
        ),
    ),
    "archive": Guide("Query archives of many captures.", ()),
    "archive gc": Guide(
        "Remove files that are no longer needed.", (("tcptrace-lab archive gc archive/", "results of other versions, incomplete files"),)
    ),
    "archive list": Guide("List the captures of an archive.", (("tcptrace-lab archive list archive/", "with their findings and state"),)),
    "archive query": Guide(
        "Run SQL over the tables of an archive.",
        (('tcptrace-lab archive query archive/ "select id, cost_ns from findings"', "over all captures"),),
    ),
    "archive tables": Guide(
        "List the tables and columns of an archive.", (("tcptrace-lab archive tables archive/", "what a query can use"),)
    ),
    "batch": Guide(
        "Analyze thousands of captures into an archive.",
        (("tcptrace-lab batch captures/ -o archive/", "captures already in the archive are skipped"),),
    ),
    "capture": Guide(
        "Capture live, then analyze what was captured.",
        (
            ("sudo tcptrace-lab capture", "list the interfaces"),
            ('sudo tcptrace-lab capture -i eth0 --filter "tcp port 443" --duration 60', "one minute"),
            ("sudo tcptrace-lab capture -i eth0 --snaplen 128 --ring 5x100M", "until Ctrl-C; keeps the last 500 MB instead of 1 GB"),
        ),
    ),
    "compare": Guide(
        "Compare before and after: what changed significantly.",
        (
            ("tcptrace-lab compare before.pcap after.pcap", "one capture of each"),
            ("tcptrace-lab compare before-*.pcap vs after-*.pcap -o difference.html", "repetitions: differences are tested"),
            ("tcptrace-lab compare run-*.pcap --repetitions", "means and 95% intervals of one experiment"),
            ("tcptrace-lab compare base-*.pcap vs new-*.pcap --fail-on regression -q", "CI gate: exit code 1 if significantly slower"),
        ),
    ),
    "export": Guide(
        "Write tables, a tcptrace listing, or xplot graphs.",
        (
            ("tcptrace-lab export slow.pcap -o segments.parquet", "a row per TCP segment"),
            ("tcptrace-lab export slow.pcap --table ledger -o ledger.csv", "each interval of time and its cause"),
            ("tcptrace-lab export slow.pcap --table findings -o findings.csv", "a row per finding"),
            ("tcptrace-lab export slow.pcap --table messages --format ndjson", "a row per application message"),
            ("tcptrace-lab export call.pcap --table flows --format csv", "a row per UDP flow: rate, sizes, losses"),
            ("tcptrace-lab export slow.pcap --format tcptrace", "the listing of tcptrace -lrW"),
            ("tcptrace-lab export slow.pcap --format xplot -o graphs", "a2b_tsg.xpl, a2b_rtt.xpl, …"),
        ),
    ),
    "lab": Guide("Run live experiments on emulated paths.", ()),
    "lab list": Guide("List the experiments in the package.", (("tcptrace-lab lab list", "published studies first"),)),
    "lab show": Guide("Print the file of an experiment.", (("tcptrace-lab lab show NAME > own.toml", "NAME: see lab list"),)),
    "lab keys": Guide("List every key of an experiment file.", (("tcptrace-lab lab keys", "with the meaning of each"),)),
    "lab run": Guide(
        "Run an experiment, analyze it and report.",
        (
            ("sudo tcptrace-lab lab run NAME --short", "NAME: see lab list; fewer points and repetitions"),
            ("sudo tcptrace-lab lab run own.toml -o results/", "your own experiment"),
        ),
    ),
    "predict": Guide(
        "Predict which message sizes stall.",
        (
            (
                (
                    "tcptrace-lab predict --stack sunos4 --mss 9148 --send-buffer 16K \\\n"
                    "      --receive-buffer 16K --grid 16K:51K:4K -o grid.html"
                ),
                "all combinations of buffer sizes",
            ),
            ("tcptrace-lab predict --from slow.pcap", "parameters from the capture; unknown ones are assumed"),
        ),
    ),
    "replay": Guide("Replay captured packets or transfers.", ()),
    "replay packets": Guide(
        "Send the frames of a capture to an interface.",
        (
            ("sudo tcptrace-lab replay packets slow.pcap -i veth0 --dry-run", "what would be sent"),
            ("sudo tcptrace-lab replay packets slow.pcap -i veth0 --speed 2x", "twice as fast as captured"),
            ("sudo tcptrace-lab replay packets slow.pcap -i lo --topspeed", "without waiting"),
        ),
    ),
    "replay transfer": Guide(
        "Replay a captured transfer over real sockets.",
        (
            ("sudo tcptrace-lab replay transfer slow.pcap", "does the stall come back?"),
            ("sudo tcptrace-lab replay transfer slow.pcap --nodelay", "and does this fix it?"),
        ),
    ),
    "replay whatif": Guide(
        "Predict the effect of changes with models.",
        (
            ("tcptrace-lab replay whatif slow.pcap", "the remedies that the findings name"),
            ("tcptrace-lab replay whatif slow.pcap --nodelay --send-buffer 64K", "each change alone, and both together"),
        ),
    ),
    "replay script": Guide(
        "Write a minimal reproducer of a stall.",
        (
            ("tcptrace-lab replay script slow.pcap -o reproduce.py", "then: python3 reproduce.py, and with --nodelay"),
            ("tcptrace-lab replay script slow.pcap -o folder", "also a packetdrill script"),
        ),
    ),
    "simulate": Guide(
        "Simulate two TCP stacks and write the capture.",
        (
            (
                (
                    "tcptrace-lab simulate --stack sunos4 --mss 9148 --rate 100M \\\n"
                    "    --send-buffer 16K --receive-buffer 24K --no-slow-start \\\n"
                    '    --client "write 8M/4K" -o a.pcap'
                ),
                "a throughput deadlock",
            ),
            ("tcptrace-lab simulate setting.toml -o model.pcap --truth why.json", "with the cause of each wait"),
        ),
    ),
    "verify": Guide(
        "Check results against tshark and tcptrace.",
        (("tcptrace-lab verify slow.pcapng --json differences.json", "each difference explained"),),
    ),
    "view": Guide(
        "Explore a capture or an archive in the browser.",
        (
            ("tcptrace-lab view large.pcapng", "connections, causes over time, any figure at any zoom"),
            ("tcptrace-lab view archive/ --no-browser --port 8080 --idle 30m", "an archive, on a remote machine through ssh -L"),
        ),
    ),
}
"""Name of a command (with its group) → its guide."""


def tell(app: typer.Typer) -> None:
    """Set the help line and the examples of each command of `app`."""
    for name, command in commands(app):
        guide = GUIDES.get(name)
        if guide is not None:
            command.short_help = guide.short
            command.epilog = epilog(guide)


def commands(app: typer.Typer, before: str = "") -> Iterator[tuple[str, CommandInfo]]:
    """Yield the name of each command (with its group), and Typer's information on it."""
    for command in app.registered_commands:
        own = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
        yield f"{before}{own}", command
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands(group.typer_instance, f"{before}{group.name or group.typer_instance.info.name} ")


def epilog(guide: Guide) -> str:
    """Return the examples, each below a line that states its effect; empty if there are none."""
    if not guide.examples:
        return ""
    lines = "\n".join(f"  # {words}\n  {command}" for command, words in guide.examples)
    return f"\b\nExamples:\n{lines}"
