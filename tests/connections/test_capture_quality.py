"""Capture quality: the faults that lower the quality, and the confidence of findings in a capture of low quality."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dpkt
import pytest

import tcptrace_lab
from tcptrace_lab import verdict
from tcptrace_lab.connections import capture_quality
from tests.support import needs, packets
from tests.support.judged import judged_text
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

TRANSFER = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460>
    0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460>
    0.010 C > S .         ack 1
    0.020 C > S .  1:1461    ack 1
    0.020 C > S .  1461:2921 ack 1
    0.031 S > C .         ack 2921
    0.040 C > S F. 2921:2921 ack 1
    0.051 S > C F. 1:1       ack 2922
    0.051 C > S .         ack 2
"""


INTERFACE_STATISTICS, ISB_IFDROP = 5, 5
"""Type of a block of pcapng, and code of an option of this block (draft-ietf-opsawg-pcapng, 4.6)."""


def quality_of(path: Path) -> capture_quality.CaptureQuality:
    tables = tcptrace_lab.read(path)
    return capture_quality.judge(tables.info, tables.connections, complete=tables.complete)


def quality_of_text(folder: Path, text: str, **options: Any) -> capture_quality.CaptureQuality:
    return quality_of(packets.capture(folder / "exchange.pcap", text, **options))


def names(found: capture_quality.CaptureQuality) -> list[str]:
    return [reason.name for reason in found.reasons]


def test_nothing_speaks_against_a_whole_capture(tmp_path: Path) -> None:
    found = quality_of_text(tmp_path, TRANSFER)
    assert (found.rating, found.factor, found.reasons) == ("good", 1, ())
    assert found.words == "capture quality: good"
    assert set(found.counts.values()) == {0}


def test_a_segment_that_was_acknowledged_and_is_not_there_is_suspected_dropped(tmp_path: Path) -> None:
    without = "\n".join(line for line in TRANSFER.splitlines() if "1:1461 " not in line)
    found = quality_of_text(tmp_path, without)
    assert (found.counts["drops_suspected"], names(found), found.rating) == (1, ["drops_suspected"], "limited")
    assert judged_text(tmp_path, without)["quality_reasons"] == ["much_not_captured"]


@pytest.mark.parametrize(("dropped", "factor"), [(0, None), (1, 0.9), (2, 0.7), (50, 0.4)])
def test_packets_that_the_kernel_dropped_weigh_by_their_share(dropped: int, factor: float | None, tmp_path: Path) -> None:
    """The capture has 1,000 packets, and the kernel dropped 0, 1, 2 or 50 more.

    A drop counter of 0 is reported as 0, not as unknown.
    """
    exchange = "\n".join(f"+0.1ms C > S . {1 + at}:{2 + at} ack 1\n+0.01ms S > C . ack {2 + at}" for at in range(500))
    path = packets.capture(tmp_path / "exchange.pcapng", exchange)
    option = struct.pack("<HHQHH", ISB_IFDROP, 8, dropped, 0, 0)
    length = 24 + len(option)
    path.write_bytes(path.read_bytes() + struct.pack("<5I", INTERFACE_STATISTICS, length, 0, 0, 0) + option + struct.pack("<I", length))
    reported = tcptrace_lab.analyze(path).capture["quality"]
    assert reported["kernel_drops"] == dropped
    assert {reason["name"]: reason["factor"] for reason in reported["reasons"]}.get("kernel_drops") == factor


def test_one_direction_alone_is_half_a_capture(tmp_path: Path) -> None:
    found = quality_of_text(tmp_path, "\n".join(line for line in TRANSFER.splitlines() if "S > C" not in line))
    assert (found.counts["one_direction"], found.factor, found.rating) == (1, 0.5, "limited")


RESETS = "\n".join(f"{at}.000 S > C R {1 + at}:{1 + at}" for at in range(3))
PROBES = "\n".join(f"{at}.000 C > S S 0:0(0) win 64240 <mss 1460>" for at in range(3))


@pytest.mark.parametrize(("exchange", "factor"), [(RESETS, 0.45), (PROBES, 1.0)])
def test_every_segment_but_a_syn_shows_that_the_other_direction_is_missing(exchange: str, factor: float, tmp_path: Path) -> None:
    """A RST answers a packet (RFC 9293, 3.10.7.1). A capture of RSTs alone also lacks the SYNs, so its quality is 0.5 · 0.9 = 0.45."""
    found = quality_of_text(tmp_path, exchange)
    assert (found.counts["one_direction"], round(found.factor, 2)) == (int(factor < 1), factor)


DAY_S = 86_400


@pytest.mark.parametrize(("days", "pauses"), [(24, []), (25, ["24 d 23 h"])])
def test_a_pause_of_more_than_24_days_between_connections_shows_joined_captures(days: int, pauses: list[str], tmp_path: Path) -> None:
    later = "host D 10.0.0.9:50000\n" + "\n".join(f"{days * DAY_S + at}.000 D > S S 0:0(0) win 64240 <mss 1460>" for at in range(3))
    found = quality_of_text(tmp_path, PROBES + "\n" + later)
    pause = [reason.words for reason in found.reasons if reason.name == "joined"]
    assert pause == [f"a pause of {long} between connections: probably several captures joined" for long in pauses]


@pytest.mark.parametrize(("segments", "reasons"), [(4, []), (5, ["acks_missing"])])
def test_more_bytes_in_flight_than_the_window_allows_show_that_acks_are_missing(segments: int, reasons: list[str], tmp_path: Path) -> None:
    """The receiver's window is 2,000 bytes. Four or five segments of 1,000 bytes in flight are at least twice this window."""
    data = "\n".join(f"0.0{20 + at} C > S . {1 + 1000 * at}:{1001 + 1000 * at} ack 1" for at in range(segments))
    exchange = f"""
        0.000 C > S S  0:0(0)        win 64240 <mss 1000>
        0.010 S > C S. 0:0(0) ack 1  win 2000 <mss 1000>
        0.010 C > S .         ack 1
        {data}
        0.040 S > C .         ack {1 + 1000 * segments} win 2000
    """
    found = quality_of_text(tmp_path, exchange)
    assert (names(found), found.factor) == (reasons, 0.5 if reasons else 1)


def test_a_connection_without_a_beginning_is_reported(tmp_path: Path) -> None:
    found = quality_of_text(tmp_path, "\n".join(TRANSFER.splitlines()[4:]))
    assert (found.counts["start_missing"], found.factor, names(found)) == (1, 0.9, ["start_missing"])


def test_faults_weigh_by_the_bytes_of_their_connections(tmp_path: Path) -> None:
    """A second connection has as many bytes (2,920) as the first, but only one direction of it is captured.

    So half of all captured bytes have quality 0.5 (one direction) · 0.9 (no start) = 0.45.
    """
    other = "host D 10.0.0.9:50000\n1 D > S . 1:1461 ack 1\n1 D > S . 1461:2921 ack 1"
    assert quality_of_text(tmp_path, f"{TRANSFER}\n{other}").factor == pytest.approx((1 + 0.45) / 2)


def test_a_segment_behind_its_own_acknowledgment_shows_that_the_capture_mixed_up_the_order(tmp_path: Path) -> None:
    lines = TRANSFER.strip().splitlines()
    lines[3:6] = [lines[3].replace("0.020", "0.020"), lines[5], lines[4].replace("0.020", "0.032")]
    found = quality_of_text(tmp_path, "\n".join(lines))
    assert (found.counts["late_segments"], found.factor, names(found)) == (1, 0.8, ["late_segments"])


def test_a_clock_that_goes_back_and_one_that_ticks_coarsely_are_reported(tmp_path: Path) -> None:
    back = quality_of_text(tmp_path, TRANSFER.replace("0.031 S > C", "0.019 S > C"))
    assert (names(back), back.factor) == (["backward_timestamps"], 0.7)
    path = tmp_path / "coarse.pcapng"
    resolution = dpkt.pcapng.PcapngOptionLE(code=dpkt.pcapng.PCAPNG_OPT_IF_TSRESOL, data=b"\x02")
    interface = dpkt.pcapng.InterfaceDescriptionBlockLE(linktype=1, opts=[resolution, dpkt.pcapng.PcapngOptionLE()])
    blocks = [bytes(dpkt.pcapng.SectionHeaderBlockLE()), bytes(interface)]
    blocks += [
        bytes(dpkt.pcapng.EnhancedPacketBlockLE(ts_low=frame.ts_ns // 10**7 % 2**32, pkt_data=frame.data, pkt_len=len(frame.data)))
        for frame in packets.frames(TRANSFER)
    ]
    path.write_bytes(b"".join(blocks))
    coarse = quality_of(path)
    assert (names(coarse), coarse.factor) == (["coarse_clock"], 0.7)
    assert "10 ms" in coarse.words


def test_data_cut_short_is_reported_and_does_no_harm(tmp_path: Path) -> None:
    found = quality_of_text(tmp_path, TRANSFER, snaplen_bytes=96)
    assert (names(found), found.factor) == (["snaplen"], 1)
    assert found.words.startswith("capture quality: good; ")


def test_a_capture_cut_off_is_believed_less(tmp_path: Path) -> None:
    whole = packets.capture(tmp_path / "whole.pcap", TRANSFER).read_bytes()
    path = tmp_path / "cut.pcap"
    path.write_bytes(whole[:-10])
    assert "read_in_part" in names(quality_of(path))
    assert quality_of(path).words == "capture quality of the part that was read: good; the file could not be read completely"


def test_of_an_empty_capture_there_is_nothing_to_believe(tmp_path: Path) -> None:
    found = quality_of_text(tmp_path, "")
    assert (names(found), found.rating) == (["empty"], "poor")
    assert found.words == "capture quality: no packets"


def test_offload_and_duplicates_of_real_captures_are_counted() -> None:
    offload = quality_of(CAPTURES / "ethernet-offload-bulk.pcapng.gz")
    assert (offload.counts["super_segments"], names(offload)) == (41, ["snaplen", "super_segments"])
    assert quality_of(CAPTURES / "ethernet-loss.pcapng").counts["drops_suspected"] == 0, "lost on the path, and resent"


@pytest.mark.parametrize(("factor", "steps"), [(1.0, 0), (0.8, 0), (0.79, 1), (0.5, 1), (0.49, 2), (0.0, 2)])
def test_confidence_is_lowered_by_what_is_left(factor: float, steps: int) -> None:
    assert capture_quality.steps_down(factor) == steps


def stalls(*, clock_ms: float = 0) -> str:
    """Return twelve small writes, each delayed for 100 ms by a delayed ACK. One timestamp is `clock_ms` too early."""
    lines = [TRANSFER.split("0.020", maxsplit=1)[0], "0.5 C > S P. 1:101 ack 1"]
    for number in range(12):
        end = 101 + 100 * number
        lines += [f"+100ms S > C . ack {end}", f"+0.1ms C > S P. {end}:{end + 100} ack 1"]
    if clock_ms:
        lines += [f"1 C > S . {1301}:{1301}(0) ack 1"]
    return "\n".join(lines)


def test_findings_are_less_sure_where_the_capture_is_and_say_why(tmp_path: Path) -> None:
    """A clock that runs backwards lowers capture quality to 0.7, and the confidence of a finding by one step."""
    sure, doubted = (
        tcptrace_lab.analyze(packets.capture(tmp_path / f"{name}.pcap", text)).findings
        for name, text in (("whole", stalls()), ("stepped", stalls(clock_ms=1)))
    )
    assert sure
    assert [*(finding.id for finding in sure), "clock"] == [finding.id for finding in doubted]
    ladder = ["proved", "consistent", "possible"]
    for before, after in zip(sure, doubted[:-1], strict=True):
        assert ladder.index(after.confidence) == min(ladder.index(before.confidence) + 1, 2)
        assert "because of the capture: 1 timestamp runs backwards" in after.limits
        assert "because of the capture" not in before.limits


def bulk() -> list[packets.Frame]:
    """Return sixty flights of ten segments over a path with an RTT of 8 ms. The receiver ACKs every second segment."""
    lines = ["0ms C > S S 0:0(0) win 64240 <mss 1460>", "7.9ms S > C S. 0:0(0) ack 1 win 65160 <mss 1460>", "8ms C > S . ack 1"]
    for flight in range(60):
        at_ms, first = 10 + flight * 8.08, 1 + 14_600 * flight
        lines += [f"{at_ms + n * 0.02:.3f}ms C > S . {first + 1460 * n}:{first + 1460 * (n + 1)} ack 1" for n in range(10)]
        lines += [f"{at_ms + 7.86 + n * 0.04:.3f}ms S > C . ack {first + 2920 * (n + 1)} win 65160" for n in range(5)]
    return packets.frames("\n".join(sorted(lines, key=lambda line: float(line.partition("ms")[0]))))


def ticked(path: Path, tick_ns: int) -> Path:
    """Write the packets of `bulk` to a nanosecond pcap file, with timestamps of a clock that ticks every `tick_ns`."""
    packets.write_pcap(path, [replace(frame, ts_ns=frame.ts_ns // tick_ns * tick_ns) for frame in bulk()])
    return path


@pytest.mark.parametrize("tick_ms", [10, 4])
def test_a_clock_that_ticks_coarsely_in_a_file_that_promises_more_shows_nothing_below_its_tick(tick_ms: int, tmp_path: Path) -> None:
    """If the clock ticks every 10 ms, the 900 packets have 50 different timestamps. If it ticks every 4 ms, they have 120.

    A clock that ticks every 10 ms shows the true RTT of 7.86 ms as 0 or 10 ms.
    """
    found = tcptrace_lab.analyze(ticked(tmp_path / "x.pcap", tick_ms * 1_000_000))
    reported, connection = found.capture["quality"], found.connections.collect().row(0, named=True)
    assert (reported["resolution_ns"], connection["clock_tick_ns"]) == (tick_ms * 1_000_000, tick_ms * 1_000_000)
    assert f"timestamp resolution {tick_ms} ms" in capture_quality.line(reported)
    spent = found.accounts.collect().row(0, named=True)
    assert spent["client_pacing_ns"] == 0
    if tick_ms == 10:
        assert [one.id for one in found.findings] == ["clock"]
        said = verdict.sentence(found)
        assert said.startswith("The capture does not show what took ")
        assert said.endswith("the capture's clock ticks only every 10 ms: capture with a finer clock.")


def test_a_file_whose_packets_are_out_of_order_is_to_be_sorted(tmp_path: Path) -> None:
    """The hosts send 120 and 1,884 bytes.

    The packets are shuffled like the packets of the capture test5-lines-randomized of simsong/tcpflow.
    """
    whole = packets.frames("""
        0.000 C > S  S   0:0(0)          win 65535 <mss 1460, sackOK>
        0.079 S > C  S.  0:0(0)   ack 1  win 14600 <mss 1460, sackOK>
        0.080 C > S  .            ack 1
        0.081 C > S  P.  1:121    ack 1
        0.160 S > C  .            ack 121
        0.161 S > C  .   1:1461   ack 121
        0.162 S > C  P.  1461:1885 ack 121
        0.163 C > S  .            ack 1885
        0.164 C > S  F.  121:121  ack 1885
        0.244 S > C  F.  1885:1885 ack 122
        0.245 C > S  .            ack 1886
    """)
    mixed = [whole[number] for number in (10, 9, 4, 1, 7, 6, 3, 8, 5, 0, 2)]
    in_order, path = tmp_path / "whole.pcap", tmp_path / "mixed.pcap"
    packets.write_pcap(in_order, whole)
    packets.write_pcap(path, mixed)
    said = verdict.sentence(tcptrace_lab.analyze(path))
    assert said.startswith("The capture does not show what took ")
    assert said.endswith("sort them with reordercap.")
    subprocess.run([needs.program("reordercap"), path, tmp_path / "sorted.pcap"], capture_output=True, check=True)
    assert verdict.sentence(tcptrace_lab.analyze(tmp_path / "sorted.pcap")) == verdict.sentence(tcptrace_lab.analyze(in_order))


def test_a_fine_clock_is_believed_whatever_the_traffic(tmp_path: Path) -> None:
    found = tcptrace_lab.analyze(ticked(tmp_path / "x.pcap", 1_000))
    assert (found.capture["quality"]["rating"], found.connections.collect()["clock_tick_ns"].to_list()) == ("good", [None])
    assert "send-buffer-limited" in {one.id for one in found.findings}


@pytest.mark.parametrize(("back", "name", "factor"), [("0.030998", "clock_jitter", 1), ("0.0309", "backward_timestamps", 0.7)])
def test_processors_whose_clocks_differ_by_a_few_microseconds_do_no_harm(back: str, name: str, factor: float, tmp_path: Path) -> None:
    """One segment has an earlier timestamp than the segment before it (0.031 s): 2 µs or 100 µs earlier."""
    found = quality_of_text(tmp_path, TRANSFER.replace("0.040 C > S", f"{back} C > S"))
    assert (names(found), found.factor) == ([name], factor)


def test_a_silence_that_no_connection_has_is_a_fault_of_the_clock(tmp_path: Path) -> None:
    """A silence of 25 days within one connection is a clock jump: RFC 7323, 5.5 calls timestamps invalid after 24 days.

    A silence of 23 days, or 30 days between two connections, is no clock jump.
    """
    day_s = 86_400

    def late(days: int) -> str:
        return re.sub(r"(?m)^( *)(0\.0[3-5]\d)", lambda at: f"{at[1]}{days * day_s + float(at[2]):.3f}", TRANSFER)

    jumped = tcptrace_lab.analyze(packets.capture(tmp_path / "25.pcap", late(25)))
    assert [reason["name"] for reason in jumped.capture["quality"]["reasons"]] == ["clock_jump"]
    assert jumped.capture["quality"]["rating"] == "poor"
    assert [one.id for one in jumped.findings] == ["clock"]
    assert verdict.sentence(jumped).startswith("The clock of this capture jumped")
    assert quality_of_text(tmp_path, late(23)).rating == "good"
    other = TRANSFER.replace("    0.", f"    {30 * day_s}.").replace("C > S", "D > S").replace("S > C", "S > D")
    assert quality_of_text(tmp_path, f"{TRANSFER}host D 10.0.0.9:50000\n{other}").rating == "good"
