"""Renew `seeds/`: what fuzzing starts from, at least one input for each format, link type and tunnel.

    .venv/bin/python rust/fuzz/make_seeds.py

Each seed is small (at most 4 KB): a fuzzer tries thousands of inputs a second, and changes small ones to more effect.
Seeds named `found-…` are inputs that once broke a promise, made as small as they get; they are kept as they are.
Needs Scapy, and the commands `zstd`, `lz4` and `xz`.
"""

from __future__ import annotations

import gzip
import shutil
import struct
import subprocess
from pathlib import Path

from scapy.layers.inet import IP, TCP
from seed_files import MODIFIED, captures, pcap, pcapng_all_blocks
from seed_frames import ATM, ERF, ETHERNET, LOOPBACK_COOKED_RAW, WIFI_PPP_OTHER, Frames, exchange
from seed_segments import SCENARIOS

MAX_SEED_BYTES = 4096
SEEDS = Path(__file__).parent / "seeds"
CAPTURES = Path(__file__).parents[2] / "captures"


def frames_input(first_link: int, frames: Frames) -> bytes:
    """The input of a target of frames (format: `src/frames.rs`)."""
    out = bytes([first_link | 1 << 4])  # 1 << 4: the clock starts in 2023
    for control, frame in frames:
        if len(out) + 3 + len(frame) > MAX_SEED_BYTES:
            break
        out += struct.pack("<BH", control, len(frame)) + frame
    return out


def packed(data: bytes) -> dict[str, bytes]:
    """`data` in each compression that is read."""
    commands = {
        "zst": ["zstd", "--stdout", "--quiet", "-19"],
        "lz4": ["lz4", "--stdout", "--quiet", "--no-frame-crc"],
        "xz": ["xz", "--stdout"],
    }
    found = {name: subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout for name, command in commands.items()}
    members = [gzip.compress(part, mtime=0) for part in (data[:100], data[100:])]
    return found | {"gz": members[0] + members[1]}


def files() -> dict[str, bytes]:
    """Capture files: our own, cut after a few packets; all blocks and variants by hand; each compression."""
    conversation = [bytes(packet) for packet in exchange()]
    found = captures(CAPTURES, MAX_SEED_BYTES)
    for name, order, magic in [
        ("pcap-us-little", "<", 0xA1B2C3D4),
        ("pcap-ns-big", ">", 0xA1B23C4D),
        ("pcap-modified", "<", MODIFIED),
    ]:
        found[name] = pcap(conversation, 101, order, magic)
    fragmented = [bytes(part) for part in IP(id=7) / TCP() / (b"x" * 64)][:1]
    found["pcap-cut"] = pcap(conversation + fragmented, 101, "<", 0xA1B2C3D4)[:-9]
    for order, name in (("<", "little"), (">", "big")):
        found[f"pcapng-{name}"] = pcapng_all_blocks(conversation, order)
    small = pcap(conversation, 101, "<", 0xA1B2C3D4)
    found |= {f"pcap-{name}": data for name, data in packed(small).items()}
    found["skippable-lz4"] = struct.pack("<II", 0x184D2A50, 4) + b"skip" + packed(small)["lz4"]
    found["erf"] = b"".join(frame for _, frame in ERF["ethernet"][1])
    found["snoop"] = b"snoop\0\0\0" + struct.pack(">II", 2, 4) + struct.pack(">6I", 60, 60, 84, 0, 1, 2) + bytes(60)
    found["text"] = b"No.  Time  Source\n1  0.000  10.0.0.1\n"
    found["empty"] = b""
    return found


def write(target: str, seeds: dict[str, bytes]) -> None:
    """Replace the seeds of `target`, all but those that were found."""
    folder = SEEDS / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if not old.name.startswith("found-"):
            old.unlink()
    for name, data in seeds.items():
        (folder / name).write_bytes(data[:MAX_SEED_BYTES])
    print(f"{target}: {len(seeds)} seeds, {sum(len(data) for data in seeds.values())} bytes")


def main() -> None:
    """Write all seeds."""
    for command in ("zstd", "lz4", "xz"):
        if shutil.which(command) is None:
            raise SystemExit(f"the command {command} is needed")
    write("file", files())
    families = {
        "ethernet": ETHERNET,
        "loopback_cooked_raw": LOOPBACK_COOKED_RAW,
        "atm": ATM,
        "erf": ERF,
        "wifi_ppp_other": WIFI_PPP_OTHER,
    }
    for target, family in families.items():
        write(target, {name: frames_input(link, frames) for name, (link, frames) in family.items()})
    write("segments", {name: b"".join(records) for name, records in SCENARIOS.items()})


if __name__ == "__main__":
    main()
