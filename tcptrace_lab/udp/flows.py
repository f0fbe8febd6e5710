"""UDP datagrams → figures of each flow: amounts, sizes, pace, losses where they can be detected, and response times.

Datagrams are added in capture order, any number at a time. For each direction of a flow, only a few numbers are kept, with counts of times
in narrow buckets (see `rtt`) and the set of sizes, and only until the flow ends: memory grows with the concurrent flows, not with the
capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.text.numbers import NS_PER_S
from tcptrace_lab.udp.ip_ids import NONE, IpIds
from tcptrace_lab.udp.keyed_arrays import Dense, Places, Sums
from tcptrace_lab.udp.rtt import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICE_ROWS = 65_536
"""Datagrams processed at a time: about 20 MB."""

PART_FLOWS = 65_536
"""Flows whose figures are computed at a time."""

MAX_SIZES = 8_000_000
"""Maximum number of pairs of direction and size (8 bytes each) kept at a time. Beyond it, sizes are no longer counted."""

BITS_PER_BYTE = 8

_VARIATION_DECIMALS = 6
"""The variation is computed from sums of floats. With more decimals, their rounding would show even if the pace is even."""

_UNKNOWN, _ENDLESS = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_SIDES = len(schema.SIDES)
_KINDS = 2
_GAP, _ECHO = range(_KINDS)
_MERGE_PAIRS = 1_000_000
_SIZE_BITS = 32


def flow_figures(datagrams: pl.LazyFrame) -> pl.DataFrame:
    """Sum up rows of `schema.DATAGRAMS`, which are in capture order.

    Returns:
        One row per flow in these datagrams: the columns of `schema.FLOWS` except addresses and ports.
    """
    figures = FlowFigures()
    for rows in datagrams.select(FlowFigures.columns).collect_batches(maintain_order=True):
        figures.add(rows)
    return figures.table()


class FlowFigures:
    """Sums up rows of `schema.DATAGRAMS` as they are read (a `segments.FlowWatcher`).

    Each flow has an index, and each of its directions a key: even for the client, odd for the server.
    """

    columns = ("flow", "from_client", "ts_ns", "payload_bytes", "fragments", "since_previous_ns", "since_other_ns", "ip_id")

    def __init__(self) -> None:
        """Start without datagrams."""
        self._places = Places()
        self._sums = {name: Sums() for name in ("datagrams", "payload_bytes", "fragmented_datagrams", "gaps", "gap_ns", "echo_samples")}
        self._squares = Dense(0, np.float64)
        self._least = {name: Dense(_ENDLESS) for name in ("payload_bytes", "ts_ns", "echo_ns")}
        self._most = {name: Dense(_UNKNOWN) for name in ("payload_bytes", "ts_ns", "echo_ns", "gap_ns")}
        self._times = Samples()
        self._ip_ids = IpIds()
        self._sizes = _Sizes()

    def add(self, rows: pl.DataFrame) -> None:
        """Add some rows."""
        for part in rows.select(self.columns).iter_slices(SLICE_ROWS):
            place = pl.Series("place", self._places.of(part["flow"].to_numpy().astype(np.int64)))
            sorted_rows = part.with_columns(place).select(**_prepared()).sort("key", maintain_order=True)
            self._times.count(*_as_samples(sorted_rows, "gap_ns", _GAP))
            self._times.count(*_as_samples(sorted_rows, "echo_ns", _ECHO))
            self._add({name: sorted_rows[name].to_numpy() for name in sorted_rows.columns})

    def _add(self, values: dict[str, NDArray[np.int64]]) -> None:
        """Add columns made by `_prepared`, sorted by key."""
        key = values["key"]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        keys = key[starts]
        gap = np.maximum(values["gap_ns"], 0)
        summed = {
            "datagrams": np.ones_like(key),
            "payload_bytes": values["payload_bytes"],
            "fragmented_datagrams": values["fragmented"],
            "gaps": values["gap_ns"] != _UNKNOWN,
            "gap_ns": gap,
            "echo_samples": values["echo_ns"] != _UNKNOWN,
        }
        for name, total in self._sums.items():
            total.add(keys, np.add.reduceat(summed[name], starts, dtype=np.int64))
        self._squares.set(keys, self._squares.at(keys) + np.add.reduceat(gap.astype(np.float64) ** 2, starts))
        for name, most in self._most.items():
            most.set(keys, np.maximum(most.at(keys), np.maximum.reduceat(values[name], starts)))
        for name, least in self._least.items():
            known = np.where(values[name] == _UNKNOWN, _ENDLESS, values[name])
            least.set(keys, np.minimum(least.at(keys), np.minimum.reduceat(known, starts)))
        self._ip_ids.add(key, values["ip_id"].astype(np.int32))
        self._sizes.add(values["direction"], values["payload_bytes"])

    def table(self) -> pl.DataFrame:
        """Return the figures of all known flows: the columns of `schema.FLOWS` except addresses and ports, by `flow`."""
        flows = self._places.numbers
        return self._figures(pl.DataFrame({"flow": flows}, schema={"flow": pl.UInt32}), self._times.quantiles(), self._sizes.counts(flows))

    def take(self, flows: pl.DataFrame) -> pl.DataFrame:
        """Return the figures of some flows and forget them.

        Args:
            flows: their endpoints: the first columns of `schema.FLOWS`.

        Returns:
            Rows of `schema.FLOWS` for those that had datagrams.
        """
        numbers = flows["flow"].to_numpy().astype(np.int64)
        directions = np.concatenate([numbers * _SIDES + side for side in range(_SIDES)])
        times = self._times.take(pl.Series(np.concatenate([directions * _KINDS + kind for kind in range(_KINDS)])))
        figures = self._figures(flows, times, self._sizes.take(numbers))
        kept = self._places.drop(numbers)
        keys = (kept[:, np.newaxis] * _SIDES + np.arange(_SIDES)).ravel()
        for dense in (*self._sums.values(), self._squares, *self._least.values(), *self._most.values()):
            dense.keep(keys)
        self._ip_ids.keep(keys)
        return figures

    def _figures(self, flows: pl.DataFrame, times: pl.DataFrame, sizes: NDArray[np.int64]) -> pl.DataFrame:
        """Return the rows of some flows. `times` comes from `rtt.Samples`; `sizes` counts the sizes of each direction of each flow."""
        numbers = flows["flow"].to_numpy().astype(np.int64)
        places = self._places.of(numbers)
        parts = []
        for start in range(0, max(numbers.size, 1), PART_FLOWS):
            part = slice(start, start + PART_FLOWS)
            quantiles = _quantiles(numbers[part], times)
            side_sizes = sizes.reshape(-1, _SIDES)[part]
            parts.append(self._part(flows[part], places[part] * _SIDES, quantiles, side_sizes))
        return pl.concat(parts)

    def _part(
        self, flows: pl.DataFrame, keys: NDArray[np.int64], quantiles: dict[str, NDArray[np.int64]], sizes: NDArray[np.int64]
    ) -> pl.DataFrame:
        """Return the rows of a few flows; `keys` are the keys of their client directions."""
        parts = [flows, self._echo(keys + 1, quantiles)]
        for place, side in enumerate(schema.SIDES):
            own = {name: values[:, place] for name, values in quantiles.items()} | {"distinct_sizes": sizes[:, place]}
            parts.append(self._direction(keys + place, own).select(pl.all().name.prefix(f"{side}_")))
        return pl.concat(parts, how="horizontal").filter(pl.col("client_datagrams") + pl.col("server_datagrams") > 0)

    def _echo(self, keys: NDArray[np.int64], quantiles: dict[str, NDArray[np.int64]]) -> pl.DataFrame:
        """Return the columns `echo_*`, which the server's datagrams give."""
        columns = {
            "echo_samples": self._sums["echo_samples"].at(keys).astype(np.int64),
            "echo_min_ns": self._least["echo_ns"].at(keys),
            "echo_p50_ns": quantiles["echo_p50_ns"][:, 1],
            "echo_p95_ns": quantiles["echo_p95_ns"][:, 1],
            "echo_max_ns": self._most["echo_ns"].at(keys),
        }
        return pl.DataFrame(columns).select(_known(name) for name in columns)

    def _direction(self, keys: NDArray[np.int64], own: dict[str, NDArray[np.int64]]) -> pl.DataFrame:
        """Return the figures of one direction of each flow, without prefix; `own` holds those that are not sums or extremes."""
        columns = {
            **{name: sums.at(keys).astype(np.int64) for name, sums in self._sums.items()},
            "gap_squares": self._squares.at(keys),
            "min_payload_bytes": self._least["payload_bytes"].at(keys),
            "max_payload_bytes": self._most["payload_bytes"].at(keys),
            "first_ts_ns": self._least["ts_ns"].at(keys),
            "last_ts_ns": self._most["ts_ns"].at(keys),
            "gap_max_ns": self._most["gap_ns"].at(keys),
            **{name: own[name] for name in ("gap_p50_ns", "gap_p95_ns", "distinct_sizes")},
        }
        figures = pl.concat([pl.DataFrame(columns).select(_figures()), self._ip_ids.verdicts(keys)], how="horizontal")
        return figures.with_columns(loss_known_by=_loss_known_by()).select(schema.FLOW_DIRECTION_NAMES)


def _quantiles(flows: NDArray[np.int64], times: pl.DataFrame) -> dict[str, NDArray[np.int64]]:
    """Return `gap_p50_ns` and so on for both directions of some flows, one row per flow; `_UNKNOWN` without samples."""
    order = np.argsort(flows)
    number = times["conn"].to_numpy()
    direction, kind = number // _KINDS, number % _KINDS
    at = np.searchsorted(flows[order], direction // _SIDES)
    here = (at < flows.size) & (flows[order][np.minimum(at, flows.size - 1)] == direction // _SIDES) if flows.size else at < 0
    found = {}
    for code, name in ((_GAP, "gap"), (_ECHO, "echo")):
        chosen = here & (kind == code)
        for quantile in ("p50_ns", "p95_ns"):
            found[f"{name}_{quantile}"] = values = np.full((flows.size, _SIDES), _UNKNOWN)
            values[order[at[chosen]], direction[chosen] % _SIDES] = times[quantile].to_numpy()[chosen]
    return found


def _prepared() -> dict[str, pl.Expr]:
    """Return the columns to sum up, as integers with `_UNKNOWN` for null.

    A gap during which the clock ran backwards does not count. An answer is the server's first datagram after one from the client: more time
    has passed since the server's last datagram than since the client's.
    """
    own_ns, other_ns = pl.col("since_previous_ns"), pl.col("since_other_ns")
    answer = ~pl.col("from_client") & (other_ns >= 0) & (own_ns.is_null() | (own_ns > other_ns))
    return {
        "key": pl.col("place") * _SIDES + ~pl.col("from_client"),
        "direction": pl.col("flow").cast(pl.Int64) * _SIDES + ~pl.col("from_client"),
        "ts_ns": pl.col("ts_ns").fill_null(_UNKNOWN),
        "payload_bytes": pl.col("payload_bytes"),
        "fragmented": (pl.col("fragments") > 1).cast(pl.Int64),
        "gap_ns": pl.when(own_ns >= 0).then(own_ns).otherwise(_UNKNOWN),
        "echo_ns": pl.when(answer).then(other_ns).otherwise(_UNKNOWN),
        "ip_id": pl.col("ip_id").cast(pl.Int64).fill_null(NONE),
    }


def _as_samples(rows: pl.DataFrame, name: str, kind: int) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return the times `name` in the form that `Samples` takes. Each direction has two kinds of times, and so two numbers."""
    number = pl.col("direction") * _KINDS + kind
    known = rows.filter(pl.col(name) != _UNKNOWN).select(number=number, from_client=pl.lit(value=True), time_ns=name)
    return known["number"], known["from_client"], known["time_ns"]


def _figures() -> list[pl.Expr]:
    """Return the figures that follow from sums, extremes and quantiles, named by their columns."""
    active_ns = _known("last_ts_ns") - _known("first_ts_ns")
    mean_gap_ns = pl.col("gap_ns") / pl.col("gaps")
    variance = pl.col("gap_squares") / pl.col("gaps") - mean_gap_ns**2
    variation = (variance.clip(0).sqrt() / mean_gap_ns).round(_VARIATION_DECIMALS)
    found = {
        "mean_payload_bytes": pl.when(pl.col("datagrams") > 0).then((pl.col("payload_bytes") / pl.col("datagrams")).round().cast(pl.Int64)),
        "rate_bps": pl.when((pl.col("datagrams") > 0) & (active_ns > 0)).then(
            pl.col("payload_bytes") * BITS_PER_BYTE / (active_ns / NS_PER_S)
        ),
        "gap_variation": pl.when((pl.col("gaps") > 1) & (mean_gap_ns > 0)).then(variation),
    }
    as_they_are = ("datagrams", "payload_bytes", "fragmented_datagrams")
    maybe = (
        "min_payload_bytes",
        "max_payload_bytes",
        "distinct_sizes",
        "first_ts_ns",
        "last_ts_ns",
        "gap_p50_ns",
        "gap_p95_ns",
        "gap_max_ns",
    )
    return [*map(pl.col, as_they_are), *map(_known, maybe), *(expression.alias(name) for name, expression in found.items())]


def _known(name: str) -> pl.Expr:
    """Return the column, with null where it has no value."""
    return pl.when(pl.col(name).is_between(_UNKNOWN, _ENDLESS, closed="none")).then(name)


def _loss_known_by() -> pl.Expr:
    dtype = schema.FLOWS["client_loss_known_by"].polars_type()
    return pl.when(pl.col("missing_datagrams").is_not_null()).then(pl.lit(schema.LOSS_KNOWN_BY[0], dtype))


class _Sizes:
    """The set of datagram sizes of each direction, up to `MAX_SIZES` pairs at a time."""

    def __init__(self) -> None:
        self._pairs = [np.empty(0, np.int64)]
        self._held = 0
        self._merge_at = _MERGE_PAIRS
        self._too_many = False

    def add(self, direction: NDArray[np.int64], size: NDArray[np.int64]) -> None:
        """Add the sizes of some datagrams. A direction's number is twice that of its flow, plus 1 for the server's."""
        if self._too_many:
            return
        self._pairs.append(np.unique(direction << _SIZE_BITS | size))
        self._held += self._pairs[-1].size
        if self._held > self._merge_at:
            self._merge()

    def counts(self, flows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Count the sizes of each direction of some flows, client and server in turn; `_UNKNOWN` if there were too many."""
        self._merge()
        if self._too_many:
            return np.full(flows.size * _SIDES, _UNKNOWN)
        directions = (flows[:, np.newaxis] * _SIDES + np.arange(_SIDES)).ravel()
        low = np.searchsorted(self._pairs[0], directions << _SIZE_BITS)
        return np.searchsorted(self._pairs[0], (directions + 1) << _SIZE_BITS) - low

    def take(self, flows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `counts` and forget these flows."""
        counts = self.counts(flows)
        pairs = self._pairs[0]
        self._pairs = [pairs[~np.isin(pairs >> _SIZE_BITS >> 1, flows)]]
        self._held = self._pairs[0].size
        return counts

    def _merge(self) -> None:
        self._pairs = [np.unique(np.concatenate(self._pairs))]
        self._held = self._pairs[0].size
        self._merge_at = max(_MERGE_PAIRS, 2 * self._held)
        if self._held > MAX_SIZES:
            self._too_many, self._pairs = True, [np.empty(0, np.int64)]
