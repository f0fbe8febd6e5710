"""Frames of captures are sent to private interfaces: all frames, in order and on time. Other interfaces are refused."""

from __future__ import annotations

import gzip
import json
import os
import signal
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import dpkt
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapWriter

from tcptrace_lab.errors import CaptureInsufficient, OutputUnwritable, UsageError
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.networks.network import CLIENT_MAC, Medium
from tcptrace_lab.replay.packets.allowed_destinations import Destinations, networks, own_networks
from tcptrace_lab.replay.packets.frames import Frame, Rewrite, frames, rewritten
from tcptrace_lab.replay.packets.pace import Pace, pace
from tcptrace_lab.replay.packets.prepared_frames import ready, timed
from tcptrace_lab.replay.packets.send import Plan, send
from tests.support import needs, published
from tests.support.command import PROGRAM, TIME_LIMIT_S, only_line, tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from tcptrace_lab.lab.networks.network import Network
    from tcptrace_lab.replay.packets.send import Sent

ATTEMPTS = 3
OURS = "tcp[tcpflags] & tcp-rst == 0"
"""A filter that excludes RSTs. The receiving kernel does not know these connections, so it answers with RSTs."""


def replayed(path: Path, out: Path, speed: float = 1.0, loops: int = 1, mtu: int = 9_188) -> Sent:
    """Send a capture from one network namespace to another, where a second capture is made.

    If `speed` is 0, all frames are sent at once.
    """
    with (
        Medium("veth", mtu).network() as network,
        capturing(network.points["server"], out, snaplen_bytes=65_535, capture_filter=OURS) as capture,
    ):
        with network.client.entered():
            done = send(Plan(str(path), "eth0", Pace(speed), loops=loops, allowed=tuple(own_networks())))
        capture.await_end(1)
    return done


@pytest.mark.live
@pytest.mark.parametrize("name", ["ethernet-nagle-on.pcapng", "ethernet-application-limited.pcapng", "atm9180-loss.pcap"])
def test_the_frames_arrive_in_order_and_byte_for_byte_on_time(name: str, tmp_path: Path) -> None:
    sent = [frame.data for frame in frames(str(CAPTURES / name), None, "")]
    for attempt in range(ATTEMPTS):
        out = tmp_path / f"{attempt}.pcapng"
        done = replayed(CAPTURES / name, out)
        assert [frame.data for frame in frames(str(out), None, "")] == sent
        assert (done.frames, done.refused, done.counted[1]) == (len(sent), 0, 0)
        published.check("packets", done.to_dict())
        late_s = done.to_dict()["lateness_p99_s"]
        if late_s is not None and late_s <= 0.001:
            return
    assert late_s is not None
    assert late_s <= 0.001


@pytest.mark.live
def test_at_once_all_frames_arrive_in_order_and_byte_for_byte_in_every_round(tmp_path: Path) -> None:
    path = CAPTURES / "ethernet-two-way.pcapng"
    sent = [frame.data for frame in frames(str(path), None, "")]
    assert len(sent) > 200
    done = replayed(path, tmp_path / "got.pcapng", speed=0, loops=3)
    assert [frame.data for frame in frames(str(tmp_path / "got.pcapng"), None, "")] == 3 * sent
    assert (done.frames, done.octets, done.refused, done.late_ns) == (3 * len(sent), 3 * sum(map(len, sent)), 0, [])


@pytest.mark.live
def test_frames_that_the_interface_refuses_are_counted_and_the_others_go(tmp_path: Path) -> None:
    link = bytes.fromhex("020000000002020000000001") + b"\x88\xb5"  # an EtherType for experiments (IEEE 802), so no host answers
    made = [link + bytes([number]) * size for number, size in enumerate((50, 1_600, 60, 0, 70))] + [b"short"]
    with RawPcapWriter(str(tmp_path / "some.pcap"), linktype=1) as writer:
        for data in made:
            writer.write(data)
    with Medium("veth", 1_500).network() as network, network.client.entered():
        done = send(Plan(str(tmp_path / "some.pcap"), "eth0", Pace(0)))
    # Two frames are refused: 1,600 bytes exceed the MTU of 1,500, and 5 bytes are less than an Ethernet header. A frame can have 14 bytes,
    # which is a header without payload (packet(7)).
    assert (done.frames, done.octets, done.refused) == (4, 4 * 14 + 180, 2)


def received(network: Network) -> int:
    with network.server.entered():
        lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    return next(int(line.split(":")[1].split()[1]) for line in lines if line.strip().startswith("eth0:"))


@pytest.mark.live
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("pace", ["--speed=1x", "--topspeed"])
def test_nothing_stays_behind_when_sending_is_ended_in_the_middle(number: signal.Signals, pace: str, tmp_path: Path) -> None:
    command: list[str | Path] = [
        PROGRAM,
        "replay",
        "packets",
        CAPTURES / "ethernet-nagle-on.pcapng",
        "-i",
        "eth0",
        pace,
        "--loop",
        "100000000",
    ]
    command += ["--filter", "tcp"]  # the tshark process of the filter must end, too
    with Medium("veth", 1_500).network() as network:
        with network.client.entered():
            sending = subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)})
        try:
            while received(network) < 200:  # the third loop has begun
                assert sending.poll() is None, sending.communicate()
                os.sched_yield()
            assert list(tmp_path.iterdir()) == []  # the temporary file of the command has no directory entry
            assert Path(f"/proc/{sending.pid}/task/{sending.pid}/children").read_text() == ""
            sending.send_signal(number)
            _, words = sending.communicate(timeout=TIME_LIMIT_S)
        finally:
            sending.kill()
        assert sending.returncode == (-9 if number is signal.SIGKILL else 130), words
        assert b"Traceback" not in words
        assert list(tmp_path.iterdir()) == []
        links = json.loads(subprocess.run(["ip", "-json", "link"], capture_output=True, check=True).stdout)
        assert not [link for link in links if link["ifname"] == "eth0" and link.get("address") == CLIENT_MAC]


def test_frames_keep_their_order_where_the_clock_steps_back() -> None:
    rows = list(timed(iter([(1_000, b"ab"), (5_000, b""), (2_000, b"cde"), (7_000, b"f")]), Pace(2.0)))
    assert rows == [(0, 0, b"ab"), (2_000, 2, b""), (2_000, 2, b"cde"), (3_000, 5, b"f")]
    with ready(iter(rows)) as laid:
        assert laid.due_ns.tolist() == [0, 2_000, 2_000, 3_000]
        assert laid.data.tobytes() == b"abcdef"
        assert [laid.data[at : at + size].tobytes() for at, size in zip(laid.start, laid.size, strict=True)] == [b"ab", b"", b"cde", b"f"]


def test_without_room_for_the_frames_one_line_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(OutputUnwritable, match="make room for the frames there"), ready(iter([(0, 0, b"a")])):
        pass


def test_no_frames_are_ready_at_once() -> None:
    with ready(iter([])) as laid:
        assert (len(laid.size), len(laid.data)) == (0, 0)


def test_the_loopback_interface_takes_no_address_that_is_not_ours() -> None:
    may = Destinations(networks(["10.0.0.0/8"])).may
    assert [may(bytes(address)) for address in ((10, 1, 2, 3), (8, 8, 8, 8))] == [True, False]
    assert Destinations(own_networks()).may(bytes((127, 0, 0, 1)))
    assert not Destinations(own_networks()).may(bytes((8, 8, 8, 8)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-i", "nowhere0"], "no interface 'nowhere0'"),
        ([], "name an interface"),
        (["-i", "lo", "--speed", "2x", "--topspeed"], "exclude each other"),
        (["-i", "lo", "--speed", "0"], "above 0"),
        (["-i", "lo", "--range", "9-1"], "is not a range of frames"),
        (["-i", "lo", "--address", "1.2.3=4"], "is not an IP address"),
        (["-i", "lo", "--allow", "everywhere"], "is not a network"),
        (["-i", "lo", "--address", "192.0.2.2=8.8.8.8"], "which is not an allowed destination"),
        (["-i", "lo", "--rate", "fast"], "write it as 10Mbit/s or 1000pps"),
        (["-i", "lo", "--mtu", "67"], "below 68"),
    ],
)
def test_what_may_not_be_sent_is_refused_in_one_line(arguments: list[str], words: str) -> None:
    done = tcptrace_lab("replay", "packets", CAPTURES / "loopback-small-receive-window.pcap", *arguments)
    assert done.returncode in {2, 3}
    line = only_line(done.stderr)
    assert words in line or "is truncated" in line


@pytest.mark.parametrize("pace", ["--topspeed", "--dry-run"])
def test_packets_without_a_destination_are_refused_in_one_line(pace: str, tmp_path: Path) -> None:
    short = tmp_path / "short.pcap"
    with short.open("wb") as out, (CAPTURES / "ethernet-nagle-on.pcapng").open("rb") as file:
        writer = dpkt.pcap.Writer(out, snaplen=30)
        for at_s, frame in dpkt.pcapng.Reader(file):
            writer.writepkt_time(frame[:30], at_s)  # 14 bytes of Ethernet and 16 of IP, so the IP destination is missing
    done = tcptrace_lab("replay", "packets", short, "-i", "lo", pace)
    assert done.returncode == 3
    assert "frame 1 is truncated before its IP destination address" in only_line(done.stderr)


def test_a_dry_run_says_what_would_be_sent() -> None:
    done = tcptrace_lab("replay", "packets", CAPTURES / "ethernet-nagle-on.pcapng", "-i", "lo", "--speed", "2x", "--dry-run")
    assert (done.returncode, "would send 68 frames" in only_line(done.stderr), "0.263 s" in only_line(done.stderr)) == (0, True, True)


def test_a_dry_run_writes_what_would_be_sent_as_json() -> None:
    """According to Wireshark's capinfos, the capture lasts 0.527 s."""
    done = tcptrace_lab(
        "replay", "packets", CAPTURES / "ethernet-nagle-on.pcapng", "-i", "lo", "--dry-run", "--loop", "3", "--json", "-", "-q"
    )
    reported = json.loads(done.stdout)
    published.check("packets", reported)
    assert (reported["dry_run"], reported["frames"], reported["bytes"], reported["loops"]) == (True, 68, 5_584, 3)
    assert reported["duration_s"] == pytest.approx(0.526884, abs=1e-6)


@pytest.mark.parametrize("arguments", [["--range", "69-70"], ["--filter", "udp"]])
def test_a_choice_that_leaves_no_frame_is_reported(arguments: list[str]) -> None:
    needs.program("tshark")
    done = tcptrace_lab("replay", "packets", CAPTURES / "ethernet-nagle-on.pcapng", "-i", "lo", "--topspeed", *arguments)
    assert done.returncode == 2
    assert "select no frame" in only_line(done.stderr)


def test_a_display_filter_that_tshark_refuses_is_reported_in_its_words() -> None:
    needs.program("tshark")
    done = tcptrace_lab("replay", "packets", CAPTURES / "ethernet-nagle-on.pcapng", "-i", "lo", "--filter", "tcp.port ==")
    assert done.returncode == 2
    assert only_line(done.stderr).startswith("tcptrace-lab: --filter: tshark says: ")
    assert "root" not in only_line(done.stderr)


def test_a_compressed_capture_has_the_frames_of_the_plain_one(tmp_path: Path) -> None:
    needs.program("tshark")
    plain = CAPTURES / "ethernet-nagle-on.pcapng"
    packed = tmp_path / "capture.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert list(frames(str(packed), None, "")) == list(frames(str(plain), None, ""))
    assert [frame.number for frame in frames(str(packed), None, "tcp.flags.syn == 1")] == [1, 2]


def _pcap(*records: bytes, link: int = 1) -> bytes:
    """Return a pcap file with these frames, one per second. The link type 1 is Ethernet."""
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, link)
    return header + b"".join(struct.pack("<IIII", at, 0, len(data), len(data)) + data for at, data in enumerate(records))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither pcap nor pcapng"),
        (b"\x1f\x8b\x08 is all", "neither pcap nor pcapng"),
        (b"root:x:0:0", "neither pcap nor pcapng"),
        (_pcap(), "contains no frames"),
        (_pcap(bytes(60), link=127), "link type 127"),
        (_pcap(bytes(60), bytes(60))[:-74], "frame 2; --range 1-1 sends what is before"),
        (None, "No such file or directory"),
    ],
    ids=["empty", "cut gzip", "text", "no frames", "802.11", "cut in a record's header", "missing"],
)
def test_what_is_no_capture_or_a_damaged_one_is_refused_in_one_line(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    if content is not None:
        path.write_bytes(content)
    done = tcptrace_lab("replay", "packets", path, "-i", "lo", "--topspeed", "--dry-run")
    assert done.returncode == 3
    assert words in only_line(done.stderr)


def test_the_frames_before_the_damage_can_be_sent(tmp_path: Path) -> None:
    (tmp_path / "cut.pcap").write_bytes(_pcap(bytes(60), bytes(60))[:-74])
    assert [frame.data for frame in frames(str(tmp_path / "cut.pcap"), (1, 1), "")] == [bytes(60)]


@pytest.mark.parametrize("link", [101, 228, 0x3000_0000 | 228])
def test_bare_ip_packets_are_known_by_any_of_their_link_types(link: int, tmp_path: Path) -> None:
    """The upper bits of the link-type field have the length of the frame check sequence. These bits do not change the link type."""
    (tmp_path / "raw.pcap").write_bytes(_pcap(b"\x45" + bytes(19), link=link))
    assert list(frames(str(tmp_path / "raw.pcap"), None, "")) == [Frame(1, 0, b"\x45" + bytes(19), has_link=False)]


def test_only_packets_that_are_longer_than_the_mtu_are_taken_apart() -> None:
    """A packet that the snaplen truncated cannot be split, because its checksums cannot be computed."""
    packet = bytes(IP(src="192.0.2.1", dst="192.0.2.2") / TCP() / bytes(100))[:60]
    assert rewritten(Frame(1, 0, packet, has_link=False), Rewrite(mtu_bytes=140), ethernet=False) == packet
    with pytest.raises(CaptureInsufficient, match="is truncated"):
        rewritten(Frame(1, 0, packet, has_link=False), Rewrite(mtu_bytes=139), ethernet=False)


def test_ranges_and_display_filters_choose_frames() -> None:
    needs.program("tshark")
    path = str(CAPTURES / "ethernet-nagle-on.pcapng")
    assert [frame.number for frame in frames(path, (3, 7), "")] == [3, 4, 5, 6, 7]
    assert [frame.number for frame in frames(path, None, "tcp.flags.syn == 1")] == [1, 2]


@pytest.mark.parametrize(
    ("said", "due"), [(("", "", False), [0, 1000]), (("2x", "", False), [0, 500]), (("", "8Mbit/s", False), [0, 100_000])]
)
def test_frames_are_due_as_the_pace_says(said: tuple[str, str, bool], due: list[int]) -> None:
    speed, rate, topspeed = said
    found = pace(speed, rate, topspeed=topspeed)
    assert [found.due_ns(0, 0, 0), found.due_ns(1000, 100, 1)] == due


def test_a_thousand_packets_a_second_are_a_millisecond_apart() -> None:
    assert pace("", "1000pps", topspeed=False).due_ns(7, 7, 3) == 3_000_000
    with pytest.raises(UsageError, match="0 bit/s"):
        pace("", "0", topspeed=False)


def test_a_rewritten_packet_has_the_checksums_that_its_rfcs_ask_for() -> None:
    original = bytes(
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1, dport=2) / b"abc"
    )
    change = Rewrite("", "02:00:00:00:00:09", (("10.0.0.2", "192.0.2.2"),), ((2, 80),))
    made = Ether(rewritten(Frame(1, 0, original, has_link=True), change, ethernet=True))
    assert (made.dst, made[IP].dst, made[TCP].dport, bytes(made[TCP].payload)) == ("02:00:00:00:00:09", "192.0.2.2", 80, b"abc")
    whole = bytes(made[IP])
    assert sum(int.from_bytes(whole[at : at + 2]) for at in range(0, 20, 2)) % 0xFFFF == 0  # RFC 791: the IP header sums to 0
    pseudo = whole[12:20] + bytes((0, 6)) + len(whole[20:]).to_bytes(2) + whole[20:] + bytes(len(whole) % 2)
    assert sum(int.from_bytes(pseudo[at : at + 2]) for at in range(0, len(pseudo), 2)) % 0xFFFF == 0  # RFC 9293, 3.1
