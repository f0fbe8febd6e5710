"""The five graphs of one direction: time-sequence, throughput, RTT, outstanding data, segment size. Segments are drawn one by one.

Sequence numbers are those on the wire. They continue above 2^32, so that a graph has no break where the numbers wrap.
"""

from __future__ import annotations

from typing import Any, Final

from tcptrace_lab import schema
from tcptrace_lab.outputs.xplot.plot import Curve, Plot
from tcptrace_lab.text.numbers import NS_PER_S

FIN: Final = 1
SYN: Final = 2
RST: Final = 4
PSH: Final = 8
ACK: Final = 16
URG: Final = 32
ECE: Final = 64
CWR: Final = 128

NS_PER_MS = 1_000_000

THROUGHPUT_SEGMENTS = 10
"""Number of data segments over which throughput is averaged (tcptrace's default, `-A10`)."""

NO_TIME_NS = 1_000_000
"""Interval assumed between two segments with equal timestamps, so that a rate is defined (as in tcptrace)."""

FAST_RETRANSMIT_DUPLICATE_ACKS = 3
"""Number of duplicate ACKs that triggers a fast retransmit (RFC 5681, 3.2)."""

Segment = tuple[Any, ...]
"""Values of the columns `files.COLUMNS`, in that order."""


class Graphs:
    """The graphs of one direction."""

    def __init__(self, title: str, isn: int, first_ts_ns: int) -> None:
        """Create empty graphs.

        Args:
            title: sender and receiver, as text.
            isn: sequence number at offset 0.
            first_ts_ns: time of the connection's first segment.
        """
        signed = "timeval signed"
        self.sequence = Plot("timeval double", f"{title} (time sequence graph)", "sequence number")
        self.throughput = Plot(signed, f"{title} (throughput)", "thruput (bytes/sec)")
        self.rtt = Plot(signed, f"{title} (rtt samples)", "rtt (ms)")
        self.outstanding = Plot(signed, f"{title} (outstanding data)", "Outstanding Data (bytes)")
        self.size = Plot(signed, f"{title} (segment size graph)", "segment size (bytes)")
        self._isn = isn
        self._first_ts_ns = first_ts_ns
        self._rtt = Curve(self.rtt, "rtt", "red")
        self._flight = Flight(self.outstanding, first_ts_ns)
        self._size = Sizes(self.size)
        self._rate = Rate(self.throughput, first_ts_ns)
        self.rtt.colour("red")
        self._duplicates = 0
        self._acked: tuple[int, int] | None = None
        self._edge: tuple[int, int] | None = None

    def plots(self) -> dict[str, Plot]:
        """Return the plots by tcptrace's file name suffix."""
        return {"tsg": self.sequence, "tput": self.throughput, "rtt": self.rtt, "owin": self.outstanding, "ssize": self.size}

    def end(self) -> None:
        """End all plots: the connection has no more segments."""
        for plot in self.plots().values():
            plot.end()

    def sent(self, segment: Segment) -> None:
        """Draw a segment of this direction."""
        ts_ns, seq, _, payload, flags, _, _, kind, ce, _ = segment
        resent, late, twice = kind in schema.RESENT, kind == "out_of_order", kind == "capture_duplicate"
        if not twice:
            self._rate.add(ts_ns, payload)
            if payload:
                self._size.add(ts_ns, payload)
        self._draw(ts_ns, self._isn + seq, segment, "HD" if twice or kind == "network_duplicate" else "R" if resent else "")
        if late:
            self._say(ts_ns, self._isn + seq + payload, "O", "pink")
        if kind == "zero_window_probe":
            self.sequence.colour("orange")
            self.sequence.text("b", ts_ns, self._isn + seq + payload, "P")
        if flags & CWR or ce:
            self.sequence.colour("yellow")
            self.sequence.mark("diamond", ts_ns, self._isn + seq)
            self.sequence.text("a", ts_ns, self._isn + seq, " ".join(word for word, set_ in (("CWR", flags & CWR), ("CE", ce)) if set_))
        if flags & URG and payload:
            self._say(ts_ns, self._isn + seq + payload, "U", "red")
        if flags & RST:
            self.sequence.text("a", ts_ns, self._isn + seq, "RST_OUT", "magenta")
        elif not twice:
            self._flight.sent(ts_ns, seq, seq + payload, draws=not (flags & SYN or resent or late or kind == "network_duplicate"))

    def _say(self, ts_ns: int, y: int, words: str, colour: str) -> None:
        self.sequence.colour(colour)
        self.sequence.text("a", ts_ns, y, words)

    def _draw(self, ts_ns: int, start: int, segment: Segment, again: str) -> None:
        """Draw the bytes of a segment as a line. `again` is `R` for a retransmission, `HD` for a duplicate, else empty."""
        _, _, _, payload, flags, *_ = segment
        plot, end = self.sequence, start + payload
        colour = {"HD": "blue", "R": "red", "": "orange"}[again]
        if again and not flags & (SYN | FIN):
            self._say(ts_ns, end, again, "red")
        plot.colour("white")
        if flags & SYN:
            if flags & ACK:
                plot.mark("dot", self._first_ts_ns, start, "green")
            plot.colour(colour)
            plot.mark("diamond", ts_ns, start)
            plot.text("a", ts_ns, start + 1, f"{again} SYN".strip())
            plot.mark("uarrow", ts_ns, start + 1)
            plot.line(ts_ns, start, ts_ns, start + 1)
        elif flags & FIN:
            if payload:
                plot.mark("darrow", ts_ns, start)
                plot.line(ts_ns, start, ts_ns, end)
                plot.colour(colour)
            else:
                plot.colour(colour)
                plot.mark("darrow", ts_ns, end)
            plot.line(ts_ns, end, ts_ns, end + 1)
            plot.mark("box", ts_ns, end + 1)
            plot.text("a", ts_ns, end + 1, f"{again} FIN".strip())
        elif payload:
            if again:
                plot.colour(colour)
            plot.mark("darrow", ts_ns, start)
            if flags & PSH:
                plot.mark("diamond", ts_ns, end, "white")
                plot.mark("dot", ts_ns, end, "white")
            else:
                plot.mark("uarrow", ts_ns, end)
            plot.line(ts_ns, start, ts_ns, end)
        else:
            plot.mark("darrow", ts_ns, start)
            plot.mark("uarrow", ts_ns, start)

    def received(self, segment: Segment) -> None:
        """Draw the ACK and the window that a segment of the other direction carries for the data of this direction."""
        ts_ns, _, ack, _, flags, window, blocks, kind, _, rtt_ns = segment
        if rtt_ns is not None:
            self._rtt.to(ts_ns, rtt_ns // NS_PER_MS)
        if flags & RST:
            at = self._isn + ack if ack is not None else self._acked[1] if self._acked else self._isn
            self.sequence.text("a", ts_ns, at, "RST_IN", "magenta")
            return
        if ack is None or kind == "capture_duplicate":
            return
        edge = None if window is None else self._isn + ack + window
        if window == 0:
            self.sequence.text("a", ts_ns, self._isn + ack, "Z", "magenta")
        self._follow_ack(ts_ns, self._isn + ack)
        self._duplicates = self._duplicates + 1 if kind == "duplicate_ack" else 0
        if self._duplicates == FAST_RETRANSMIT_DUPLICATE_ACKS:
            self.sequence.text("a", ts_ns, self._isn + ack, str(self._duplicates))
        if flags & ECE and not flags & SYN:
            self.sequence.colour("yellow")
            self.sequence.mark("diamond", ts_ns, self._isn + ack)
        self._follow_window(ts_ns, edge)
        self._draw_sack(ts_ns, blocks)
        self._acked = ts_ns, self._isn + ack
        self._edge = None if edge is None else (ts_ns, edge)
        self._flight.received(ts_ns, ack, window)

    def _follow_ack(self, ts_ns: int, ack: int) -> None:
        if self._acked is None:
            return
        since_ns, acked = self._acked
        self.sequence.colour("green")
        self.sequence.line(since_ns, acked, ts_ns, acked)
        if ack == acked:
            self.sequence.mark("dtick", ts_ns, ack)
        else:
            self.sequence.line(ts_ns, acked, ts_ns, ack)

    def _follow_window(self, ts_ns: int, edge: int | None) -> None:
        if self._edge is None or edge is None:
            return
        since_ns, before = self._edge
        self.sequence.colour("yellow")
        self.sequence.line(since_ns, before, ts_ns, before)
        if edge == before:
            self.sequence.mark("utick", ts_ns, edge)
        else:
            self.sequence.line(ts_ns, before, ts_ns, edge)

    def _draw_sack(self, ts_ns: int, blocks: list[int] | None) -> None:
        if not blocks:
            return
        self.sequence.colour("purple")
        edges = [(self._isn + left, self._isn + right) for left, right in zip(blocks[::2], blocks[1::2], strict=False)]
        for number, (left, right) in enumerate(edges, 1):
            self.sequence.line(ts_ns, left, ts_ns, right)
            self.sequence.mark("htick", ts_ns, left)
            self.sequence.mark("htick", ts_ns, right)
            if len(edges) > 1:
                self.sequence.text("r", ts_ns, right, str(number))
        self.sequence.text("a", ts_ns, max(right for _, right in edges), "S")


class Flight:
    """Draws outstanding data at each segment (red), its mean over segments (blue) and over time (green), and the window (yellow)."""

    def __init__(self, plot: Plot, first_ts_ns: int) -> None:
        """Start with no outstanding data."""
        self._now = Curve(plot, "owin", "red")
        self._window_line = Curve(plot, "rwin", "yellow")
        self._mean = Curve(plot, "avg owin", "blue")
        self._time_mean = Curve(plot, "wavg owin", "green")
        self._begin_ns = self._since_ns = first_ts_ns
        self._highest = 0
        self._acked: int | None = None
        self._window: int | None = None
        self._sum = self._count = self._area = 0

    def _pass(self, ts_ns: int) -> None:
        self._area += self._outstanding() * max(ts_ns - self._since_ns, 0)
        self._since_ns = ts_ns

    def _outstanding(self) -> int:
        return 0 if self._acked is None else max(self._highest - self._acked, 0)

    def sent(self, ts_ns: int, start: int, end: int, *, draws: bool) -> None:
        """Count data sent from offset `start` to `end`. `draws` is true if a point is to be drawn."""
        self._pass(ts_ns)
        self._highest = end if self._count == 0 and self._acked is None else max(self._highest, end)
        outstanding = end - start if self._acked is None else self._outstanding()
        if not draws:
            return
        self._sum += outstanding
        self._count += 1
        self._now.to(ts_ns, outstanding)
        if self._window is not None:
            self._window_line.to(ts_ns, self._window)
        self._mean.to(ts_ns, self._sum // self._count)
        self._time_mean.to(ts_ns, self._area // max(ts_ns - self._begin_ns, 1))

    def received(self, ts_ns: int, ack: int, window: int | None) -> None:
        """Process an ACK up to offset `ack`, with its window in bytes."""
        self._pass(ts_ns)
        self._acked = ack if self._acked is None else max(self._acked, ack)
        self._window = window


class Sizes:
    """Draws the payload of each segment (red), and the mean payload so far (blue)."""

    def __init__(self, plot: Plot) -> None:
        """Start without segments."""
        self._size = Curve(plot, "segsize", "red")
        self._mean = Curve(plot, "avg segsize", "blue")
        self._bytes = self._segments = 0

    def add(self, ts_ns: int, payload: int) -> None:
        """Add a segment with data."""
        self._bytes += payload
        self._segments += 1
        self._size.to(ts_ns, payload)
        self._mean.to(ts_ns, self._bytes // self._segments)


class Rate:
    """Draws the throughput of each segment (yellow dots), over ten segments (red), and since the start of the connection (blue)."""

    def __init__(self, plot: Plot, first_ts_ns: int) -> None:
        """Start without segments."""
        self._plot = plot
        self._over_ten = Curve(plot, "inst. tput", "red")
        self._mean = Curve(plot, "avg. tput", "blue")
        self._begin_ns = first_ts_ns
        self._since_ns: int | None = None
        self._last_ns = first_ts_ns
        self._bytes = self._segments = self._all_bytes = 0

    def add(self, ts_ns: int, payload: int) -> None:
        """Add a segment. The first segment starts the first interval, even without data."""
        self._all_bytes += payload
        if self._since_ns is None:
            self._since_ns = self._last_ns = ts_ns
            self._segments, self._bytes = 1, payload
            return
        if payload == 0:
            return
        if self._segments + 1 >= THROUGHPUT_SEGMENTS:
            self._over_ten.to(ts_ns, _rate(self._bytes, ts_ns - self._since_ns))
            self._mean.to(ts_ns, _rate(self._all_bytes, ts_ns - self._begin_ns))
            self._since_ns, self._segments, self._bytes = ts_ns, 0, 0
        self._plot.mark("dot", ts_ns, _rate(payload, ts_ns - self._last_ns), "yellow")
        self._last_ns = ts_ns
        self._segments += 1
        self._bytes += payload


def _rate(payload: int, time_ns: int) -> int:
    """Return bytes per second."""
    return int(payload * NS_PER_S / (time_ns if time_ns > 0 else NO_TIME_NS))
