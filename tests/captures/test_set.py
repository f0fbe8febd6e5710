"""Every capture in `captures/` shows what its name claims.

The two independent sources are tshark and the kernel's TCP_INFO.
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import needs
from tests.support.places import CAPTURES

sys.path.insert(0, str(CAPTURES))

import figures
from _scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from figures import Frame

ALL = figures.captures(CAPTURES)
MAX_BYTES = 300_000
MEDIA = ("loopback", "ethernet", "atm9180", "atm9188")
QUESTIONS = ("bulk", "nagle-on", "nagle-off", "small-receive-window", "small-send-buffer", "slow-reader", "loss")
FIN, SYN, RST = 0x01, 0x02, 0x04
TIMESTAMP_BYTES = 12
IPV4_TCP_BYTES = 40
US_PER_S = 1_000_000


def setting(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.with_name(f"{figures.stem(path)}.json").read_text())
    return loaded


def capture(name: str) -> Path:
    (path,) = [path for path in ALL if figures.stem(path) == name]
    return path


def is_relayed_ipv4(path: Path) -> bool:
    """Return whether the capture has IPv4 packets that passed a relay.

    Captures of IPv6 are excluded. An IPv6 host also sends reports of its multicast groups, which are in the relay's log but not in the
    capture.
    """
    beside = setting(path)
    return beside["relay"] is not None and not beside["medium"]["ipv6"]


@functools.cache
def frames(path: Path) -> list[Frame]:
    """Return the frames of a capture, as tshark sees them. Each capture is read only once."""
    needs.program("tshark")
    return figures.frames(path)


def client_info(name: str) -> dict[str, Any]:
    """Return the TCP_INFO of the client of the first connection."""
    info: dict[str, Any] = setting(capture(name))["connections"][0]["client"]["tcp_info"]
    return info


def from_client(path: Path) -> list[Frame]:
    return [frame for frame in frames(path) if frame.source_port >= figures.FIRST_CLIENT_PORT]


def from_server(path: Path) -> list[Frame]:
    return [frame for frame in frames(path) if frame.source_port < figures.FIRST_CLIENT_PORT]


def resent(segments: list[Frame]) -> int:
    """Count the segments that tshark calls retransmitted or out of order.

    In a capture at the sender, tshark calls a segment out of order if it was retransmitted within one RTT.
    """
    return sum(bool({"retransmission", "out_of_order"} & segment.flags) for segment in segments)


def seconds(segments: list[Frame]) -> float:
    return (segments[-1].time_ns - segments[0].time_ns) / figures.NS_PER_S


def test_every_question_is_asked_on_every_medium() -> None:
    names = {figures.stem(path) for path in ALL}
    assert {f"{medium}-{question}" for medium in MEDIA for question in QUESTIONS} <= names
    assert {path.suffix for path in ALL} == set(figures.SUFFIXES)


def test_no_two_captures_are_the_same() -> None:
    assert len({hashlib.sha256(path.read_bytes()).digest() for path in ALL}) == len(ALL)


def test_the_set_is_what_make_makes() -> None:
    made = {stem for scenario in SCENARIOS.values() for _, stem in scenario.files()}
    assert {figures.stem(path) for path in ALL} == made == {path.stem for path in CAPTURES.glob("*.json")}


def test_readme_describes_every_capture() -> None:
    words = (CAPTURES / "README.md").read_text()
    assert [path.name for path in ALL if f"`{path.name}`" not in words] == []


@pytest.mark.parametrize("path", ALL, ids=figures.stem)
def test_capture_is_small_and_its_setting_lies_beside_it(path: Path) -> None:
    assert path.stat().st_size <= MAX_BYTES
    beside = setting(path)
    assert beside["file"] == path.name
    assert beside["description"]
    assert beside["kernel"].startswith("Linux ")
    assert beside["schedule"]["program"]
    for connection in beside["connections"]:
        for side in ("client", "server"):
            info = connection[side]["tcp_info"]
            assert info["tcpi_snd_mss"] > 0
            assert {"tcpi_rtt", "tcpi_rwnd_limited", "tcpi_sndbuf_limited", "tcpi_dsack_dups", "tcpi_rcv_ooopack", "tcpi_snd_wnd"} <= set(
                info
            )
            assert info["tcpi_unacked"] == info["tcpi_notsent_bytes"] == 0


@pytest.mark.parametrize("path", ALL, ids=figures.stem)
def test_stream_bytes_are_those_that_the_kernel_counts(path: Path) -> None:
    """In each direction, the sequence ranges together cover the bytes that the kernels count.

    The sender's kernel counts them in `bytes_acked`, and the receiver's kernel in `bytes_received`.
    """
    with_data = sorted({frame.stream for frame in frames(path) if frame.payload_bytes})
    accounts = setting(path)["connections"]
    assert len(with_data) == len(accounts)
    for stream, account in zip(with_data, accounts, strict=True):
        for sender, receiver, segments in (("client", "server", from_client(path)), ("server", "client", from_server(path))):
            seen = covered_bytes([frame for frame in segments if frame.stream == stream and frame.payload_bytes])
            syn_bytes = 1 if sender == "client" else 0  # the kernel counts the client's SYN, not the server's
            assert account[sender]["tcp_info"]["tcpi_bytes_acked"] - syn_bytes == seen
            assert account[receiver]["tcp_info"]["tcpi_bytes_received"] == seen


def covered_bytes(segments: list[Frame]) -> int:
    """Return the number of bytes of the stream that these segments cover."""
    covered, end = 0, 0
    for segment in sorted(segments, key=lambda frame: frame.seq):
        segment_end = segment.seq + segment.payload_bytes
        covered += max(0, segment_end - max(end, segment.seq))
        end = max(end, segment_end)
    return covered


@pytest.mark.parametrize("path", [path for path in ALL if setting(path)["vantage"] != "server"], ids=figures.stem)
def test_resent_segments_are_those_that_the_kernel_counts(path: Path) -> None:
    """A capture at the sender contains every retransmitted segment, with data or with a SYN."""
    kernel = sum(connection["client"]["tcp_info"]["tcpi_total_retrans"] for connection in setting(path)["connections"])
    assert resent(from_client(path)) == kernel


@pytest.mark.parametrize("path", [path for path in ALL if is_relayed_ipv4(path)], ids=figures.stem)
def test_relay_log_accounts_for_every_frame(path: Path) -> None:
    beside = setting(path)
    for direction, seen, arriving in (
        ("forward", from_client(path), beside["vantage"] == "server"),
        ("backward", from_server(path), beside["vantage"] == "client"),
    ):
        log = beside["relay"][direction]["log"]
        dropped = len(log["lost_indexes"]) + len(log["queue_full_indexes"])
        assert len(seen) == log["frames"] + (len(log["duplicated_indexes"]) - dropped if arriving else 0)


@pytest.mark.parametrize("path", [path for path in ALL if not setting(path)["medium"]["offloads"]], ids=figures.stem)
def test_no_segment_is_longer_than_the_mss_without_offload(path: Path) -> None:
    medium = setting(path)["medium"]
    header_bytes = (
        IPV4_TCP_BYTES + (20 if medium["ipv6"] else 0) + (0 if "net.ipv4.tcp_timestamps" in medium["sysctls"] else TIMESTAMP_BYTES)
    )
    assert max(frame.payload_bytes for frame in frames(path)) <= medium["mtu_bytes"] - header_bytes


def test_bulk_transfers_use_the_whole_mss() -> None:
    mss = {name: max(frame.payload_bytes for frame in frames(capture(f"{name}-bulk"))) for name in MEDIA}
    assert mss == {"loopback": 65_483, "ethernet": 1_448, "atm9180": 9_128, "atm9188": 9_148}


def test_offload_shows_segments_longer_than_the_wire_carries() -> None:
    for name in ("ethernet-offload-bulk", "ethernet-offload-bulk-at-server"):
        assert max(frame.payload_bytes for frame in frames(capture(name))) > 10 * 1_448


@pytest.mark.parametrize("name", [f"{medium}-nagle-on" for medium in (*MEDIA, "loopback-ipv6")] + ["ethernet-nagle-on-at-server"])
def test_nagle_holds_the_second_write_for_a_delayed_ack(name: str) -> None:
    segments = frames(capture(name))
    assert len(figures.stalls(segments)) >= 10
    assert seconds(segments) >= 10 * figures.STALL_FROM_S


@pytest.mark.parametrize("medium", MEDIA)
def test_nodelay_never_waits(medium: str) -> None:
    segments = frames(capture(f"{medium}-nagle-off"))
    last_data = max(index for index, frame in enumerate(segments) if frame.payload_bytes)
    assert figures.stalls(segments) == []
    assert seconds(segments[: last_data + 1]) < figures.STALL_FROM_S
    on, off = (setting(capture(f"{medium}-nagle-{state}")) for state in ("on", "off"))
    assert on["schedule"] == off["schedule"]


@pytest.mark.parametrize("medium", MEDIA)
def test_small_receive_window_bounds_the_bytes_in_flight(medium: str) -> None:
    path = capture(f"{medium}-small-receive-window")
    windows = [frame.window_bytes for frame in from_server(path) if not frame.tcp_flags & (SYN | RST)]
    assert max(frame.in_flight_bytes for frame in from_client(path)) <= max(windows) <= 2 * 16_384
    assert figures.count(from_client(path), "window_full") >= 20


@pytest.mark.parametrize("medium", MEDIA[1:])
def test_kernel_blames_the_window_for_a_transfer_held_by_it(medium: str) -> None:
    info = client_info(f"{medium}-small-receive-window")
    assert info["tcpi_rwnd_limited"] >= 0.9 * info["tcpi_busy_time"]


@pytest.mark.parametrize("medium", MEDIA)
def test_small_send_buffer_bounds_the_bytes_in_flight_below_the_window(medium: str) -> None:
    path = capture(f"{medium}-small-send-buffer")
    max_unacked_bytes = setting(path)["schedule"]["max_unacked_bytes"]
    in_flight = max(frame.in_flight_bytes for frame in from_client(path))
    assert 0.7 * max_unacked_bytes <= in_flight <= max_unacked_bytes < min(frame.window_bytes for frame in from_server(path)[1:])
    assert figures.count(frames(path), "window_full") == 0


@pytest.mark.parametrize("medium", MEDIA)
def test_slow_reader_closes_the_window_and_is_probed(medium: str) -> None:
    path = capture(f"{medium}-slow-reader")
    assert figures.count(from_server(path), "zero_window") >= 3
    assert figures.count(from_client(path), "keep_alive") >= 2  # tshark's name for a zero-window probe of Linux
    assert figures.count(from_server(path), "window_update") >= 1
    info = client_info(f"{medium}-slow-reader")
    assert info["tcpi_rwnd_limited"] >= 1.5 * US_PER_S
    assert info["tcpi_dsack_dups"] == info["tcpi_total_retrans"]  # every retransmit was a probe that arrived; nothing was lost


@pytest.mark.parametrize("name", [f"{medium}-loss" for medium in MEDIA[1:]] + ["ethernet-random-loss", "ethernet-queue-overflow"])
def test_what_the_relay_lost_is_resent_once(name: str) -> None:
    log = setting(capture(name))["relay"]["forward"]["log"]
    assert resent(from_client(capture(name))) == len(log["lost_indexes"] + log["queue_full_indexes"]) >= 3
    assert client_info(name)["tcpi_total_rto"] == 0


def test_loopback_loss_is_repaired_by_sack_and_by_a_tail_loss_probe() -> None:
    path = capture("loopback-loss")
    beside = setting(path)
    assert beside["segments_dropped_by_filter"] == len(beside["schedule"]["lost_writes"]) == 4
    (probe,) = [gap for gap in figures.gaps(frames(path)) if gap.length_s > 0.1]
    assert "retransmission" in frames(path)[probe.after - 1].flags


def test_receiver_sees_holes_that_the_sender_does_not() -> None:
    assert figures.count(frames(capture("ethernet-loss-at-server")), "lost_segment") > 0
    assert figures.count(frames(capture("ethernet-loss")), "lost_segment") == 0


def test_tail_loss_costs_a_probe_and_a_timeout() -> None:
    info = client_info("ethernet-tail-loss")
    assert (info["tcpi_total_retrans"], info["tcpi_total_rto"]) == (3, 1)
    assert sum(gap.length_s >= 0.2 for gap in figures.gaps(frames(capture("ethernet-tail-loss")))) == 3


def test_lost_syn_costs_a_second() -> None:
    first, second, *_ = frames(capture("ethernet-syn-loss"))
    assert first.tcp_flags == second.tcp_flags == SYN
    assert 0.95 <= (second.time_ns - first.time_ns) / figures.NS_PER_S <= 1.2


def test_reordered_segments_are_resent_needlessly() -> None:
    info = client_info("ethernet-reordering")
    assert info["tcpi_total_retrans"] == info["tcpi_dsack_dups"] == 2
    assert setting(capture("ethernet-reordering"))["relay"]["forward"]["log"]["lost_indexes"] == []


def test_duplicates_of_the_network_are_not_resent() -> None:
    assert figures.count(frames(capture("ethernet-duplicates")), "spurious_retransmission") == 4
    assert client_info("ethernet-duplicates")["tcpi_total_retrans"] == 0


def test_flights_double_in_slow_start() -> None:
    data = [frame for frame in from_client(capture("ethernet-slow-start")) if frame.payload_bytes]
    flights: list[int] = [1]
    for before, after in pairwise(data):
        if after.time_ns - before.time_ns > 0.04 * figures.NS_PER_S:
            flights.append(0)
        flights[-1] += 1
    assert flights[0] == 10  # the initial window of RFC 6928 (segments)
    assert all(after >= 1.8 * before for before, after in pairwise(flights[:4]))


def test_queue_grows_the_round_trip_and_bbr_keeps_it_shorter() -> None:
    cubic, bbr = client_info("ethernet-bottleneck"), client_info("ethernet-bbr")
    assert cubic["tcpi_rtt"] >= 5 * cubic["tcpi_min_rtt"]
    assert bbr["tcpi_rtt"] <= 0.7 * cubic["tcpi_rtt"]


def test_send_buffer_under_bbr_is_counted_by_the_kernel() -> None:
    assert client_info("ethernet-bbr-sndbuf")["tcpi_sndbuf_limited"] > 0


def test_keepalives_come_every_second() -> None:
    times = [frame.time_ns / figures.NS_PER_S for frame in frames(capture("ethernet-keepalive")) if "keep_alive" in frame.flags]
    assert len(times) == 3
    assert all(0.95 <= after - before <= 1.1 for before, after in pairwise(times))


def test_short_connections_end_in_every_way() -> None:
    segments = frames(capture("ethernet-short-connections"))
    ends = {stream: {frame.tcp_flags & (FIN | RST) for frame in segments if frame.stream == stream} - {0} for stream in range(4)}
    assert ends == {0: {RST}, 1: {RST}, 2: {FIN}, 3: {FIN}}
    assert len({frame.source_port for frame in segments if frame.stream in {2, 3}}) == 2  # both connections use one pair of ports


@pytest.mark.parametrize(("name", "encapsulation"), [("ethernet-bulk", 1), ("raw-bulk", 7), ("cooked-bulk", 25), ("cooked-v2-bulk", 210)])
def test_link_types(name: str, encapsulation: int) -> None:
    """The expected numbers are Wireshark's WTAP_ENCAP_* values for Ethernet, raw IP, and Linux cooked mode 1 and 2."""
    command = [needs.program("tshark"), "-n", "-r", str(capture(name)), "-c", "1", "-T", "fields", "-e", "frame.encap_type"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == str(encapsulation)
