"""One plot in the input language of xplot (David Clark, xplot.org). A command is one line; a text command is two lines.

A plot starts with the types of its axes and its titles. Each following command draws at a time (seconds, six decimals) and a y value. A
colour at the end of a command applies to this command only; otherwise, the colour that was set last applies. `go` ends the plot.
"""

from __future__ import annotations

NS_PER_US = 1_000
US_PER_S = 1_000_000


def moment(ts_ns: int) -> str:
    """Return a time in xplot's format: seconds with six decimals."""
    seconds, us = divmod(ts_ns // NS_PER_US, US_PER_S)
    return f"{seconds}.{us:06}"


class Plot:
    """Collects the lines of one plot until `take` returns them."""

    def __init__(self, axes: str, title: str, ylabel: str) -> None:
        """Start a plot over time. `axes` names the types of both axes."""
        self._lines = [axes, "title", title, "xlabel", "time", "ylabel", ylabel]

    def take(self) -> str:
        """Return and remove the lines collected since the last call."""
        text = "".join(f"{line}\n" for line in self._lines)
        self._lines = []
        return text

    def colour(self, name: str) -> None:
        """Set the colour of the following commands."""
        self._lines.append(name)

    def mark(self, what: str, ts_ns: int, y: int, colour: str = "") -> None:
        """Draw a `dot`, `diamond`, `box`, arrow or tick (`uarrow`, `dtick`, …)."""
        self._lines.append(f"{what} {moment(ts_ns)} {y}{colour and ' ' + colour}")

    def text(self, where: str, ts_ns: int, y: int, words: str, colour: str = "") -> None:
        """Write text above (`a`), below (`b`), left (`l`) or right (`r`) of a point."""
        self.mark(f"{where}text", ts_ns, y, colour)
        self._lines.append(words)

    def line(self, ts_ns: int, y: int, to_ns: int, to_y: int) -> None:
        """Draw a straight line."""
        self._lines.append(f"line {moment(ts_ns)} {y} {moment(to_ns)} {to_y}")

    def end(self) -> None:
        """End the plot."""
        self._lines.append("go")


class Curve:
    """Points joined by lines. The label is written at the first line that ends at a value other than 0."""

    def __init__(self, plot: Plot, label: str, colour: str) -> None:
        """Start a curve without points."""
        self._plot, self._label, self._colour = plot, label, colour
        self._last: tuple[int, int] | None = None
        self._labelled = False

    def to(self, ts_ns: int, y: int) -> None:
        """Add a point."""
        if self._last is not None and not self._labelled and y != 0:
            last_ns, last_y = self._last
            self._plot.text("l", (last_ns + ts_ns) // 2, (1 + last_y + y) // 2, self._label, self._colour)
            self._labelled = True
        self._plot.colour(self._colour)
        self._plot.mark("dot", ts_ns, y)
        if self._last is not None:
            self._plot.line(ts_ns, y, *self._last)
        self._last = ts_ns, y
