"""Converts the model's ledger and counters of a run to JSON.

A diagnosis of the capture can be compared with these true causes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.simulation.capture import BASE_NS
from tcptrace_lab.simulation.frames import CLIENT, SERVER
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from tcptrace_lab.simulation.frames import End
    from tcptrace_lab.stacks import Host, Run, Setting, Side

SCHEMA_VERSION: Final = 2


def truth_document(run: Run, setting: Setting) -> dict[str, Any]:
    """Return the true causes and counters of a run, as JSON values. Times are nanoseconds since 1970, as in the capture.

    The JSON Schema is `truth.schema.json` in the package.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "mss_bytes": setting.mss_bytes,
        "first_ts_ns": BASE_NS + (run.packets[0].sent_ns if run.packets else 0),
        "end_ts_ns": BASE_NS + run.end_ns,
        "packets": len(run.packets),
        "lost_packets": {direction: sum(p.arrived_ns is None for p in run.packets if p.from_client == up) for direction, up in _DIRECTIONS},
        "retransmits": {direction: sum(bool(p.resent_for) for p in run.packets if p.from_client == up) for direction, up in _DIRECTIONS},
        "client": _host(setting.client, run.client, CLIENT),
        "server": _host(setting.server, run.server, SERVER),
        "ledger_s": {direction: _sums(run, from_client=up) for direction, up in _DIRECTIONS},
        "ledger": [
            {"from_client": hold.from_client, "start_ns": BASE_NS + hold.start_ns, "end_ns": BASE_NS + hold.end_ns, "cause": hold.cause}
            for hold in run.truth
        ],
    }


_DIRECTIONS: Final = (("client_to_server", True), ("server_to_client", False))


def _host(host: Host, side: Side, end: End) -> dict[str, Any]:
    return {
        "addr": ".".join(map(str, end.address)),
        "port": end.port,
        "stack": host.stack.name,
        "mss_bytes": side.mss_bytes,
        "send_buffer_bytes": side.send_buffer_bytes,
        "receive_buffer_bytes": side.receive_buffer_bytes,
        "nodelay": host.no_delay,
        "finished": side.done,
        "cpu_s": side.busy_ns / NS_PER_S,
        "segments_sent": side.segments_out,
        "segments_received": side.segments_in,
        "marks": [{"name": name, "ts_ns": BASE_NS + at_ns} for name, at_ns in side.marks],
    }


def _sums(run: Run, *, from_client: bool) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for hold in run.truth:
        if hold.from_client == from_client:
            sums[hold.cause] += hold.end_ns - hold.start_ns
    return {cause: spent_ns / NS_PER_S for cause, spent_ns in sums.most_common()}
