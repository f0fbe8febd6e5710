"""The figures of a UDP flow equal those calculated by hand and those of a second, simple implementation."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcptrace_lab import schema
from tcptrace_lab.udp.datagrams import read_datagrams
from tests.support import packets
from tests.support.peers import reference_udp

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def flow(folder: Path, text: str) -> dict[str, Any]:
    table = read_datagrams(packets.capture(folder / "exchange.pcap", text)).flows.collect()
    assert table.height == 1
    return table.row(0, named=True)


def numbered(*ip_ids: int) -> str:
    return "\n".join(f"+1ms C > S udp 100 {{id {ip_id % 65_536}}}" for ip_id in ip_ids)


def reported(folder: Path, text: str) -> tuple[int | None, int | None, str | None]:
    """Return the numbers of the client's missing and reordered datagrams, and the name of the evidence for them."""
    found = flow(folder, text)
    return found["client_missing_datagrams"], found["client_reordered_datagrams"], found["client_loss_known_by"]


def test_amounts_sizes_pace_and_rate_of_three_datagrams(tmp_path: Path) -> None:
    found = flow(tmp_path, "0 C > S udp 100\n10ms C > S udp 200\n30ms C > S udp 100")
    assert (found["client_addr"], found["client_port"], found["server_addr"], found["server_port"]) == ("10.0.0.1", 40_000, "10.0.0.2", 80)
    client = {name: found[f"client_{name}"] for name in schema.FLOW_DIRECTION_NAMES}
    assert client == {
        "datagrams": 3,
        "payload_bytes": 400,
        "fragmented_datagrams": 0,
        "min_payload_bytes": 100,
        "mean_payload_bytes": 133,
        "max_payload_bytes": 200,
        "distinct_sizes": 2,
        "first_ts_ns": packets.BASE_NS,
        "last_ts_ns": packets.BASE_NS + 30 * MS,
        "rate_bps": pytest.approx(400 * 8 / 0.030),
        "gap_p50_ns": 10 * MS,
        "gap_p95_ns": 20 * MS,
        "gap_max_ns": 20 * MS,
        "gap_variation": pytest.approx(5 / 15, abs=1e-6),  # gaps of 10 and 20 ms deviate by 5 ms from their mean of 15
        "missing_datagrams": None,
        "reordered_datagrams": None,
        "loss_known_by": None,
    }


def test_a_side_that_sent_nothing_has_no_sizes_and_no_times(tmp_path: Path) -> None:
    found = flow(tmp_path, "0 C > S udp 100")
    server = {name: found[f"server_{name}"] for name in schema.FLOW_DIRECTION_NAMES}
    zeros = ("datagrams", "payload_bytes", "fragmented_datagrams", "distinct_sizes")
    assert server == {name: 0 if name in zeros else None for name in schema.FLOW_DIRECTION_NAMES}
    assert (found["client_rate_bps"], found["client_gap_p50_ns"], found["client_gap_variation"]) == (None, None, None)
    assert (found["echo_samples"], found["echo_p50_ns"]) == (0, None)


def test_an_even_pace_does_not_vary(tmp_path: Path) -> None:
    found = flow(tmp_path, "\n".join("+20ms C > S udp 172" for _ in range(200)))
    assert (found["client_gap_variation"], found["client_gap_p50_ns"], found["client_gap_max_ns"]) == (0, 20 * MS, 20 * MS)
    assert found["client_rate_bps"] == pytest.approx(200 * 172 * 8 / (199 * 0.020))


def test_bursts_vary_more_than_chance(tmp_path: Path) -> None:
    burst = "+100ms C > S udp 1000\n" + "+0 C > S udp 1000\n" * 9
    assert flow(tmp_path, burst * 20)["client_gap_variation"] > 2


def test_datagrams_without_data_have_a_size_of_zero(tmp_path: Path) -> None:
    found = flow(tmp_path, "0 C > S udp 0\n1 C > S udp 0")
    assert (found["client_datagrams"], found["client_max_payload_bytes"], found["client_rate_bps"]) == (2, 0, 0)


def test_a_gap_over_which_the_clock_went_back_is_none(tmp_path: Path) -> None:
    found = flow(tmp_path, "0.1 C > S udp 9\n0.05 C > S udp 9\n0.08 C > S udp 9")
    assert (found["client_gap_p50_ns"], found["client_gap_max_ns"]) == (30 * MS, 30 * MS)
    assert found["client_rate_bps"] == pytest.approx(27 * 8 / 0.050)


def test_a_missing_ip_id_counts_as_one_lost_datagram(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(11), *range(12, 21))) == (1, 0, "ip_id")


def test_three_missing_ip_ids_in_a_row_count_as_three(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(20), *range(23, 40))) == (3, 0, "ip_id")


def test_a_datagram_that_was_overtaken_is_late_and_not_missing(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(20), 21, 20, *range(22, 60))) == (0, 1, "ip_id")


def test_two_datagrams_behind_a_third_are_both_late(tmp_path: Path) -> None:
    """A datagram is reordered if its number is below the next expected number (RFC 4737, 3.3).

    This holds even if this number is above the number of the datagram just before.
    """
    assert reported(tmp_path, numbered(*range(20), 22, 20, 21, *range(23, 80))) == (0, 2, "ip_id")


def test_a_datagram_from_before_the_first_captured_one_is_late(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(10, 9, *range(11, 60))) == (0, 1, "ip_id")


def test_a_datagram_captured_twice_hides_no_loss(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(20), 19, *range(20, 30), *range(31, 60))) == (1, 0, "ip_id")


def test_datagrams_captured_twice_are_not_reordered(tmp_path: Path) -> None:
    """A switch is captured at two points, so the capture has each datagram twice. The second copy comes after the next datagram."""
    twice = [0, 1, 0, *(number for n in range(2, 60) for number in (n, n - 1))]
    assert reported(tmp_path, numbered(*twice)) == (0, 0, "ip_id")


def test_among_copies_a_late_datagram_is_still_late(tmp_path: Path) -> None:
    in_pairs = [number for n in (*range(20), 21, 20, *range(22, 80)) for number in (n, n)]
    assert reported(tmp_path, numbered(*in_pairs)) == (0, 1, "ip_id")


def test_a_number_that_comes_again_after_64_others_is_no_copy(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(100), 37, *range(100, 160))) == (0, 0, "ip_id"), "the 63rd below the highest, 99"
    assert reported(tmp_path, numbered(*range(100), 35, *range(100, 160))) == (0, 1, "ip_id")


def test_ip_ids_that_wrap_around_go_on(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(65_530, 65_536 + 3), *range(65_540, 65_560))) == (1, 0, "ip_id")


def test_a_counter_shared_with_other_traffic_shows_order_but_not_loss(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*range(0, 90, 3))) == (None, 0, None)
    assert reported(tmp_path, numbered(*range(0, 90, 3), 86, *range(90, 180, 3))) == (None, 1, None)


@pytest.mark.parametrize(
    "ip_ids",
    [
        pytest.param([0] * 40, id="always 0"),
        pytest.param([n * 40_503 for n in range(40)], id="random"),
        pytest.param([n * 256 for n in range(40)], id="little-endian"),
        pytest.param(range(10), id="nine steps"),
    ],
)
def test_ip_ids_that_do_not_count_datagrams_show_nothing(tmp_path: Path, ip_ids: list[int]) -> None:
    missing, _, known_by = reported(tmp_path, numbered(*ip_ids))
    assert (missing, known_by) == (None, None)


def test_more_than_one_loss_in_ten_is_not_distinguished_from_other_traffic(tmp_path: Path) -> None:
    assert reported(tmp_path, numbered(*(n for n in range(100) if n % 11))) == (8, 0, "ip_id")
    assert reported(tmp_path, numbered(*(n for n in range(100) if n % 8))) == (None, 0, None)


def test_ipv6_has_no_ip_id(tmp_path: Path) -> None:
    hosts = "host A [2001:db8::1]:5000\nhost B [2001:db8::2]:53\n"
    assert reported(tmp_path, hosts + "+1ms A > B udp 100\n" * 20) == (None, None, None)


def test_each_direction_has_its_own_counter(tmp_path: Path) -> None:
    text = "\n".join(f"+1ms C > S udp 100 {{id {n}}}\n+1ms S > C udp 50 {{id {900 + n + n // 20}}}" for n in range(30))
    found = flow(tmp_path, text)
    assert (found["client_missing_datagrams"], found["server_missing_datagrams"]) == (0, 1)


def test_an_echo_is_the_servers_first_datagram_after_the_clients(tmp_path: Path) -> None:
    found = flow(
        tmp_path,
        """
        0     C > S udp 40
        20ms  S > C udp 40   # answers after 20 ms
        100ms C > S udp 40
        130ms S > C udp 40   # after 30 ms
        131ms S > C udp 40   # and once more: no answer
        200ms C > S udp 40   # lost, or its answer
        300ms C > S udp 40
        325ms S > C udp 40   # after 25 ms
        """,
    )
    assert found["echo_samples"] == 3
    assert [found[f"echo_{name}_ns"] for name in ("min", "p50", "p95", "max")] == [20 * MS, 25 * MS, 30 * MS, 30 * MS]


def test_who_was_seen_first_is_the_client_and_is_not_timed(tmp_path: Path) -> None:
    found = flow(tmp_path, "0 S > C udp 40\n10ms C > S udp 40\n15ms S > C udp 40")
    assert (found["client_addr"], found["echo_samples"], found["echo_p50_ns"]) == ("10.0.0.2", 1, 10 * MS)


PAUSES_NS = st.one_of(st.integers(0, 5), st.integers(-3, 10**10), st.just(20 * MS))
STEPS = st.one_of(st.sampled_from([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, -1, 0]), st.integers(0, 65_535))
SIZES = st.integers(0, 3) | st.integers(0, 65_000)
DATAGRAMS = st.lists(st.tuples(st.integers(0, 2), st.booleans(), PAUSES_NS, SIZES, STEPS), max_size=120)
SNAPLEN = 62
"""Length in bytes of the Ethernet, IPv6 and UDP headers together."""


def frame(flow: int, size: int, ip_id: int, *, from_client: bool) -> bytes:
    """Return the bytes of a frame with one datagram, truncated to `SNAPLEN`. Flow 2 uses IPv6."""
    ports = (5_000 + flow, 53) if from_client else (53, 5_000 + flow)
    udp = struct.pack("!HHHH", *ports, 8 + size, 0) + bytes(min(size, SNAPLEN))
    hosts = (1, 2) if from_client else (2, 1)
    if flow == 2:
        addresses = b"".join(b"\x20\x01\x0d\xb8" + bytes(11) + bytes([host]) for host in hosts)
        return bytes(12) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 8 + size, 17, 64) + addresses + udp[:8]
    addresses = b"".join(bytes([10, 0, 0, host]) for host in hosts)
    return (bytes(12) + b"\x08\x00" + struct.pack("!BBHHHBBH", 0x45, 0, 28 + size, ip_id, 0, 64, 17, 0) + addresses + udp)[:SNAPLEN]


def block(kind: int, body: bytes) -> bytes:
    """Return a pcapng block. Its body must be a whole number of 32-bit words."""
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def capture_of(datagrams: list[tuple[int, bool, int, int, int]], *, timeless: bool) -> bytes:
    """Return a pcap file with times in nanoseconds.

    If `timeless` is true, return a pcapng file of Simple Packet Blocks, which have no times.
    """
    now_ns = packets.BASE_NS
    last_id: dict[tuple[int, bool], int] = {}
    if timeless:
        written = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, SNAPLEN))
    else:
        written = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1)
    for flow, from_client, pause_ns, size, step in datagrams:
        now_ns += pause_ns
        own = (flow, from_client)
        last_id[own] = (last_id.get(own, 65_500) + step) % 65_536
        data = frame(flow, size, last_id[own], from_client=from_client)
        length = size + (62 if flow == 2 else 42)
        if timeless:
            written += block(3, struct.pack("<I", length) + data + bytes(-len(data) % 4))
        else:
            written += struct.pack("<IIII", *divmod(now_ns, 10**9), len(data), length) + data
    return written


@settings(max_examples=200)
@given(datagrams=DATAGRAMS, spill_rows=st.sampled_from([0, 10_000]), timeless=st.booleans())
def test_figures_are_those_of_a_plain_reckoning(
    datagrams: list[tuple[int, bool, int, int, int]], spill_rows: int, tmp_path_factory: pytest.TempPathFactory, *, timeless: bool
) -> None:
    path = tmp_path_factory.mktemp("flows") / "flows.pcap"
    path.write_bytes(capture_of(datagrams, timeless=timeless))
    read = read_datagrams(path, spill_rows=spill_rows)
    made = read.datagrams.collect().to_dicts()
    assert [row["payload_bytes"] for row in made] == [size for _, _, _, size, _ in datagrams]
    found = {row.pop("flow"): row for row in read.flows.collect().to_dicts()}
    expected = reference_udp.flows(made)
    assert list(found) == sorted(expected)
    for number, wanted in expected.items():
        for name, value in wanted.items():
            assert found[number][name] == reference_udp.near(name, value), (number, name)


def test_the_reference_counts_as_its_definitions_say() -> None:
    """Counts that are calculated by hand check the second implementation."""
    assert reference_udp.told_by([*range(15), *range(16, 30)]) == (1, 0)
    assert reference_udp.told_by([*range(15), 16, 15, *range(17, 60)]) == (0, 1)
    assert reference_udp.nearest_rank([4, 1, 3, 2], 0.50) == 2
