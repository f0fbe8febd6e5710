"""The proved findings on a folder of captures as a table, each beside what a second reading of its frames showed.

    python benchmarks/verdicts/proved_findings.py CAPTURES > benchmarks/verdicts/proved-findings.md

The facts are ours; the reading is by hand, with tshark's fields, and stands below. A finding that nobody has read is named and makes the
exit code 1: look at its frames, and write what they show, or mend the rule.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import tcptrace_lab
from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.findings import cause_findings
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.findings.finding import Finding

_UNANSWERED = "stands, as time: the SYN came {n} times at 1 s, then doubling, and nobody answered; the handshake never ended"
_SERVER_FULL = "stands: SYN at 0, 1.05 and 3.1 s with new IP IDs, answered 0.5 ms after the third (a full accept queue)"
_ONE_WAY = (
    "stands: the same bytes with a new IP ID after about {ms} ms in which this side sent nothing; the other side was not captured, so "
    "that the timer may be the tail-loss probe's"
)

READ: dict[tuple[str, str], str] = {
    ("Zious11-wirerust__dns-remoteshell.pcap", "handshake-slow"): (
        "stands: six SYNs with IP IDs of their own (1514 to 1516 and 151b to 151d, hexadecimal) from two ports, each answered by a RST; "
        "both are captured twice. From the first copy of the one to the last of the other: 18.5, 6.9, 18.1, 19.3, 19.0 and 19.2 ms"
    ),
    ("chrissanders-packets__dns_isp_hijack.pcapng", "spurious-retransmission"): (
        "stands: frame 41 has a later TSval than the copy that frame 42 echoes; 50, 52, 54, 56 bring what frames 46 and 47 acknowledged; "
        "D-SACKs answer them"
    ),
    ("seladb-PcapPlusPlus__example2.pcap", "spurious-retransmission"): (
        "stands: 2411, 2468 and 2668 (new IP IDs) repeat 60164, 71664 and 141794; D-SACKs of these numbers answer each at once"
    ),
    ("seladb-PcapPlusPlus__tls2.pcap", "spurious-retransmission"): (
        "stands: bytes 1 to 1440 six times more, up to 8 s apart (30.4 s in all), though frames 4792 and 4793 acknowledge 3460: these ACKs "
        "went no further"
    ),
    ("zeek-zeek__pppoe-over-qinq.pcap", "spurious-retransmission"): (
        "stands: frames 13, 15, 16 and 25 bring what frames 8 to 12 and 22 acknowledge; D-SACKs of 1, 2881, 1441 and 3337 answer"
    ),
    ("chrissanders-packets__http_espn.pcapng", "receiver-window-limited"): (
        "stands: 4 segments fill the first window of 5,888 bytes to within 416; the fifth leaves when the window grew, a round trip later"
    ),
    ("chrissanders-packets__http_espn_fail.pcapng", "handshake-slow"): (
        "stands, as time: nine connections to one port, each of 9 to 11 SYNs at 1 s, then doubling; nobody answered. The first six go on "
        "from 0 to 67.6 s, the other three for 19.1 s"
    ),
    ("chrissanders-packets__inconsistent_printer.pcapng", "receiver-window-limited"): (
        "stands: windows of 628, 80, 180 and 1,092 bytes are offered, less than the segments of 1,460; data follow at each update. Before "
        "frame 120 the sender waited 4.8 s and then filled the 1,092 exactly"
    ),
    ("chrissanders-packets__inconsistent_printer.pcapng", "timeout"): (
        "stands: frame 120's 1,092 bytes come again after 5.5 s and 5.6 s; the printer is silent"
    ),
    ("chrissanders-packets__latency2.pcapng", "handshake-slow"): "stands: SYN in frame 1, its only SYN-ACK in frame 2, 879 ms later",
    ("chrissanders-packets__nowebaccess3.pcapng", "handshake-slow"): "stands, as time: three SYNs within 1.0 s, no answer",
    ("chrissanders-packets__tcp_ports.pcapng", "receiver-window-limited"): (
        "stands: 12 segments of 1,406 fill 16,872 bytes to the last, round after round; the next leave a round trip after the ACKs"
    ),
    ("chrissanders-packets__tcp_retransmissions.pcapng", "timeout"): "stands: the same 648 bytes after 0.2, 0.6, 1.2, 2.4 and 4.8 s",
    ("chrissanders-packets__tcp_zerowindowdead.pcapng", "zero-window"): (
        "stands: every ACK offers 0 (frames 2, 4, 6, 8); what is sent at 3.4, 10.2 and 23.7 s are probes"
    ),
    ("ntop-nDPI__ipp.pcap", "receiver-window-limited"): (
        "stands: windows of 2,896 and less beside segments of 1,448; into the last 168 bytes the sender goes only after 218 ms (frame "
        "231). They fill the window, and come again in frame 232, 218 ms later, though they had arrived: the ACK in frame 233 echoes "
        "231's timestamp"
    ),
    ("ntop-nDPI__ipp.pcap", "spurious-retransmission"): (
        "stands: frame 231's 168 bytes again in frame 232, 218 ms later; the ACK in frame 233 echoes 231's timestamp: it had arrived"
    ),
    ("ntop-nDPI__ipp.pcap", "zero-window"): "stands: frame 233 offers 0, frame 234 2,920 bytes, 212 ms later; data follow after 0.1 ms",
    ("seladb-PcapPlusPlus__4KHttpRequests.pcap", "timeout"): _ONE_WAY.format(ms=300),
    ("seladb-PcapPlusPlus__650HttpResponses.pcap", "timeout"): _ONE_WAY.format(ms=250),
    ("seladb-PcapPlusPlus__sll.pcap", "receiver-window-limited"): (
        "stands: the flights end 412 bytes (frame 55), 616 bytes (131, 143) and 4 bytes (204) below the edge offered by the ACK that the "
        "segment echoes, less than a segment of 1,388; 15 more, from 119 to 306, end at the edge itself"
    ),
    ("simsong-tcpflow__bug2.pcap", "timeout"): "stands: seq 55841 five times, after 0.4, 0.9, 1.9, 3.8 and 7.5 s: doubling",
    ("simsong-tcpflow__bug3.pcap", "timeout"): "stands: seq 1405, 4213 and 7021 again after 0.5 to 8.8 s, doubling",
    ("zeek-zeek__206_example_a.pcap", "loss"): (
        "stands: dozens of ACKs stay at 29201 from frame 94 on; it is sent again in frame 103, and each ACK lets one new segment go"
    ),
    ("zeek-zeek__206_example_a.pcap", "handshake-slow"): "stands: SYN in frames 8 and 47, 3.0 s apart, new IP ID",
    (
        "zeek-zeek__206_example_b.pcap",
        "timeout",
    ): "stands: seq 899890 and 901290 twelve times, up to 15.6 s apart; the other side is silent",
    ("zeek-zeek__206_example_c.pcap", "timeout"): (
        "stands: ACKs end at 11893 in frame 158; the rest, sent in four pieces, comes as one of 821 bytes 4.3 s later and is acknowledged"
    ),
    ("zeek-zeek__echo-connections.pcap.gz", "handshake-slow"): _SERVER_FULL,
    ("zeek-zeek__ftp-with-numbers-in-filename.pcap", "receiver-window-limited"): (
        "stands: 45 segments fill 65,535 bytes to within 375; no window scale was agreed"
    ),
    ("zeek-zeek__option-sack.pcap", "handshake-slow"): _UNANSWERED.format(n="4").replace("at 1 s, then doubling", "within 12.1 s"),
    ("zeek-zeek__reassembly.pcap", "timeout"): (
        "stands: 1.6, 4.0, 0.5 and 3.2 s of silence of the sender before seq 4655, 11943, 13403 and 31674 come again; the duplicate ACKs "
        "had come long before, so it was the timer"
    ),
    (
        "zeek-zeek__reassembly.pcap",
        "loss",
    ): "stands: the ACKs stay at 4655 and 11943 while later bytes arrive; the holes are filled one by one",
    ("zeek-zeek__rst-inject-rae.pcap", "handshake-slow"): "stands: SYN at 0, SYN-ACK at 1.27 s (an injected RST came between)",
    ("zeek-zeek__smtp.pcap", "loss"): (
        "stands: four segments of 1,460 are refused by ICMP (fragmentation needed, frames 26 to 30) and come again with 1,452 bytes each. "
        "Lost to the path's MTU, not to a full queue: our text does not say so"
    ),
    ("zeek-zeek__socks.pcap", "timeout"): "stands: the FIN of frame 48 five times more, after 24, 48, 65, 64 and 64 s (BSD's most is 64)",
    ("the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap", "handshake-slow"): (
        "stands, by the file's times: SYN at 1418145369.999999999 s, SYN-ACK a second and a nanosecond later (its fraction of 10^9 ns is "
        "carried)"
    ),
    ("zeek-zeek__vnd.ms-cab-compressed-multi-conn.pcap", "spurious-retransmission"): (
        "stands: seq 2761 again after 224 ms, though frame 107 had acknowledged it at this end: the ACK was lost on its way, and the "
        "sender's timer ran out"
    ),
}
"""(capture, finding) → what the frames show."""

HEAD = """# Proved findings, read a second time

This table has every finding that is `proved` on the shared captures (per capture, at most 50 findings that cost time). Beside each is what
its frames show in tshark (`-T fields`: number, time, `tcp.seq`, `tcp.len`, `tcp.ack`, `tcp.window_size`, flags and `ip.id`), read by hand.
`python benchmarks/verdicts/proved_findings.py CAPTURES` prints the table. `tests/findings/test_proved_findings.py` repeats with tshark the
checks that need no person.

Fourteen did not stand and are no findings any more: timers of 300 s, of a month and of 15 years (a made capture; two captures in one file),
a lost SYN where a FIN had the SYN's number, a loss where everything had been acknowledged (an injected segment), a window that the sender
went beyond by megabytes, needless SYNs told by the echo 0 of a stack that had nothing to echo, and six handshakes of 6 and 15.7 s
that were over in 0.1 s and 58 µs: the ACK of the SYN-ACK is not in the capture, and the client's program spoke so much later.

| capture | connection, sender | finding | cost | frames | second reading |
|---|---|---|---|---|---|"""

SHOWN_FRAMES = 6
NOT_CAPTURES = {".md", ".tsv", ".json", ".txt"}


def proved(capture: Path) -> Iterator[Finding]:
    """The proved findings on one capture; none where it cannot be read."""
    try:
        tables = tcptrace_lab.read(capture, worth=causes.worth())
        found = cause_findings.findings(tables.accounts, tables.segments, tables.connections, tables.details).findings
    except TcptraceLabError:
        return
    yield from (finding for finding in found if finding.confidence is Confidence.PROVED)


def captures(folder: Path) -> list[Path]:
    """The captures of a folder, by name."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in NOT_CAPTURES)


def _line(name: str, finding: Finding) -> str:
    side = "client" if finding.from_client else "server"
    frames = ", ".join(map(str, finding.evidence_frames[:SHOWN_FRAMES])) + (" …" if len(finding.evidence_frames) > SHOWN_FRAMES else "")
    cells = (
        name,
        f"{finding.conn}, {side}",
        finding.id,
        numbers.duration(finding.cost_ns) if finding.cost_ns else "–",
        frames,
        READ[name, finding.id],
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Print the table of one folder; 1 if a finding has not been read."""
    folder = Path(arguments[0])
    print(HEAD)
    unread = 0
    for capture in captures(folder):
        name = str(capture.relative_to(folder))
        for finding in proved(capture):
            if (name, finding.id) in READ:
                print(_line(name, finding))
            else:
                unread += 1
                print(f"not read: {name}, connection {finding.conn}: {finding.title}, frames {finding.evidence_frames}", file=sys.stderr)
    return int(unread > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
