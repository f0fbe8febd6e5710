"""Some streams can be read again from the start. The tests check what these streams contain and how they end."""

from __future__ import annotations

import os
import pty
import threading
import tty
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab.capture import streams
from tcptrace_lab.errors import CaptureUnreadable
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = ROOT / "captures" / "ethernet-keepalive.pcapng"


def fed(data: bytes) -> streams.Passed:
    """Return a pipe that contains `data` and then ends."""
    reader, writer = os.pipe()

    def feed() -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(data)

    threading.Thread(target=feed, daemon=True).start()
    return streams.Passed(reader)


def test_a_stream_that_was_begun_begins_anew(tmp_path: Path) -> None:
    data = os.urandom(streams.KEPT_BYTES - streams.CHUNK_BYTES)
    stream = fed(data)
    for taken in (1, 100_000, 1_000_000):
        with open(stream.begin(), "rb") as reader:  # noqa: PTH123
            assert reader.read(taken) == data[:taken]
    with (tmp_path / "rest").open("wb") as file:
        stream.rest_into(file)
    stream.close()
    assert (tmp_path / "rest").read_bytes() == data


def test_of_a_stream_only_the_beginning_is_kept() -> None:
    data = bytes(streams.KEPT_BYTES + streams.CHUNK_BYTES)
    stream = fed(data)
    with open(stream.begin(), "rb") as reader:  # noqa: PTH123
        assert reader.read() == data
    with pytest.raises(CaptureUnreadable, match="too much of a stream was read"):
        stream.begin()
    stream.close()


def test_a_stream_that_breaks_gives_what_came_and_keeps_the_reason() -> None:
    """The stream is the master side of a terminal whose slave side is closed. A read from it fails with EIO.

    A pipe would not do: after its writer has closed it, a read returns the end of the file.
    """
    master, slave = pty.openpty()
    tty.setraw(slave)
    stream = streams.Passed(master)
    with open(stream.begin(), "rb", buffering=0) as reader:  # noqa: PTH123
        os.write(slave, b"abc")
        assert reader.read(3) == b"abc"
        os.close(slave)
        assert reader.read() == b""
    assert stream.fault == "Input/output error"
    stream.close()


def test_a_stream_that_broke_is_a_capture_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(streams.Passed):
        def begin(self) -> str:
            name = super().begin()
            self.fault = "Input/output error"
            return name

    monkeypatch.setattr(streams, "opened", lambda path: Broken(os.open(path, os.O_RDONLY)))
    tables = read(CAPTURE)
    (problem,) = tables.problems
    assert (problem["what"], problem["path"]) == ("Input/output error; everything before it was read", str(CAPTURE))
    assert not tables.complete
