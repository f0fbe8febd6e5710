"""Renew `seeds/`: what fuzzing starts from, at least one input for each format, link type and tunnel.

    .venv/bin/python rust/fuzz/make_seeds.py

Each seed is small (at most 4 KB): a fuzzer tries thousands of inputs a second, and changes small ones to more effect.
Seeds named `found-…` are minimized inputs that once broke a promise. They are not renewed.
Needs Scapy, and the commands `zstd`, `lz4` and `xz`.
"""

from __future__ import annotations

import gzip
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

from scapy.layers.inet import IP, TCP
from seed_files import MODIFIED, captures, pcap, pcapng_all_blocks
from seed_frames import ATM, ERF, ETHERNET, LOOPBACK_COOKED_RAW, WIFI_PPP_OTHER, Frames, exchange
from seed_segments import SCENARIOS
from seed_waits import LEDGER, SENDER

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
# The framings of the tests are seeds, too.
from tests.support.framing.links import FRAMINGS, exchange_in  # noqa: E402
from tests.support.framing.van_jacobson import Compressor  # noqa: E402

MAX_SEED_BYTES = 4096
SEEDS = Path(__file__).parent / "seeds"
CAPTURES = ROOT / "captures"
LEFT_OUT = re.compile(r"juniper-.*-(ext|out|old)|juniper-(?!178).*-stripped-.*|raw-(12|14)-.*|clip-.*|atm-bsd")
"""Framings that differ from others only in what the fuzzer finds at once."""


def frames_input(first_link: int, frames: Frames) -> bytes:
    """The input of a target of frames (format: `src/frames.rs`)."""
    out = bytes([first_link & 15 | 1 << 4 | first_link >> 4 << 6])  # 1 << 4: the clock starts in 2023
    for control, frame in frames:
        if len(out) + 3 + len(frame) > MAX_SEED_BYTES:
            break
        out += struct.pack("<BH", control, len(frame)) + frame
    return out


def van_jacobson() -> Frames:
    """A transfer in PPP frames with direction, its headers compressed (RFC 1144): usual steps, jumps, urgent data, a lost frame."""
    frames = []
    data, acks = Compressor(), Compressor()
    seq = 0
    for at, (step, flags) in enumerate([(10, "PA"), (10, "PA"), (10, "PA"), (300, "A"), (10, "PAU"), (10, "A")]):
        segment = IP(src="10.0.0.1", dst="10.0.0.2", id=at) / TCP(flags=flags, urgptr=5 * ("U" in flags), seq=seq, ack=7) / (b"x" * 10)
        seq += step
        ack = IP(src="10.0.0.2", dst="10.0.0.1", id=at * at) / TCP(sport=80, dport=20, flags="A", seq=7, ack=seq, window=200 - 40 * at)
        for sent, line, packet in ((1, data, segment), (0, acks, ack)):
            protocol, body = line.compress(bytes(packet))
            frames.append((2, bytes((sent,)) + b"\xff\x03\0" + bytes((protocol,)) + body))
    return frames[:-3] + frames[-1:]


def link_types() -> dict[str, list[int]]:
    """Target → its link types, as `src/frames.rs` has them."""
    text = (Path(__file__).parent / "src" / "frames.rs").read_text()
    found = re.findall(r"pub const (\w+): \[LinkType; \d+\] = \[([^\]]*)\];", text)
    return {name.lower(): [int(number) if number.strip().isdecimal() else -1 for number in numbers.split(",")] for name, numbers in found}


def framed() -> dict[str, dict[str, bytes]]:
    """Target → seeds: the tests' exchange in each framing.

    Raises:
        SystemExit: a framing's link type is in no family, so that it would have no seed.
    """
    found: dict[str, dict[str, bytes]] = {}
    places = {number: (target, place) for target, numbers in link_types().items() for place, number in enumerate(numbers)}
    for name, framing in FRAMINGS.items():
        if LEFT_OUT.fullmatch(name):
            continue
        if framing.link_type not in places:
            raise SystemExit(f"the framing {name} has link type {framing.link_type}, which is in no family of src/frames.rs: add it there")
        target, place = places[framing.link_type]
        frames = [(2, frame) for frame in exchange_in(framing, 0)]
        found.setdefault(target, {})[f"link-{name}"] = frames_input(place, frames)
    return found


def check_every_type(target: str, seeds: dict[str, bytes]) -> None:
    """Refuse a family with a link type that no seed begins with.

    Raises:
        SystemExit: says which, and where its seed is made.
    """
    begun = {seed[0] & 15 | seed[0] >> 6 << 4 for seed in seeds.values()}
    missing = [number for place, number in enumerate(link_types()[target]) if place not in begun]
    if missing:
        raise SystemExit(
            f"{target}: no seed has link type {', '.join(map(str, missing))}: add a framing to tests/support/framing/framings.py, "
            "or, if tshark does not read it, an entry to seed_frames.py"
        )


def together(files: dict[str, bytes]) -> dict[str, bytes]:
    """Several files in one input (format: `src/files.rs`): alike, of all kinds, cut, and one alone."""
    sets = {
        "one": ["pcapng-little"],
        "same-times": ["pcap-us-little", "pcap-us-little", "pcap-us-little"],
        "formats": ["pcap-ns-big", "pcapng-little", "erf"],
        "packed": ["pcap-gz", "pcap-zst", "pcap-lz4", "pcap-xz"],
        "cut": ["pcap-cut", "pcapng-big"],
        "refused": ["pcap-us-little", "text"],
        "connections": ["ethernet-short-connections.pcapng", "ethernet-tail-loss.pcapng"],
    }
    found = {}
    for name, names in sets.items():
        for options in (0, 0x14):  # batches of one row; of 7, with datagrams
            parts = [files[part][:1300] for part in names]
            lengths = [struct.pack("<H", len(part)) for part in parts[:-1]] + [b""]
            out = bytes([len(parts) - 1 | options]) + b"".join(length + part for length, part in zip(lengths, parts, strict=True))
            found[f"{name}-{options:02x}"] = out
    return found


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
    single = files()
    write("file", single)
    for target in ("merge", "engine"):
        write(target, together(single))
    from_tests = framed()
    families = {
        "ethernet": ETHERNET,
        "loopback_cooked_raw": LOOPBACK_COOKED_RAW,
        "atm": ATM,
        "erf": ERF,
        "wifi_ppp_other": WIFI_PPP_OTHER,
    }
    for target, family in families.items():
        own = {name: frames_input(link, frames) for name, (link, frames) in family.items()}
        if target == "wifi_ppp_other":
            own["ppp-van-jacobson"] = frames_input(link_types()[target].index(204), van_jacobson())
        from_tests[target] = own | from_tests.get(target, {})
    for target, seeds in from_tests.items():
        check_every_type(target, seeds)
        write(target, seeds)
    write("segments", {name: b"".join(records) for name, records in SCENARIOS.items()})
    write("sender", SENDER)
    write("ledger", LEDGER)


if __name__ == "__main__":
    main()
