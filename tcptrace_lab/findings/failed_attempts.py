"""Groups failed connection attempts: all attempts of one client to one port of one server are one finding.

If a client gets no answer or is refused, it tries again, usually with a new connection each time. It also tries again if its connections
are reset before they carry data. One finding per attempt would hide all other findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab.causes import Confidence, handshake
from tcptrace_lab.causes.texts import special_cases
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.behaviour import refused
from tcptrace_lab.findings.finding import Finding, Severity, severity_of
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 20
"""Maximum number of groups that are reported. Groups with the most time come first, then groups with the most attempts."""

MIN_TIMES = 3
"""Minimum number of attempts in a group, if the attempts took hardly any time. Three of a kind are no coincidence (docs/how-it-decides.md,
2.4)."""

EVIDENCE_ATTEMPTS = 9
"""Number of attempts whose first and last frame are evidence. The frames of the first attempt's longest waits are evidence too."""

CAUSE = "handshake"
"""The cause to which the ledger assigns the time of failed attempts."""

FAILED = special_cases.unanswered(pl.col) | refused(pl.col)
"""Condition on rows of `schema.CONNECTIONS`: the connection was never established."""

_opened = (pl.col("client_syn_segments") > 0) & (pl.col("server_syn_segments") > 0)
_resets = pl.sum_horizontal(*(pl.col(f"{side}_rst_segments") for side in SIDES)) > 0
RESET = _opened & _resets & (pl.sum_horizontal(*(pl.col(f"{side}_payload_bytes") for side in SIDES)) == 0)
"""Condition on rows of `schema.CONNECTIONS`: the connection was established, carried no data, and was reset."""

_GROUP = ("client_addr", "server_addr", "server_port", "kind")
_FRAMES = ("first_frame", "last_frame")
_WORTH_NS = handshake.RULE.advice.worth_ns if handshake.RULE.advice else 0


class Words(NamedTuple):
    """Texts for one kind of failure. Numbers of a group replace the placeholders in braces."""

    alone: str
    together: str
    mechanism: str
    limits: str
    remedy: tuple[str, ...]


WORDS = {
    "unanswered": Words(
        alone="A connection attempt was not answered for {time}",
        together="{count} connection attempts to {server} were not answered{for_time}",
        mechanism=(
            "{client} sent its SYN{again}, and no answer came: the server is down, the address is wrong, or something on the path drops "
            "the SYN or its answer."
        ),
        limits="The capture does not show which of these is the reason. Would be disproved by: an answer to the SYN that reached the "
        "client and is missing from the capture.",
        remedy=(
            "check that the server is running and has this address",
            "find what drops the SYN or its answer: a firewall, a missing route, a full accept queue",
        ),
    ),
    "refused": Words(
        alone="{server} refused a connection after {time}",
        together="{server} refused {count} connection attempts{for_time}",
        mechanism="{client} sent its SYN{again}, and a RST came back: no application listens on that port, or a firewall "
        "refuses the connection.",
        limits="A firewall that answers for the server looks the same. Would be disproved by: a SYN-ACK of the server before the RST.",
        remedy=("start the application that should listen there, or correct the port", "let the client wait between attempts (backoff)"),
    ),
    "reset": Words(
        alone="",
        together="{count} connections to {server} were reset before they carried data",
        mechanism="Each connection was opened, and {who} reset it before any data was sent.",
        limits="Health checks and scanners do this on purpose. Would be disproved by: data of these connections that is "
        "missing from the capture.",
        remedy=("find what resets the connections: a health check is harmless, a server that is overloaded or out of processes is not",),
    ),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Failed attempts of one kind, from one client to one port of one server.

    Attributes:
        kind: a key of `WORDS`.
        client: address of the client.
        server: address and port of the server.
        conn: the first attempt.
        count: number of attempts.
        syns: number of SYNs that the client sent in all attempts.
        ns: time in which at least one attempt was in progress.
        span_ns: time from the start of the first attempt to the end of the last attempt.
        by_server: whether the server sent a RST in any attempt.
        frames: first and last frame of each of the first `EVIDENCE_ATTEMPTS` attempts.
    """

    kind: str
    client: str
    server: str
    conn: int
    count: int
    syns: int
    ns: int
    span_ns: int
    by_server: bool
    frames: tuple[int, ...]


def groups(connections: pl.LazyFrame) -> list[Group]:
    """Return the groups that are large enough for a finding.

    Args:
        connections: rows of `schema.CONNECTIONS`. Some columns of failed connections are kept in memory.
    """
    col = pl.col
    kind = (
        pl.when(refused(pl.col))
        .then(pl.lit("refused"))
        .when(special_cases.unanswered(pl.col))
        .then(pl.lit("unanswered"))
        .otherwise(pl.lit("reset"))
    )
    taken_until = col("last_ts_ns").cum_max().shift(1)
    own_ns = (col("last_ts_ns") - pl.max_horizontal("first_ts_ns", taken_until)).clip(0)
    asked = {*_GROUP[:-1], "conn", "client_syn_segments", "server_rst_segments", "first_ts_ns", "last_ts_ns", *_FRAMES}
    asked |= {*kind.meta.root_names()}
    rows = connections.filter((FAILED | RESET) & ~capture_quality.has_jumped()).select(sorted(asked)).collect()
    if rows.is_empty():
        return []
    failed = (
        rows.lazy()
        .with_columns(kind=kind)
        .sort("first_ts_ns", "conn")
        .group_by(_GROUP, maintain_order=True)
        .agg(
            col("conn").first(),
            count=pl.len(),
            syns=col("client_syn_segments").sum(),
            ns=own_ns.sum(),
            span_ns=col("last_ts_ns").max() - col("first_ts_ns").min(),
            by_server=(col("server_rst_segments") > 0).any(),
            frames=pl.concat_list(*(col(name).head(EVIDENCE_ATTEMPTS) for name in _FRAMES)),
        )
    )
    worth = (col("count") >= MIN_TIMES) | ((col("kind") != "reset") & (col("ns") >= _WORTH_NS))
    lasting = pl.when(col("kind") != "reset").then("ns").otherwise(0)
    most = failed.filter(worth).top_k(MOST, by=[lasting, "count", "conn"], reverse=[False, False, True]).collect()
    return [_group(row) for row in most.sort(lasting, "count", "conn", descending=[True, True, False]).iter_rows(named=True)]


def _group(row: dict[str, Any]) -> Group:
    address = row["server_addr"]
    return Group(
        kind=row["kind"],
        client=row["client_addr"],
        server=f"[{address}]:{row['server_port']}" if ":" in address else f"{address}:{row['server_port']}",
        conn=row["conn"],
        count=row["count"],
        syns=row["syns"],
        ns=row["ns"] or 0,
        span_ns=row["span_ns"] or 0,
        by_server=row["by_server"],
        frames=tuple(sorted({frame for pair in row["frames"] for frame in pair})),
    )


def finding(group: Group, waits: Sequence[int]) -> Finding:
    """Return the finding on a group.

    Args:
        group: the failed attempts.
        waits: frames around the longest waits of the first attempt. With several attempts: around the longest wait only.
    """
    words, alone = WORDS[group.kind], group.count == 1
    again = group.syns - group.count
    times = numbers.times(again)
    values = {
        "client": "The client" if alone else group.client,
        "server": group.server,
        "count": f"{group.count:,}",
        "time": numbers.duration(group.ns),
        "for_time": f", for {numbers.duration(group.ns)}" if group.ns else "",
        "again": "" if not again else f" and retransmitted it {times}" if alone else f" {group.syns:,} times in {group.count:,} attempts",
        "who": "the server" if group.by_server else "the client",
    }
    costs = group.kind != "reset" and group.ns > 0
    share = group.ns / group.span_ns if costs else None
    return Finding(
        id=handshake.RULE.advice.finding if handshake.RULE.advice else CAUSE,
        severity=Severity.INFO if group.kind == "reset" and not group.by_server else severity_of(share or 0),
        confidence=Confidence.PROVED,
        conn=group.conn,
        from_client=True,
        cost_ns=group.ns if costs else None,
        cost_share=share,
        title=(words.alone if alone else words.together).format_map(values),
        mechanism=words.mechanism.format_map(values),
        evidence_frames=tuple(sorted({*group.frames, *waits})),
        limits=words.limits,
        remedy=words.remedy,
        predicted_gain=None,
        source=handshake.RULE.source,
        causes=frozenset({CAUSE}) if costs else frozenset(),
        connections=group.count,
    )
