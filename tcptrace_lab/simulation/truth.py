"""The model's ledger and counters of a run as JSON: the true causes, with which a diagnosis of the capture can be compared."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.simulation.capture import BASE_NS
from tcptrace_lab.simulation.frames import CLIENT, SERVER
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from tcptrace_lab.simulation.frames import End
    from tcptrace_lab.stacks import Host, Run, Setting, Side

TRUTH_VERSION: Final = 1


def truth_document(run: Run, setting: Setting) -> dict[str, Any]:
    """The truth about a run, ready for JSON. Times are nanoseconds since 1970, as in the capture.

    Keys: `client`, `server` (address, stack, buffers and MSS in use, counters, marks), `ledger` (contiguous intervals of each direction,
    as seen at its sender), `ledger_s` (seconds per cause and direction), `resent` (retransmitted segments per direction), `lost` (lost
    packets per direction), `mss_bytes`, `packets`, `first_ts_ns`, `end_ts_ns`.
    """
    return {
        "truth_version": TRUTH_VERSION,
        "mss_bytes": setting.mss_bytes,
        "first_ts_ns": BASE_NS + (run.packets[0].sent_ns if run.packets else 0),
        "end_ts_ns": BASE_NS + run.end_ns,
        "packets": len(run.packets),
        "lost": {direction: sum(p.arrived_ns is None for p in run.packets if p.from_client == up) for direction, up in _DIRECTIONS},
        "resent": {direction: sum(bool(p.resent_for) for p in run.packets if p.from_client == up) for direction, up in _DIRECTIONS},
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
        "done": side.done,
        "busy_s": side.busy_ns / NS_PER_S,
        "segments_out": side.segments_out,
        "segments_in": side.segments_in,
        "marks": [{"name": name, "ts_ns": BASE_NS + at_ns} for name, at_ns in side.marks],
    }


def _sums(run: Run, *, from_client: bool) -> dict[str, float]:
    sums: Counter[str] = Counter()
    for hold in run.truth:
        if hold.from_client == from_client:
            sums[hold.cause] += hold.end_ns - hold.start_ns
    return {cause: spent_ns / NS_PER_S for cause, spent_ns in sums.most_common()}
