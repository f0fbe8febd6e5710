"""Finds the slow message sizes of the chosen connections, and predicts slow sizes from the rules of their stack.

A group contains the messages of one direction between a client and a server (address and port), from any number of connections.
`size_choice` selects the connections, which can come from several captures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.connections import rates
from tcptrace_lab.connections.ack_policy import HEARTBEAT_MS, POLICIES
from tcptrace_lab.ledger.stalls import CAUSAL_NS, MIN_STALL_NS
from tcptrace_lab.messages import messages
from tcptrace_lab.messages.size_choice import MIN_MESSAGES, SIZE_CAUSES
from tcptrace_lab.messages.sizes import MIN_IN_RANGE, Look, SlowRange, by_clarity, slow_ranges
from tcptrace_lab.schema import SIDES
from tcptrace_lab.stacks.ranges import LARGEST_BYTES, MAX_PIECES, STACKS, Range, Settings, predicted_ranges
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray

DRAWN_MESSAGES = 3_000
"""Maximum number of messages in a figure of one direction of a group. Stalled and other messages are thinned out separately."""

CLEAR_SHARE = 0.8
"""Minimum share of messages whose first write has the most common size, so that this size is the copy size (a heuristic)."""

MAX_JOINED = 0.5
"""If TCP merged pieces in more than this share of the messages, the first piece says nothing about the others (a heuristic)."""

SHARES = {"buffer-35": "sunos4", "buffer-50": "bsd4.4"}
"""ACK rule of a receiver that acknowledges by a share of its buffer → its stack (`STACKS`)."""

PIECES = {STACKS[stack].copy_bytes: stack for stack in SHARES.values()}
"""Copy size of a sender → its stack. If two full segments are less than 35% of the buffer, the ACKs of these stacks look alike, and only
the copy size shows the stack."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a prediction that the capture shows. None is unknown.

    Attributes:
        mss_bytes: data of a full segment.
        send_buffer_bytes: send buffer of the sender.
        receive_buffer_bytes: receive buffer, taken as the largest window of the receiver.
        copy_bytes: the size of most first writes.
        stack: a key of `STACKS`.
        nodelay: whether it is proved that the sender does not delay small segments.
        assumed: parameter that the capture does not prove → why it was assumed.
        seen: what the capture shows about the two stacks.
    """

    mss_bytes: int | None
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    copy_bytes: int | None
    stack: str | None
    nodelay: bool
    assumed: Mapping[str, str]
    seen: str = ""

    def settings(self) -> Settings | None:
        """Return these parameters as settings for `predicted_ranges`; None if too little is known."""
        if self.mss_bytes is None or self.receive_buffer_bytes is None or self.copy_bytes is None:
            return None
        sizes = (self.mss_bytes, self.send_buffer_bytes or self.receive_buffer_bytes, self.receive_buffer_bytes, self.copy_bytes)
        return Settings(*sizes, nodelay=self.nodelay) if min(sizes) > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return these parameters as an object of the JSON."""
        return {
            "mss_bytes": self.mss_bytes,
            "send_buffer_bytes": self.send_buffer_bytes,
            "receive_buffer_bytes": self.receive_buffer_bytes,
            "copy_bytes": self.copy_bytes,
            "stack": self.stack,
            "nodelay": self.nodelay,
            "assumptions": list(self.assumed.values()),
        }


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The messages of one direction of a group, sorted by size.

    Attributes:
        name: `client → server:port`, with the client's port if the group is one connection.
        conn: number of the connection if the group is one connection; else None.
        from_client: the direction.
        messages: number of messages analyzed. Incompletely captured messages are not analyzed.
        active_ns: active time of this direction, summed over the connections of the group.
        measured: the slow ranges.
        causes: the most frequent cause of stalls in each slow range.
        predicted: ranges that the stack's rules predict; empty if too little is known.
        parameters: parameters of the prediction.
        drawn: `payload_bytes transfer_ns stalled first_frame` of messages for a figure.
        frames: frames at the ends of the first stalls in each range.
        receiver: stack family that the receiver's SYNs suggest; None if they suggest none or several.
        visits: for each slow range, number of runs of consecutive messages (in time order) with sizes in the range.
    """

    name: str
    conn: int | None
    from_client: bool
    messages: int
    active_ns: int
    measured: tuple[SlowRange, ...]
    causes: tuple[str, ...]
    predicted: tuple[Range, ...]
    parameters: Parameters
    drawn: pl.DataFrame = field(repr=False)
    frames: tuple[int, ...] = ()
    receiver: str | None = None
    visits: tuple[int, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return an object of `message_sizes` in the JSON."""
        return {
            "connection_group": self.name,
            "from_client": self.from_client,
            "messages": self.messages,
            "measured": [measured_object(one) for one in self.measured],
            "predicted": [{"from_bytes": one.from_bytes, "to_bytes": one.to_bytes, "stalls": str(one.stalls)} for one in self.predicted],
            "parameters": self.parameters.to_dict(),
        }


def measured_object(one: SlowRange) -> dict[str, Any]:
    """Return a slow range as an object of the JSON."""
    return {
        "from_bytes": one.from_bytes,
        "to_bytes": one.to_bytes,
        "min_from_bytes": one.min_from_bytes,
        "max_to_bytes": one.max_to_bytes,
        "median_s": one.median_ns / numbers.NS_PER_S,
        "median_interval_s": [value / numbers.NS_PER_S for value in one.median_interval_ns],
        "stalled_median_s": one.stalled_median_ns / numbers.NS_PER_S,
        "normal_median_s": one.normal_median_ns / numbers.NS_PER_S,
        "messages": one.messages,
        "stalled_share": one.stalled_share,
        "stalled_share_interval": list(one.stalled_share_interval),
    }


def found(
    chosen: pl.DataFrame, segments: pl.LazyFrame, connections: pl.LazyFrame, notes: pl.LazyFrame, accounts: pl.LazyFrame
) -> tuple[GroupSizes, ...]:
    """Return the groups of a capture that have enough messages.

    Args:
        chosen: connections and their groups, from `size_choice.chosen`; at least one.
        segments: rows of `schema.SEGMENTS`; read once, for the chosen connections.
        connections: rows of `schema.CONNECTIONS`.
        notes: rows of `schema.NOTES`.
        accounts: rows of `schema.ACCOUNTS`.

    Returns:
        One per direction of a group with enough messages. Directions that lose most time in slow ranges come first.
    """
    here = pl.col("conn").is_in(chosen["conn"].to_list())
    idle = accounts.select("conn", *(f"{side}_idle_ns" for side in SIDES))
    some = connections.filter(here).join(idle, on="conn", how="left").collect()
    whole = whole_messages(segments.filter(here), notes.filter(here), some)
    groups = [group for members in _by_group(chosen) for group in _group(whole, some, members)]
    return tuple(sorted(groups, key=lambda group: -sum(one.cost_ns for one in group.measured)))


def _by_group(chosen: pl.DataFrame) -> Iterator[list[int]]:
    for part in chosen.partition_by("group", maintain_order=True):
        yield sorted(part["conn"].to_list())


def _group(whole: pl.DataFrame, connections: pl.DataFrame, members: list[int]) -> Iterator[GroupSizes]:
    """Yield each direction of a group that has enough messages."""
    own = connections.filter(pl.col("conn").is_in(members))
    for side, from_client in SIDES.items():
        rows = whole.filter(pl.col("conn").is_in(members) & (pl.col("from_client") == from_client))
        if rows.height < MIN_MESSAGES:
            continue
        measured, stalled = slow_sizes(rows)
        parameters = inferred(own, rows, side)
        receivers = _families(own, next(other for other in SIDES if other != side))
        yield GroupSizes(
            name=_name(own),
            conn=members[0] if len(members) == 1 else None,
            from_client=from_client,
            messages=rows.height,
            active_ns=int((own["last_ts_ns"] - own["first_ts_ns"] - own[f"{side}_idle_ns"].fill_null(0)).sum()),
            measured=measured,
            causes=tuple(str(rows.select(_CAUSE).to_series()[list(one.rows)].mode().sort()[0]) for one in measured),
            predicted=predicted(parameters, _largest(rows["payload_bytes"]) or 0),
            parameters=parameters,
            drawn=_drawn(rows, stalled),
            frames=tuple(sorted({frame for one in measured for frame in rows.select(_FRAME).to_series()[list(one.rows[:MIN_IN_RANGE])]})),
            receiver=receivers[0] if len(receivers) == 1 else None,
            visits=tuple(_visits(rows, one) for one in measured),
        )


def _visits(rows: pl.DataFrame, one: SlowRange) -> int:
    inside = rows.sort("first_frame")["payload_bytes"].is_between(one.from_bytes, one.to_bytes)
    return int((inside & ~inside.shift(1, fill_value=False)).sum())


_STALLED = pl.col("stall_cause").cast(pl.String).is_in(SIZE_CAUSES).fill_null(value=False)
_CAUSE = pl.when(_STALLED).then(pl.col("stall_cause").cast(pl.String)).otherwise(pl.lit("nagle"))
_FRAME = pl.when(_STALLED).then("stall_frame").otherwise("short_nagle_wait_frame")


def slow_sizes(rows: pl.DataFrame) -> tuple[tuple[SlowRange, ...], NDArray[np.bool_]]:
    """Return the slow ranges among messages of one direction, and whether each message stalled.

    There are two definitions of a stalled message. The first needs a stall. The second also counts any message that Nagle's algorithm
    delayed until a late ACK, because such a wait can be too short for a stall: the delayed-ACK timer of the receiver sometimes expires soon
    after the data arrived. The definition whose messages cluster more strongly by size is tried first. The other definition is used only if
    the first one shows no ranges.

    Args:
        rows: messages with the columns of `whole_messages`.
    """
    flags = rows.select(stalls=_STALLED, late_acks=_STALLED | (pl.col("short_nagle_wait_ns") > 0))
    sizes = rows["payload_bytes"].to_numpy()
    held_ns = (rows["stalled_ns"] + rows["short_nagle_wait_ns"]).to_numpy()
    stalls, late_acks = Look(flags["stalls"].to_numpy(), MIN_STALL_NS), Look(flags["late_acks"].to_numpy(), CAUSAL_NS)
    looks = by_clarity(sizes, stalls, late_acks)
    for look in looks:
        ranges = slow_ranges(sizes, rows["transfer_ns"].to_numpy(), held_ns, look)
        if ranges:
            return ranges, look.stalled
    return (), looks[0].stalled


def whole_messages(segments: pl.LazyFrame, notes: pl.LazyFrame, connections: pl.DataFrame) -> pl.DataFrame:
    """Return the completely captured messages of some connections, with the columns that size analysis needs.

    Args:
        segments: rows of `schema.SEGMENTS` of these connections.
        notes: rows of `schema.NOTES` of these connections.
        connections: rows of `schema.CONNECTIONS` of these connections; at least one.
    """
    rows = messages.messages(segments, notes, (_largest(connections["conn"]) or 0) + 1)
    known = rows.filter((pl.col("state") == "whole") & pl.col("transfer_ns").is_not_null())
    held = ("stalled_ns", "stall_cause", "stall_frame", "short_nagle_wait_ns", "short_nagle_wait_frame")
    return known.select("conn", "from_client", "payload_bytes", "transfer_ns", *held, "first_frame", "writes_inferred").collect()


def _name(own: pl.DataFrame) -> str:
    row = own.row(0, named=True)
    client = f"{row['client_addr']}:{row['client_port']}" if own.height == 1 else row["client_addr"]
    return f"{client} → {row['server_addr']}:{row['server_port']}"


def _drawn(rows: pl.DataFrame, stalled: NDArray[np.bool_]) -> pl.DataFrame:
    points = rows.select("payload_bytes", "transfer_ns", "first_frame", stalled=pl.Series(stalled)).sort("payload_bytes", "first_frame")
    if points.height <= DRAWN_MESSAGES:
        return points
    kept = [part.gather_every(max(-(-2 * part.height // DRAWN_MESSAGES), 1)) for part in points.partition_by("stalled")]
    return pl.concat(kept).sort("payload_bytes", "first_frame")


def inferred(connections: pl.DataFrame, rows: pl.DataFrame, side: str) -> Parameters:
    """Return the parameters that the capture shows for one direction.

    Args:
        connections: rows of `schema.CONNECTIONS` with the columns of `behaviour`.
        rows: messages of this direction, with at least the columns `writes_inferred` and `stall_cause`.
        side: the sender.
    """
    (other,) = SIDES.keys() - {side}
    full = connections[f"{side}_full_segment_bytes"].drop_nulls().mode().sort()
    window = _largest(connections[f"{other}_max_window_bytes"])
    writes = rows.filter(pl.col("writes_inferred").list.len() > 1)["writes_inferred"]
    filled = (rows["stall_cause"].cast(pl.String) == "send-buffer").any()
    level = connections.filter(pl.col(f"{side}_level_rounds") >= rates.PLATEAU_ROUNDS)[f"{side}_level_flight_bytes"]
    send = _largest(level) if filled else None
    copy = _copy(writes)
    stack, why = _stack(connections, side, other, copy)
    assumed = {"stack": why} if stack is not None else {}
    if window is not None:
        assumed["receive_buffer_bytes"] = "the receive buffer is the largest window"
    if send is None and stack not in {None, "linux"}:
        assumed["send_buffer_bytes"] = "the send buffer is as large as the receive buffer"
    nodelay = bool((connections[f"{side}_nagle"] == "off").any())
    return Parameters(
        mss_bytes=None if full.is_empty() else int(full[0]),
        send_buffer_bytes=send,
        receive_buffer_bytes=window,
        copy_bytes=copy,
        stack=stack,
        nodelay=nodelay,
        assumed=assumed,
        seen=why,
    )


def _largest(values: pl.Series) -> int | None:
    largest = values.max()
    return largest if isinstance(largest, int) else None


def _copy(writes: pl.Series) -> int | None:
    """Return the size of the pieces in which the application wrote messages; None if the capture does not show it.

    The first piece of a message shows the size. Later pieces can be longer, because TCP merges pieces while it delays them. But a short
    first piece can also be a header before a body that was written with one call. So if longer pieces follow in most messages, the size is
    returned only if a stack itself produces pieces of this size.
    """
    copy = _clear(writes.list.first())
    joined = (writes.list.slice(1).list.max() > writes.list.first()).mean()
    return None if copy not in PIECES and isinstance(joined, float) and joined > MAX_JOINED else copy


def _clear(values: pl.Series) -> int | None:
    """Return the most frequent value if nearly all values are equal to it (`CLEAR_SHARE`); else None."""
    if values.len() < MIN_IN_RANGE:
        return None
    counts = values.value_counts(sort=True)
    return int(counts.item(0, 0)) if counts.item(0, 1) >= CLEAR_SHARE * values.len() else None


def _families(connections: pl.DataFrame, side: str) -> list[str]:
    """Return the stack families that the SYNs of `side` suggest."""
    return connections[f"{side}_stack_guess"].drop_nulls().unique().sort().to_list()


def _stack(connections: pl.DataFrame, side: str, other: str, copy_bytes: int | None) -> tuple[str | None, str]:
    """Return the stack whose rules apply, and the evidence for or against it: the sender's SYN or the receiver's ACK policy."""
    guesses = _families(connections, side)
    if guesses == ["Linux"]:
        return "linux", "the sender is Linux, by the options of its SYN"
    if guesses:
        return None, f"the sender's SYN is that of {' and '.join(guesses)}"
    policies = set(connections[f"{other}_ack_policy"].to_list()) - {"unknown"}
    for policy, stack in SHARES.items():
        if policy in policies:
            return stack, f"the stack is {STACKS[stack].title}: the receiver {POLICIES[policy]}"
    beats = "heartbeat" in connections[f"{other}_ack_timer_kind"].to_list()
    if beats and "per-2-mss" in policies and copy_bytes in PIECES:
        stack = PIECES[copy_bytes]
        rule = f"the receiver {POLICIES['per-2-mss']}, and every {HEARTBEAT_MS} ms"
        return stack, f"the stack is {STACKS[stack].title}: {rule}; the sender's pieces are {copy_bytes:,} bytes"
    does = " and ".join(POLICIES[policy] for policy in sorted(policies)) or POLICIES["unknown"]
    return None, f"the sender's SYN is of no known stack, and the receiver {does}"


def predicted(parameters: Parameters, largest_bytes: int) -> tuple[Range, ...]:
    """Return the sizes that stall according to the rules of the stack, up to the largest captured size; empty if too little is known."""
    settings = parameters.settings()
    if settings is None or parameters.stack is None:
        return ()
    piece = min(settings.mss_bytes, settings.copy_bytes, settings.send_buffer_bytes, settings.receive_buffer_bytes)
    last = min(max(largest_bytes, 1), LARGEST_BYTES, MAX_PIECES * piece)
    return predicted_ranges(STACKS[parameters.stack], settings, 1, last)
