"""Transactions of HTTP/1 and FTP are found in conversations.

The conversations are written by hand. Some have known times, and some have bytes that break rules. Real captures are compared with tshark.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.utils import wrpcap

from tcptrace_lab import schema, transactions
from tcptrace_lab.engine.segments import read
from tcptrace_lab.transactions import ftp, http, keyword_search, payloads
from tcptrace_lab.transactions.payloads import Piece
from tests.support import needs
from tests.support.places import CAPTURES
from tests.support.talks import BASE_S, Talk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MS = 1_000_000

GET = b"GET /index.html HTTP/1.1\r\nHost: a\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def found(tmp_path: Path, *talks: Talk, snaplen: int | None = None) -> list[dict[str, Any]]:
    """Return the rows of the table of transactions for a capture of these conversations, in order of time."""
    frames = sorted((frame for talk in talks for frame in talk.frames), key=lambda frame: float(frame.time))
    path = tmp_path / "talk.pcap"
    wrpcap(str(path), frames)
    if snaplen is not None:
        subprocess.run([needs.program("editcap"), "-s", str(snaplen), path, tmp_path / "cut.pcap"], check=True)
        path = tmp_path / "cut.pcap"
    tables = read(path)
    table = transactions.found([str(path)], tables.segments, tables.connections)
    assert table.schema == schema.TRANSACTIONS.polars_schema()
    return table.to_dicts()


def parts_ms(row: dict[str, Any]) -> list[float | None]:
    names = ("connect_ns", "client_think_ns", "request_ns", "server_think_ns", "transfer_ns", "total_ns")
    return [None if row[name] is None else row[name] / MS for name in names]


def test_the_parts_of_a_get_are_those_of_its_segments(tmp_path: Path) -> None:
    talk = Talk().opened().asks(10, GET[:20]).asks(13, GET[20:]).says(40, OK[:30]).says(55, OK[30:]).closed(60)
    (row,) = found(tmp_path, talk)
    assert (row["method"], row["target"], row["status"], row["state"]) == ("GET", "/index.html", 200, "whole")
    assert (row["request_bytes"], row["answer_bytes"], row["body_bytes"]) == (len(GET), len(OK), 5)
    assert parts_ms(row) == [2, 8, 3, 27, 15, 45]  # SYN at 0, ACK at 2, request 10 to 13, answer 40 to 55 (ms)
    assert (row["request_frame"], row["answer_frame"], row["last_frame"]) == (4, 6, 7)


def test_a_connection_kept_alive_has_one_connect_time_and_each_request_waits_for_the_client(tmp_path: Path) -> None:
    talk = Talk().opened().asks(10, GET).says(20, OK).asks(120, GET).says(150, OK)
    first, second = found(tmp_path, talk)
    assert parts_ms(first) == [2, 8, 0, 10, 0, 10]
    assert parts_ms(second) == [None, 100, 0, 30, 0, 30]


def test_pipelined_requests_have_their_answers_in_order(tmp_path: Path) -> None:
    other = GET.replace(b"index", b"other")
    first, second = found(tmp_path, Talk().opened().asks(10, GET + other).says(20, OK).says(30, OK.replace(b"200", b"404")))
    assert [(row["target"], row["status"], row["total_ns"] // MS) for row in (first, second)] == [
        ("/index.html", 200, 10),
        ("/other.html", 404, 20),
    ]
    assert second["client_think_ns"] is None  # the request was sent before the first answer


def test_chunks_are_put_together_and_their_framing_is_no_body(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: z\r\n\r\n"
    talk = Talk().opened().asks(10, GET).says(20, head + body[:9]).asks(25, GET).says(30, body[9:] + OK[:10]).says(40, OK[10:])
    first, second = found(tmp_path, talk)
    assert (first["body_bytes"], first["answer_bytes"], first["last_ts_ns"]) == (11, len(head + body), (BASE_S * 1_000 + 30) * MS)
    assert (second["status"], second["body_bytes"]) == (200, 5)


def test_answers_without_a_body_are_distinguished_from_those_with(tmp_path: Path) -> None:
    """Answers to HEAD and answers with the status 304 or 204 have no body, so their Content-Length header does not count.

    An answer with the status 100 is not final (RFC 9112, 6.3).
    """
    promised = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    talk = Talk().opened().asks(10, GET.replace(b"GET", b"HEAD")).says(11, promised)
    talk.asks(20, GET).says(21, promised.replace(b"200 OK", b"304 Not Modified"))
    talk.asks(30, b"POST /p HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
    talk.says(31, b"HTTP/1.1 100 Continue\r\n\r\n").asks(35, b"data").says(39, b"HTTP/1.1 204 No Content\r\n\r\n")
    rows = found(tmp_path, talk)
    assert [(row["method"], row["status"], row["state"], row["body_bytes"]) for row in rows] == [
        ("HEAD", 200, "whole", 0),
        ("GET", 304, "whole", 0),
        ("POST", 204, "whole", 4),
    ]
    assert parts_ms(rows[2])[2:] == [5, 0, 8, 9]  # the answer began before the request was complete


def test_behind_connect_and_upgrade_nothing_is_read(tmp_path: Path) -> None:
    tunnel = Talk(3128).opened().asks(10, b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n").says(20, b"HTTP/1.1 200 OK\r\n\r\n")
    tunnel.asks(30, GET).says(40, OK)
    upgrade = Talk(80, 40_001).opened(100).asks(110, GET.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"))
    upgrade.says(120, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n").says(121, b"\x81\x05hello")
    assert [(row["method"], row["status"], row["state"]) for row in found(tmp_path, tunnel, upgrade)] == [
        ("CONNECT", 200, "whole"),
        ("GET", 101, "whole"),
    ]


def test_an_answer_without_a_length_ends_with_the_connection(tmp_path: Path) -> None:
    talk = Talk().opened().asks(10, GET).says(20, b"HTTP/1.0 200 OK\r\n\r\nhello ").says(35, b"world")
    (open_end,) = found(tmp_path, talk)
    assert (open_end["state"], open_end["transfer_ns"], open_end["body_bytes"]) == ("unfinished", None, None)
    (row,) = found(tmp_path, talk.closed(50))
    assert (row["state"], row["transfer_ns"], row["body_bytes"]) == ("whole", 15 * MS, 11)


def test_what_the_snaplen_cut_is_unknown_and_the_rest_is_reported(tmp_path: Path) -> None:
    long = GET.replace(b"\r\n\r\n", b"\r\nCookie: " + b"x" * 300 + b"\r\n\r\n")
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\nX: " + b"y" * 200 + b"\r\n\r\n"
    talk = Talk().opened().asks(10, long).says(20, answer + bytes(1_000)).says(25, bytes(2_000)).asks(40, long).says(50, answer)
    first, second = found(tmp_path, talk, snaplen=100)
    assert (first["method"], first["target"], first["status"], first["state"]) == ("GET", "/index.html", 200, "bytes_missing")
    assert (first["request_bytes"], first["answer_bytes"], first["total_ns"], first["transfer_ns"]) == (None, None, None, None)
    assert (first["answer_ts_ns"] - first["request_ts_ns"]) == 10 * MS
    assert (second["answer_ts_ns"] - second["request_ts_ns"]) == 10 * MS


def test_bytes_that_were_not_captured_count_in_a_body_of_known_length(tmp_path: Path) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n"
    talk = Talk().opened().asks(10, GET).says(20, head + bytes(1_000)).says(22, bytes(1_000), captured=False).says(24, bytes(1_000))
    (row,) = found(tmp_path, talk.asks(40, b"\r\n"))
    assert (row["state"], row["body_bytes"], row["transfer_ns"]) == ("whole", 3_000, 4 * MS)


def test_segments_out_of_order_and_copies_are_put_right(tmp_path: Path) -> None:
    talk = Talk().opened().asks(10, GET).says(20, OK[:20]).says(21, OK[20:30]).says(22, OK[30:])
    late, early = talk.frames[5], talk.frames[6]
    late.time, early.time = early.time, late.time
    copy = talk.frames[4].copy()
    copy.time = BASE_S + 0.030
    talk.frames.append(copy)
    (row,) = found(tmp_path, talk)
    assert (row["state"], row["body_bytes"], row["transfer_ns"]) == ("whole", 5, 2 * MS)


def test_heads_that_programs_understand_are_read_even_if_they_break_the_rules(tmp_path: Path) -> None:
    odd = b"HTTP/1.1 200 OK\r\nX-Odd : 1\r\nContent-Length: 5\r\n\r\nhello"
    talk = Talk().opened().asks(10, b"GET / HTTP/1.1\r\n\r\n").says(20, odd).asks(30, GET).says(40, OK)
    assert [(row["status"], row["state"], row["body_bytes"]) for row in found(tmp_path, talk)] == [(200, "whole", 5), (200, "whole", 5)]


def test_what_is_no_http_makes_no_transactions(tmp_path: Path) -> None:
    tls = Talk(8080).opened().asks(10, b"\x16\x03\x01\x02\x00\x01" + bytes(500)).says(20, b"\x16\x03\x03\x00\x7a" + bytes(100))
    sip = Talk(5060, 40_001).opened(100).asks(110, b"OPTIONS sip:a SIP/2.0\r\n\r\n").says(120, b"SIP/2.0 200 OK\r\n\r\n")
    rtsp = Talk(554, 40_002).opened(200).asks(210, b"OPTIONS * RTSP/1.0\r\nHTTP/1.1\r\n").says(220, b"RTSP/1.0 200 OK\r\n\r\n")
    mail = Talk(2525, 40_003).opened(300).says(310, b"220 mail ESMTP\r\n").asks(320, b"EHLO USER \r\n").says(330, b"250 fine\r\n")
    reported = Talk(7777, 40_004).opened(400).asks(410, b"they say GET / HTTP/1.1\r\n").says(420, OK)
    assert found(tmp_path, tls, sip, rtsp, mail, reported) == []


def test_http_is_known_by_its_request_line_at_any_port_as_tshark_asked_to_expect_it_there_sees_it(tmp_path: Path) -> None:
    odd = Talk(7777).opened().asks(10, GET).says(20, OK).asks(30, GET.replace(b"GET", b"PUT")).says(45, OK.replace(b"200", b"404"))
    at_ftp = Talk(21, 40_001).opened(100).asks(110, GET).says(125, OK)
    usual = Talk(80, 40_002).opened(200).asks(210, GET).says(220, OK)
    rows = found(tmp_path, odd, at_ftp, usual)
    fields = ("http.request.method", "http.response.code", "http.time")
    decoded = ("-d", "tcp.port==7777,http", "-d", "tcp.port==21,http")
    shown = tshark(tmp_path / "talk.pcap", "http", *fields, more=decoded)
    asked, answered = [method for method, *_ in shown if method], [(int(code), float(time_s)) for _, code, time_s in shown if code]
    assert [row["method"] for row in rows] == asked == ["GET", "PUT", "GET", "GET"]
    assert [row["status"] for row in rows] == [code for code, _ in answered]
    assert [row["total_ns"] / 1e9 for row in rows] == pytest.approx([time_s for _, time_s in answered])


def test_a_request_line_that_the_snaplen_cut_counts_with_the_answers_status_line(tmp_path: Path) -> None:
    long = b"GET /" + b"x" * 200 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
    web = Talk(7777).opened().asks(10, long).says(20, OK)
    other = Talk(7778, 40_001).opened(100).asks(110, long).says(120, b"what?\r\n" * 20)  # the answer is not HTTP
    assert [(row["conn"], row["status"]) for row in found(tmp_path, web, other, snaplen=90)] == [(0, 200)]


def test_requests_at_an_unusual_port_that_come_out_of_order_have_no_beginning_and_are_left_alone(tmp_path: Path) -> None:
    talk = Talk(7777).opened().asks(10, GET[:10], captured=False).asks(11, GET[10:]).says(20, OK)
    assert found(tmp_path, talk) == []


FTP_START = (
    (3, False, b"220-Hello\r\n220 ready\r\n"),
    (10, True, b"USER lab\r\n"),
    (15, False, b"331 Password?\r\n"),
    (20, True, b"PASS secret\r\n"),
)


def ftp_talk(lines: Sequence[tuple[float, bool, bytes]], port: int = 21) -> Talk:
    talk = Talk(port).opened()
    for at_ms, from_client, data in (*FTP_START, (25, False, b"230 in\r\n"), *lines):
        (talk.asks if from_client else talk.says)(at_ms, data)
    return talk


@pytest.mark.parametrize("extended", [False, True])
def test_passive_transfers_are_linked_to_their_data_connections(extended: bool, tmp_path: Path) -> None:  # noqa: FBT001  (pytest gives it)
    asked, reported = (b"EPSV\r\n", b"229 at (|||50001|)\r\n") if extended else (b"PASV\r\n", b"227 at (192,0,2,2,195,81).\r\n")
    control = ftp_talk(
        [
            (30, True, asked),
            (31, False, reported),
            (40, True, b"RETR a.bin\r\n"),
            (44, False, b"150 coming\r\n"),
            (80, False, b"226 done\r\n"),
        ]
    )
    data = Talk(50_001, 40_002).opened(35).says(50, bytes(1_000)).says(70, bytes(500)).closed(72)
    rows = found(tmp_path, control, data)
    assert (
        [(row["method"], row["target"], row["status"]) for row in rows]
        == [
            ("USER", "lab", 331),
            ("PASS", None, 230),  # the password is not stored
            (asked[:4].decode(), None, 229 if extended else 227),
            ("RETR", "a.bin", 226),
        ]
    )
    retrieved = rows[3]
    assert (retrieved["data_conn"], retrieved["body_bytes"], retrieved["state"]) == (1, 1_500, "whole")
    assert parts_ms(retrieved) == [
        2,
        9,
        0,
        10,
        20,
        40,
    ]  # data connection: handshake, request 9 ms after status 227, data from 50 to 70 ms, end at 80 ms


@pytest.mark.parametrize("extended", [False, True])
def test_active_transfers_are_linked_too(extended: bool, tmp_path: Path) -> None:  # noqa: FBT001
    asked = b"EPRT |1|192.0.2.1|50002|\r\n" if extended else b"PORT 192,0,2,1,195,82\r\n"
    control = ftp_talk(
        [
            (30, True, asked),
            (31, False, b"200 fine\r\n"),
            (40, True, b"STOR b.bin\r\n"),
            (60, False, b"150 go\r\n"),
            (90, False, b"226 ok\r\n"),
        ]
    )
    data = Talk(50_002, 20, client="192.0.2.2", server="192.0.2.1").opened(45).says(62, bytes(700)).says(66, bytes(300)).closed(70)
    stored = found(tmp_path, control, data)[3]
    assert (stored["method"], stored["data_conn"], stored["body_bytes"], stored["transfer_ns"]) == ("STOR", 1, 1_000, 4 * MS)


def test_behind_auth_tls_nothing_is_read(tmp_path: Path) -> None:
    rows = found(tmp_path, ftp_talk([(30, True, b"AUTH TLS\r\n"), (31, False, b"234 go\r\n"), (40, True, b"\x16\x03\x01\r\nQUIT\r\n")]))
    assert [row["method"] for row in rows] == ["USER", "PASS", "AUTH"]


@pytest.mark.parametrize("port", [7721, 8080])
@pytest.mark.parametrize(
    ("asked", "reported", "client_listens"),
    [
        (b"PASV\r\n", b"227 at (192,0,2,2,195,81).\r\n", False),
        (b"EPSV\r\n", b"229 at (|||50001|)\r\n", False),
        (b"PORT 192,0,2,1,195,81\r\n", b"200 fine\r\n", True),
    ],
)
def test_ftp_is_known_by_greeting_and_command_at_any_port_with_its_data_connections(
    port: int,
    asked: bytes,
    reported: bytes,
    client_listens: bool,  # noqa: FBT001  (pytest gives it)
    tmp_path: Path,
) -> None:
    lines = [
        (30, True, asked),
        (31, False, reported),
        (40, True, b"RETR a.bin\r\n"),
        (44, False, b"150 coming\r\n"),
        (80, False, b"226 ok\r\n"),
    ]
    ends = {"client": "192.0.2.2", "server": "192.0.2.1"} if client_listens else {}
    data = Talk(50_001, 40_002, **ends).opened(42)
    data = (data.asks if client_listens else data.says)(50, bytes(1_000)).closed(72)
    rows = found(tmp_path, ftp_talk(lines, port), data)
    shown = tshark(tmp_path / "talk.pcap", "ftp.request.command", "ftp.request.command", more=("-d", f"tcp.port=={port},ftp"))
    assert [row["method"] for row in rows] == [one[0] for one in shown] == ["USER", "PASS", asked[:4].decode(), "RETR"]
    assert (rows[3]["data_conn"], rows[3]["body_bytes"], rows[3]["status"]) == (1, 1_000, 226)


def test_a_word_across_two_blocks_of_a_file_is_found_and_none_in_a_capture_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyword_search, "_BLOCK_BYTES", 64)
    place = tmp_path / "blocks"
    for before in range(50, 70):
        place.write_bytes(bytes(before) + b"HTTP/1.1" + bytes(30))
        assert keyword_search.mentioned([str(place)])
        place.write_bytes(bytes(before) + b"HTTP_1.1" + bytes(30))
        assert not keyword_search.mentioned([str(place)])


def tshark(path: Path, show: str, *fields: str, more: Sequence[str] = ()) -> list[list[str]]:
    named = [f"-e{field}" for field in fields]
    command: list[str | Path] = [needs.program("tshark"), "-r", path, *more, "-Y", show, "-T", "fields", *named]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_a_real_servers_files_are_seen_as_tshark_sees_them(tmp_path: Path) -> None:
    """Requests, statuses and the time of each answer equal those of tshark.

    In tshark, http.time is the time from the last segment of a request to the last segment of its answer.
    """
    talk = Talk().opened()
    for number in range(12):
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (number * 400)
        talk.asks(100 * number + 10, GET[:20]).asks(100 * number + 12, GET[20:])
        talk.says(100 * number + 30, head + bytes(number * 400))
    rows = found(tmp_path, talk)
    shown = tshark(tmp_path / "talk.pcap", "http.response", "http.response.code", "http.time", "http.content_length")
    assert len(rows) == len(shown) == 12
    for row, (status, time_s, length) in zip(rows, shown, strict=True):
        assert (row["status"], row["body_bytes"]) == (int(status), int(length))
        assert (row["server_think_ns"] + row["transfer_ns"]) / 1e9 == pytest.approx(float(time_s), abs=1e-6)


def test_ftp_of_a_conversation_is_as_tshark_shows_it(tmp_path: Path) -> None:
    control = ftp_talk(
        [(30, True, b"SYST\r\n"), (33, False, b"215-UNIX\r\n Type L8\r\n215 end\r\n"), (40, True, b"quit\r\n"), (41, False, b"221 bye\r\n")]
    )
    rows = found(tmp_path, control)
    path = tmp_path / "talk.pcap"
    assert [row["method"] for row in rows] == [one[0].upper() for one in tshark(path, "ftp.request.command", "ftp.request.command")]
    codes = [code for one in tshark(path, "ftp.response.code", "ftp.response.code") for code in one[0].split(",")[-1:]]
    assert [str(row["status"]) for row in rows] == codes[1:]  # without the server's greeting


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.one_of(
                st.binary(max_size=80),
                st.sampled_from(
                    [
                        GET,
                        OK,
                        GET[:9],
                        OK[:25],
                        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                        b"ffffffffffffffffff\r\n",
                        b"0\r\n\r\n",
                    ]
                ),
                st.sampled_from(
                    [
                        b"227 (1,2,3,4,999,5)\r\n",
                        b"229 (|||0|)\r\n",
                        b"PORT 1,2\r\n",
                        b"150 x\r\n",
                        b"RETR \xff\x00\r\n",
                        b"220-\r\n",
                        b"\r\n",
                    ]
                ),
            ),
            st.integers(0, 5_000),
        ),
        max_size=12,
    )
)
def test_no_bytes_break_the_readers(said: list[tuple[bool, bytes, int]]) -> None:
    for conversation in (http.Conversation(0), ftp.Conversation(0)):
        for number, (from_client, data, missing) in enumerate(said):
            size = len(data) + (missing if missing > 4_000 else 0)
            if size:
                conversation.take(Piece(0, from_client, number, number + 1, size, data))
        conversation.end(closed=True)
        assert all(transaction.row(0, None)["state"] in schema.TRANSACTION_STATES for transaction in conversation.transactions)


def test_endless_heads_and_lines_are_given_up() -> None:
    web, files = http.Conversation(0), ftp.Conversation(0)
    endless = GET[:-2] + b"X: " + b"y" * 2_000
    for number in range(2_000):
        web.take(Piece(0, True, number, number + 1, len(endless), endless if number == 0 else b"y" * len(endless)))  # noqa: FBT003
        files.take(Piece(0, True, number, number + 1, 2_000, b"z" * 2_000))  # noqa: FBT003
    assert [transaction.state for transaction in web.transactions] == ["malformed"]
    assert files.transactions == []


def test_without_such_connections_no_payload_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the file was read a second time")

    monkeypatch.setattr(payloads, "look", refuse)
    path = CAPTURES / "ethernet-nagle-on.pcapng"
    tables = read(path)
    table = transactions.found([str(path)], tables.segments, tables.connections)
    assert table.is_empty()
    assert table.schema == pl.Schema(schema.TRANSACTIONS.polars_schema())
