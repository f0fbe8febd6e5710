"""Events of kernel sockets, written by hand, for tests of the kernel's ledger.

The sender's MSS is 1,000 bytes, and its first sequence number is 0.
"""

from __future__ import annotations

from tcptrace_lab.lab.kernel_ledger.sockets import Endpoint, Event, Life

MS = 1_000_000
MSS = 1_000
CLIENT, SERVER = Endpoint("192.0.2.1", 40_001), Endpoint("192.0.2.2", 5_001)


def event(at_ms: float, kind: str, **fields: int) -> Event:
    """Return an event of an established sender.

    By default, nothing limits the sender: the window is 1 MB, and the congestion window is 100 segments.
    """
    return Event(round(at_ms * MS), kind, **{"mss_cache": MSS, "snd_wnd": 1_000_000, "snd_cwnd": 100, **fields})


def sending(unsent: int, flight: int, **fields: int) -> dict[str, int]:
    """Return the fields of a sender with `flight` bytes in flight, in full segments.

    The last buffer of its queue has `unsent` bytes.
    """
    queue = {"write_seq": flight + unsent, "unsent_skb_bytes": unsent, "unsent_marks": 1 if unsent else 0}
    return {"snd_una": 0, "snd_nxt": flight, "packets_out": -(-flight // MSS), **queue, **fields}


def client(*events: Event) -> Life:
    """Return the events of the client's socket, which opened the connection."""
    return Life(CLIENT, SERVER, is_client=True, events=list(events))


def server(*events: Event) -> Life:
    """Return the events of the server's socket, at the other end."""
    return Life(SERVER, CLIENT, is_client=False, events=list(events))
