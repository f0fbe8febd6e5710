"""Application messages are found in exchanges written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import schema
from tcptrace_lab.messages import messages
from tests.support import packets
from tests.support.ledgers import judged, judged_text
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000

OPENED = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.001 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.001 C > S  .          ack 1  win 502
"""

ANSWERED_TWICE = """
    0.010 C > S P. 1:101       ack 1
    0.0105 S > C .             ack 101
    0.030 S > C .  1:1461      ack 101
    0.030 S > C P. 1461:2001   ack 101
    0.031 C > S .              ack 2001
    0.100 C > S P. 101:201     ack 2001
    0.110 S > C P. 2001:3001   ack 201
    0.111 C > S .              ack 3001
    0.200 C > S F.             ack 3001
    0.201 S > C F.             ack 202
    0.202 C > S .              ack 3002
"""


def found(tmp_path: Path, text: str, opened: str = OPENED) -> pl.DataFrame:
    tables = judged_text(tmp_path, opened + text)
    return messages.messages(tables.segments, tables.notes, tables.info["connections"]).collect().sort("first_frame")


def rows(table: pl.DataFrame, *, from_client: bool) -> list[dict[str, Any]]:
    return table.filter(pl.col("from_client") == from_client).to_dicts()


def at_ns(seconds: float) -> int:
    return packets.BASE_NS + round(seconds * 1e9)


def test_requests_and_answers_are_identified_by_the_turns_of_direction(tmp_path: Path) -> None:
    table = found(tmp_path, ANSWERED_TWICE)
    assert table.schema == schema.MESSAGES.polars_schema()
    reported = table.select("from_client", "index", "start_offset", "payload_bytes", "segments", "state").rows()
    assert reported == [
        (True, 0, 1, 100, 1, "whole"),
        (False, 0, 1, 2000, 2, "whole"),
        (True, 1, 101, 100, 1, "whole"),
        (False, 1, 2001, 1000, 1, "whole"),
    ]
    first, second = rows(table, from_client=True)
    assert (first["first_ts_ns"], first["acked_ts_ns"], first["answer_ts_ns"]) == (at_ns(0.010), at_ns(0.0105), at_ns(0.030))
    assert (second["acked_ts_ns"], second["answer_ts_ns"]) == (at_ns(0.110), at_ns(0.110))  # the answer carries the ACK
    _, last = rows(table, from_client=False)
    assert last["acked_ts_ns"] == at_ns(0.111)
    assert last["answer_ts_ns"] is None  # a FIN is no answer


def test_any_cutting_of_the_capture_into_batches_gives_the_same_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {path: found_in(path) for path in sorted(CAPTURES.glob("ethernet-*.pcapng"))[:24]}
    hand = found(tmp_path, ANSWERED_TWICE)
    real = pl.LazyFrame.collect_batches

    def small(self: pl.LazyFrame, **options: Any) -> Any:  # noqa: ANN401
        for batch in real(self, **options):
            yield from batch.iter_slices(7)

    monkeypatch.setattr(pl.LazyFrame, "collect_batches", small)
    assert found(tmp_path, ANSWERED_TWICE).equals(hand)
    for path, table in whole.items():
        assert found_in(path).equals(table), path.name


def found_in(path: Path) -> pl.DataFrame:
    tables = judged(path)
    return messages.messages(tables.segments, tables.notes, tables.info["connections"]).collect().sort("first_frame", "conn")


def test_a_message_that_nagle_holds_is_one_and_its_stall_is_reported(tmp_path: Path) -> None:
    """The client writes 4,096 bytes and then 904 bytes.

    TCP sends the first write as 1,460, 1,460 and 1,176 bytes. Nagle's algorithm delays the second write until the delayed ACK arrives, 40
    ms later.
    """
    exchange = """
        +10ms C > S .  {a}:{b}    ack {k}
        +0us  C > S .  {b}:{c}    ack {k}
        +0us  C > S P. {c}:{d}    ack {k}
        +1ms  S > C .             ack {c}
        +40ms S > C .             ack {d}
        +50us C > S P. {d}:{e}    ack {k}
        +1ms  S > C P. {k}:{l}    ack {e}
    """
    text = ""
    for n in range(3):
        a = 1 + 5000 * n
        text += exchange.format(a=a, b=a + 1460, c=a + 2920, d=a + 4096, e=a + 5000, k=1 + 50 * n, l=51 + 50 * n)
    table = rows(found(tmp_path, text), from_client=True)
    assert [one["payload_bytes"] for one in table] == [5000] * 3
    for one in table:
        assert one["transfer_ns"] == 41_050_000
        assert one["stalled_ns"] == 41_050_000
        assert one["stall_cause"] == "nagle-delayed-ack"
        assert one["writes_inferred"] == [4096, 904]
        assert one["writes_confidence"] == "possible"  # the delayed bytes are possibly several writes
        assert one["stall_frame"] == one["last_frame"]


@pytest.mark.parametrize(("late_ms", "held_ms"), [(0.4, 0), (5, 5)])
def test_a_wait_of_nagle_that_outlasts_the_round_trip_but_is_no_stall_is_distinguished(
    tmp_path: Path, late_ms: float, held_ms: float
) -> None:
    """Nagle's algorithm delays 904 bytes until the 1,176 bytes before them are acknowledged.

    The ACK comes after 0.4 ms or 5 ms. Only a wait of at least 10 ms is a stall.
    """
    exchange = """
        +10ms C > S .  {a}:{b}    ack {k}
        +0us  C > S .  {b}:{c}    ack {k}
        +0us  C > S P. {c}:{d}    ack {k}
        +0us  S > C .             ack {c}
        +{late}ms S > C .         ack {d}
        +0us  C > S P. {d}:{e}    ack {k}
        +1ms  S > C P. {k}:{l}    ack {e}
    """
    text = ""
    for n in range(3):
        a = 1 + 5000 * n
        text += exchange.format(a=a, b=a + 1460, c=a + 2920, d=a + 4096, e=a + 5000, k=1 + 50 * n, l=51 + 50 * n, late=late_ms)
    for one in rows(found(tmp_path, text), from_client=True):
        assert (one["stalled_ns"], one["stall_cause"], one["stall_frame"]) == (0, None, None)
        assert one["short_nagle_wait_ns"] == held_ms * MS
        assert one["short_nagle_wait_frame"] == (one["last_frame"] if held_ms else None)


def test_a_pause_of_the_program_ends_a_message(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S P. 1:101     ack 1
        0.011 S > C .            ack 101
        0.060 C > S P. 101:301   ack 1
        0.061 S > C .            ack 301
        """,
    )
    assert [one["payload_bytes"] for one in rows(table, from_client=True)] == [100, 200]
    assert table["stalled_ns"].sum() == 0


def test_pieces_written_at_once_are_one_message_of_several_writes(tmp_path: Path) -> None:
    """Nagle's algorithm is off. The client writes 500 bytes three times without a pause."""
    table = found(
        tmp_path,
        """
        0.0100 C > S P. 1:501      ack 1
        0.0101 C > S P. 501:1001   ack 1
        0.0102 C > S P. 1001:1501  ack 1
        0.0110 S > C P. 1:11       ack 1501
        """,
    )
    (one,) = rows(table, from_client=True)
    assert (one["payload_bytes"], one["writes_inferred"], one["writes_confidence"]) == (1500, [500, 500, 500], "consistent")


def test_a_super_segment_counts_its_small_end_as_the_end_of_a_write(tmp_path: Path) -> None:
    """The capture was made on a host with TSO, so it has packets of 4,096 bytes."""
    table = found(
        tmp_path,
        """
        0.0100 C > S P. 1:4097      ack 1
        0.0101 C > S P. 4097:8193   ack 1
        0.0110 S > C P. 1:11        ack 8193
        """,
    )
    (one,) = rows(table, from_client=True)
    assert (one["segments"], one["writes_inferred"]) == (2, [4096, 4096])


def test_a_lost_segment_belongs_to_its_message_and_its_timeout_is_a_stall(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S .  1:1461      ack 1
        0.010 C > S P. 1461:2001   ack 1
        0.011 S > C .              ack 1 <sack 1461:2001>
        0.230 C > S .  1:1461      ack 1
        0.231 S > C P. 1:101       ack 2001
        0.240 C > S P. 2001:2101   ack 101
        """,
    )
    lost, after = rows(table, from_client=True)
    assert (lost["payload_bytes"], lost["segments"], lost["transfer_ns"]) == (2000, 3, 220 * MS)
    assert lost["stalled_ns"] == 220 * MS
    assert lost["writes_inferred"] is None
    assert after["payload_bytes"] == 100


def test_bytes_that_arrive_out_of_order_belong_to_one_message(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.0100 C > S .  1:1461      ack 1 {id 1}
        0.0101 C > S P. 2921:3001   ack 1 {id 3}
        0.0101 C > S .  1461:2921   ack 1 {id 2}
        0.0110 S > C P. 1:101       ack 3001
        0.0200 C > S P. 3001:3101   ack 101 {id 4}
        """,
    )
    assert [one["payload_bytes"] for one in rows(table, from_client=True)] == [3000, 100]
    assert set(table["state"]) == {"whole"}


def test_pipelined_requests_are_not_guessed_apart(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S P. 1:101       ack 1
        0.011 S > C .  1:1461      ack 101
        0.012 C > S P. 101:201     ack 1
        0.013 S > C P. 1461:2001   ack 101
        0.014 S > C P. 2001:3001   ack 201
        """,
    )
    assert set(table["state"]) == {"overlapping"}
    assert table["writes_inferred"].null_count() == table.height


def test_both_sides_at_once_are_marked_and_later_turns_are_not(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S P. 1:1001      ack 1
        0.010 S > C P. 1:1001      ack 1
        0.011 C > S .              ack 1001
        0.011 S > C .              ack 1001
        0.100 C > S P. 1001:1101   ack 1001
        0.110 S > C P. 1001:1101   ack 1101
        0.200 C > S P. 1101:1201   ack 1101
        0.210 S > C P. 1101:1201   ack 1201
        """,
    )
    assert [one["state"] for one in rows(table, from_client=True)] == ["overlapping", "overlapping", "whole"]
    assert [one["payload_bytes"] for one in rows(table, from_client=False)][-1] == 100


def test_a_capture_that_begins_in_the_middle_says_so_of_its_first_message_only(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S P. 5001:5101   ack 9001
        0.020 S > C P. 9001:9201   ack 5101
        0.030 C > S P. 5101:5201   ack 9201
        """,
        opened="",
    )
    assert [one["state"] for one in rows(table, from_client=True)] == ["whole", "whole"]  # stream offsets begin with the capture


def test_bytes_that_the_capture_misses_make_a_message_of_unknown_size(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S .  1:1461      ack 1
        0.010 C > S P. 2921:3001   ack 1
        0.011 S > C P. 1:101       ack 3001
        0.020 C > S P. 3001:3101   ack 101
        """,
    )
    assert [one["state"] for one in rows(table, from_client=True)] == ["bytes_missing", "whole"]


def test_at_the_receiver_the_messages_are_the_same(tmp_path: Path) -> None:
    """The exchange is captured at the server.

    Compared with a capture at the client, packets of the client are seen 10 ms later, and packets of the server 10 ms earlier.
    """
    table = found(
        tmp_path,
        """
        0.020 C > S P. 1:101       ack 1
        0.020 S > C .              ack 101
        0.040 S > C .  1:1461      ack 101
        0.040 S > C P. 1461:2001   ack 101
        0.060 C > S .              ack 2001
        0.120 C > S P. 101:201     ack 2001
        0.120 S > C P. 2001:3001   ack 201
        """,
    )
    assert [one["payload_bytes"] for one in rows(table, from_client=True)] == [100, 100]
    assert [one["payload_bytes"] for one in rows(table, from_client=False)] == [2000, 1000]


def test_one_direction_alone_has_messages_by_pauses(tmp_path: Path) -> None:
    table = found(
        tmp_path,
        """
        0.010 C > S P. 1:101     ack 1
        0.500 C > S P. 101:201   ack 1
        """,
        opened="",
    )
    assert table["payload_bytes"].to_list() == [100, 100]
    assert table["acked_ts_ns"].null_count() == 2
    assert table["answer_ts_ns"].null_count() == 2


def test_a_second_message_in_flight_of_the_same_connection_number_does_not_mix(tmp_path: Path) -> None:
    """The capture has packets of two connections that alternate."""
    table = found(
        tmp_path,
        """
        host D 10.0.0.3:50000 isn 7
        host T 10.0.0.2:80 isn 9
        0.010 C > S P. 1:101   ack 1
        0.011 D > T S  0:0(0)
        0.012 T > D S. 0:0(0)  ack 1
        0.012 D > T .          ack 1
        0.013 D > T P. 1:51    ack 1
        0.014 S > C P. 1:201   ack 101
        0.015 T > D P. 1:301   ack 51
        """,
    )
    assert table.sort("conn", "from_client").select("conn", "from_client", "payload_bytes").rows() == [
        (0, False, 200),
        (0, True, 100),
        (1, False, 300),
        (1, True, 50),
    ]
