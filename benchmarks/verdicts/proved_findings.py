"""Makes the table of findings that a person has checked in their frames.

    python benchmarks/verdicts/proved_findings.py CAPTURES > benchmarks/verdicts/proved-findings.md

The table has the proved findings of a folder of captures, and others that were checked. The engine supplies the findings. A person read
their frames with tshark's fields, and `READ` has the results. If nobody has read a finding yet, the script prints its name and exits with
1. Then look at its frames and write down what they show, or fix the rule.
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

_UNANSWERED = "valid, as time: the SYN came {n} times at 1 s, then doubling, and nobody answered; the handshake never ended"
_SERVER_FULL = "valid: SYN at 0, 1.05 and 3.1 s with new IP IDs, answered 0.5 ms after the third (a full accept queue)"
_ONE_WAY = (
    "valid: the same bytes with a new IP ID after about {ms} ms in which this side sent nothing; the other side was not captured, so "
    "it may also be a tail loss probe"
)

READ: dict[tuple[str, str], str] = {
    ("Zious11-wirerust__tcp-ecn-sample.pcap", "congestion-marks"): (
        "valid: 52 packets with the ECN field 3, which 131 ACKs report (ECE); 46 segments say CWR"
    ),
    ("Zious11-wirerust__dns-remoteshell.pcap", "handshake-slow"): (
        "valid: six SYNs with IP IDs of their own (1514 to 1516 and 151b to 151d, hexadecimal) from two ports, each answered by a "
        "RST; both are captured twice. From the first copy of the SYN to the last copy of the RST: 18.5, 6.9, 18.1, 19.3, 19.0 and 19.2 "
        "ms"
    ),
    ("chrissanders-packets__dns_isp_hijack.pcapng", "spurious-retransmission"): (
        "valid: frame 41 has a later TSval than the copy that frame 42 echoes; 50, 52, 54, 56 bring what frames 46 and 47 acknowledged; "
        "D-SACKs answer them"
    ),
    ("seladb-PcapPlusPlus__example2.pcap", "spurious-retransmission"): (
        "valid: 2411, 2468 and 2668 (new IP IDs) repeat 60164, 71664 and 141794; D-SACKs of these numbers answer each at once"
    ),
    ("seladb-PcapPlusPlus__tls2.pcap", "spurious-retransmission"): (
        "valid: bytes 1 to 1440 six times more, up to 8 s apart (30.4 s in all), though frames 4792 and 4793 acknowledge 3460: these ACKs "
        "went no further"
    ),
    ("zeek-zeek__pppoe-over-qinq.pcap", "spurious-retransmission"): (
        "valid: frames 13, 15, 16 and 25 bring what frames 8 to 12 and 22 acknowledge; D-SACKs of 1, 2881, 1441 and 3337 answer"
    ),
    ("chrissanders-packets__http_espn.pcapng", "receiver-window-limited"): (
        "valid: 4 segments leave 416 bytes of the first window (5,888 bytes); the fifth leaves one RTT later, when the window grows"
    ),
    ("chrissanders-packets__http_espn_fail.pcapng", "handshake-slow"): (
        "valid, as time: nine connections to one port, each of 9 to 11 SYNs at 1 s, then doubling; nobody answered. Six connections "
        "begin at 0 s and try for 67.6 s; the other three try for 19.1 s"
    ),
    ("chrissanders-packets__inconsistent_printer.pcapng", "receiver-window-limited"): (
        "valid: windows of 628, 80, 180 and 1,092 bytes are offered, less than the segments of 1,460; data follow at each update. Before "
        "frame 120 the sender waited 4.8 s and then filled the 1,092 exactly"
    ),
    ("chrissanders-packets__inconsistent_printer.pcapng", "timeout"): (
        "valid: frame 120's 1,092 bytes come again after 5.5 s and 5.6 s; the printer is silent"
    ),
    ("chrissanders-packets__latency2.pcapng", "handshake-slow"): "valid: SYN in frame 1, its only SYN-ACK in frame 2, 879 ms later",
    ("chrissanders-packets__nowebaccess3.pcapng", "handshake-slow"): "valid, as time: three SYNs within 1.0 s, no answer",
    ("chrissanders-packets__tcp_ports.pcapng", "receiver-window-limited"): (
        "valid: 12 segments of 1,406 fill 16,872 bytes exactly in every round; the next segments leave one RTT after the ACKs"
    ),
    ("chrissanders-packets__tcp_retransmissions.pcapng", "timeout"): "valid: the same 648 bytes after 0.2, 0.6, 1.2, 2.4 and 4.8 s",
    ("chrissanders-packets__tcp_zerowindowdead.pcapng", "zero-window"): (
        "valid: every ACK offers 0 (frames 2, 4, 6, 8); what is sent at 3.4, 10.2 and 23.7 s are probes"
    ),
    ("ntop-nDPI__ipp.pcap", "receiver-window-limited"): (
        "valid: windows of 2,896 and less beside segments of 1,448; the sender uses the last 168 bytes of the window only after 218 "
        "ms (frame 231). It retransmits them in frame 232, 218 ms later, although they had arrived: the ACK in frame 233 echoes 231's "
        "timestamp"
    ),
    ("ntop-nDPI__ipp.pcap", "spurious-retransmission"): (
        "valid: frame 231's 168 bytes again in frame 232, 218 ms later; the ACK in frame 233 echoes 231's timestamp: it had arrived"
    ),
    ("ntop-nDPI__ipp.pcap", "zero-window"): "valid: frame 233 offers 0, frame 234 2,920 bytes, 212 ms later; data follow after 0.1 ms",
    ("seladb-PcapPlusPlus__4KHttpRequests.pcap", "timeout"): _ONE_WAY.format(ms=300),
    ("seladb-PcapPlusPlus__650HttpResponses.pcap", "timeout"): _ONE_WAY.format(ms=250),
    ("simsong-tcpflow__bug2.pcap", "timeout"): "valid: seq 55841 five times, after 0.4, 0.9, 1.9, 3.8 and 7.5 s: doubling",
    ("simsong-tcpflow__bug3.pcap", "timeout"): "valid: seq 1405, 4213 and 7021 again after 0.5 to 8.8 s, doubling",
    ("zeek-zeek__206_example_a.pcap", "loss"): (
        "valid: dozens of ACKs stay at 29201 from frame 94 on; the segment is retransmitted in frame 103, and each ACK releases one "
        "new segment"
    ),
    ("zeek-zeek__206_example_a.pcap", "handshake-slow"): "valid: SYN in frames 8 and 47, 3.0 s apart, new IP ID",
    (
        "zeek-zeek__206_example_b.pcap",
        "timeout",
    ): "valid: seq 899890 and 901290 twelve times, up to 15.6 s apart; the other side is silent",
    ("zeek-zeek__206_example_c.pcap", "timeout"): (
        "valid: ACKs end at 11893 in frame 158; the rest, sent in four pieces, comes as one of 821 bytes 4.3 s later and is acknowledged"
    ),
    ("zeek-zeek__echo-connections.pcap.gz", "handshake-slow"): _SERVER_FULL,
    ("zeek-zeek__ftp-with-numbers-in-filename.pcap", "receiver-window-limited"): (
        "valid: 45 segments fill 65,535 bytes to within 375; no window scale was agreed"
    ),
    ("zeek-zeek__option-sack.pcap", "handshake-slow"): _UNANSWERED.format(n="4").replace("at 1 s, then doubling", "within 12.1 s"),
    ("zeek-zeek__reassembly.pcap", "timeout"): (
        "valid: 1.6, 4.0, 0.5 and 3.2 s of silence of the sender before seq 4655, 11943, 13403 and 31674 come again; the duplicate ACKs "
        "had come long before, so it was the timer"
    ),
    (
        "zeek-zeek__reassembly.pcap",
        "loss",
    ): "valid: the ACKs stay at 4655 and 11943 while later bytes arrive; the holes are filled one by one",
    ("zeek-zeek__rst-inject-rae.pcap", "handshake-slow"): "valid: SYN at 0, SYN-ACK at 1.27 s (an injected RST came between)",
    ("zeek-zeek__smtp.pcap", "loss"): (
        "valid: four segments of 1,460 are refused by ICMP (fragmentation needed, frames 26 to 30) and come again with 1,452 bytes each. "
        "Lost to the path's MTU, as the title says"
    ),
    (
        "zeek-zeek__socks.pcap",
        "timeout",
    ): "valid: the FIN of frame 48 five times more, after 24, 48, 65, 64 and 64 s (BSD's most is 64)",
    ("the-tcpdump-group-tcpdump__timestamp_invalid_nano.pcap", "handshake-slow"): (
        "valid, by the file's times: SYN at 1418145369.999999999 s, SYN-ACK a second and a nanosecond later (its fraction of 10^9 ns is "
        "carried)"
    ),
    ("zeek-zeek__vnd.ms-cab-compressed-multi-conn.pcap", "spurious-retransmission"): (
        "valid: seq 2761 again after 224 ms, though frame 107 had acknowledged it at this end: the ACK was lost on its way, and the "
        "sender's timer ran out"
    ),
}
"""Maps a capture and a finding to what the frames show."""

HEAD = """# Proved findings, read a second time

The table lists every finding of the shared captures that is `proved` (per capture, at most 50 findings that cost time), and those of the
same captures that were once, and are now `consistent`: their waits prove nothing one by one. The last column says what the frames show in
tshark (`-T fields`: number, time, `tcp.seq`, `tcp.len`, `tcp.ack`, `tcp.window_size`, flags and `ip.id`), read by hand.
`python benchmarks/verdicts/proved_findings.py CAPTURES` prints the table. `tests/findings/test_proved_findings.py` repeats
with tshark the checks that need no person.

Fourteen earlier findings were wrong, and are no longer reported: timers of 300 s, of a month and of 15 years (a crafted capture; two
captures in one file), a lost SYN (it was a FIN with the SYN's number), a loss (everything had been acknowledged; the segment was
injected), a receiver window (the sender exceeded it by megabytes), spurious SYNs (the stack had nothing to echo, and sent an echo of 0),
and six handshakes of 6 and 15.7 s. These handshakes took 0.1 s and 58 µs: the capture lacks the ACK of the SYN-ACK, and the client's
application sent its data much later. Three more were right (spurious timeouts in `seladb-PcapPlusPlus__tls2` and
`zeek-zeek__vnd.ms-cab-compressed-multi-conn`) but are now only possible: for request-response applications, spurious timeouts were right
in only seven of ten seconds.

| capture | connection, sender | finding | confidence | cost | frames | second reading |
|---|---|---|---|---|---|---|"""

SHOWN_FRAMES = 6
NOT_CAPTURES = {".md", ".tsv", ".json", ".txt"}


def to_read(capture: Path, name: str) -> Iterator[Finding]:
    """Yield the findings of one capture that are proved, and the consistent findings that were read before.

    Yield nothing if the capture cannot be read.
    """
    try:
        tables = tcptrace_lab.read(capture, worth=causes.worth())
        found = cause_findings.findings(tables.accounts, tables.segments, tables.connections, tables.details).findings
    except TcptraceLabError:
        return
    for finding in found:
        if finding.confidence is Confidence.PROVED or (finding.confidence is Confidence.CONSISTENT and (name, finding.id) in READ):
            yield finding


def captures(folder: Path) -> list[Path]:
    """Return the captures of a folder, sorted by path."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix not in NOT_CAPTURES)


def _line(name: str, finding: Finding) -> str:
    side = "client" if finding.from_client else "server"
    frames = ", ".join(map(str, finding.evidence_frames[:SHOWN_FRAMES])) + (" …" if len(finding.evidence_frames) > SHOWN_FRAMES else "")
    cells = (
        name,
        f"{finding.conn}, {side}",
        finding.id,
        str(finding.confidence),
        numbers.duration(finding.cost_ns) if finding.cost_ns else "–",
        frames,
        READ[name, finding.id],
    )
    return f"| {' | '.join(cells)} |"


def main(arguments: list[str]) -> int:
    """Print the table of one folder. Return 1 if a finding has not been read."""
    folder = Path(arguments[0])
    print(HEAD)
    unread = 0
    for capture in captures(folder):
        name = str(capture.relative_to(folder))
        for finding in to_read(capture, name):
            if (name, finding.id) in READ:
                print(_line(name, finding))
            else:
                unread += 1
                print(f"not read: {name}, connection {finding.conn}: {finding.title}, frames {finding.evidence_frames}", file=sys.stderr)
    return int(unread > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
