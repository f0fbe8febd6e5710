"""Makes thousands of captures for archives: `python benchmarks/archives/archive_captures.py FOLDER 2000`.

Modelled stacks make a hundred captures with many causes, each of one to a few hundred KB. The files are copies of these captures with other
addresses, ports and times, spread over weeks. Every fiftieth file is broken in one of eight ways. Each run makes the same files.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.simulation import declared, write_capture
from tcptrace_lab.stacks import simulate

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS: Final = 100
BROKEN_EVERY: Final = 50
_PCAP_HEADER: Final = 24
_RECORD: Final = struct.Struct("<IIII")
_BEGIN_S: Final = 1_790_000_000
_SPAN_S: Final = 60 * 86_400
_IP: Final = 14
"""Offset of the IP header in an Ethernet frame."""

CAUSES: Final[dict[str, dict[str, Any]]] = {
    "bulk": {"client": {"program": "write 400K"}},
    "loss": {"client": {"program": "write 300K"}, "forward": {"loss": 0.02}},
    "nagle": {
        "client": {"stack": "sunos4", "program": "10 * (write 300/100; read 1)"},
        "server": {"stack": "sunos4", "program": "10 * (read 300; write 1)"},
    },
    "window": {"client": {"program": "write 200K"}, "server": {"receive_buffer": "8K"}, "forward": {"delay": "20ms"}},
    "buffer": {"client": {"program": "write 200K", "send_buffer": "8K"}, "forward": {"delay": "20ms"}},
    "slow": {"client": {"program": "write 100K"}, "forward": {"rate": "2M", "delay": "5ms"}},
    "requests": {"client": {"program": "20 * (write 200; read 5000)"}, "server": {"program": "20 * (read 200; write 5000)"}},
}  # fmt: skip


def runs() -> Iterator[tuple[str, bytes]]:
    """Yield the cause and the capture of each run of the models."""
    for number in range(RUNS):
        name = list(CAUSES)[number % len(CAUSES)]
        what = {key: dict(value) for key, value in CAUSES[name].items()}
        what.setdefault("forward", {"delay": f"{1 + number % 30}ms"})
        if "loss" in what["forward"]:
            what["forward"]["seed"] = number + 1
        setting = declared({**what, "until": "30s"})
        stream = io.BytesIO()
        write_capture(simulate(setting), setting, stream)
        yield name, stream.getvalue()


def readdressed(capture: bytes, client: bytes, server: bytes, port: int, begin_s: int) -> bytes:
    """Return the capture with other hosts and another start time. `capture` is a nanosecond pcap of Ethernet."""
    out = bytearray(capture)
    at = _PCAP_HEADER
    first_s = None
    while at + _RECORD.size <= len(out):
        seconds, fraction, captured, wire = _RECORD.unpack_from(out, at)
        first_s = seconds if first_s is None else first_s
        _RECORD.pack_into(out, at, begin_s + seconds - first_s, fraction, captured, wire)
        ip = at + _RECORD.size + _IP
        from_client = out[at + _RECORD.size + 5] == 2  # noqa: PLR2004  (the server's address in the model's frames)
        out[ip + 12 : ip + 20] = client + server if from_client else server + client
        ports = ip + (out[ip] & 15) * 4
        own = ports if from_client else ports + 2
        out[own : own + 2] = port.to_bytes(2, "big")
        at += _RECORD.size + captured
    return bytes(out)


def broken(capture: bytes, way: int) -> bytes:
    """Return a capture that cannot be read completely, broken in the way with number `way`."""
    half = len(capture) // 2
    return (
        b"",
        capture[:10],
        b"no capture at all " * 20,
        capture[:_PCAP_HEADER],
        capture[:half],
        capture[: _PCAP_HEADER + 8] + b"\xff\xff\xff\x7f" + capture[_PCAP_HEADER + 12 :],
        gzip.compress(capture, mtime=0)[: -half // 2],
        bytes(half),
    )[way % 8]


def make(folder: Path, count: int) -> int:
    """Write `count` captures. Return how many of them are broken."""
    chance = random.Random(count)  # noqa: S311  (a benchmark)
    models = list(runs())
    bad = 0
    for number in range(count):
        name, capture = models[number % RUNS]
        client, server = bytes([10, 0, number % 12, chance.randrange(1, 6)]), bytes([192, 0, 2, 1 + number % 7])
        file = readdressed(capture, client, server, 20_000 + number % 40_000, _BEGIN_S + chance.randrange(_SPAN_S))
        path = folder / f"{number // 200:03}" / f"{name}-{number:05}.pcap"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % BROKEN_EVERY == BROKEN_EVERY - 1:
            file, bad = broken(file, bad), bad + 1
        path.write_bytes(file)
    return bad


def main() -> None:
    """Make a folder of captures."""
    parser = argparse.ArgumentParser(description="Makes thousands of captures for archives.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    print(f"{make(options.folder, options.count)} of {options.count} are broken")


if __name__ == "__main__":
    main()
