"""The bar of a direction shows its whole life. All shares are shares of the active time, so idle time has none."""

from __future__ import annotations

from tcptrace_lab import schema
from tcptrace_lab.report.parts.lost_time import bars

S = 1_000_000_000


def test_idle_time_is_shown_without_a_share_and_in_no_share() -> None:
    """The direction is active for 45 s and idle for 65 s.

    The cause peer takes 36 s, which is 80% of the active time and 33% of the bar. The network takes 9 s, which is 20% of the active time
    and 8% of the bar.
    """
    account = {f"{side}_{cause.replace('-', '_')}_ns": 0 for side in schema.SIDES for cause in schema.CAUSES}
    account |= {"client_idle_ns": 65 * S, "client_peer_ns": 36 * S, "client_network_ns": 9 * S}
    (bar,) = bars(account)
    assert bar["time"] == "45 s active (65 s idle)"
    assert [(part["cause"], part["of_active"]) for part in bar["parts"]] == [("idle", ""), ("peer", "80%"), ("network", "20%")]
    assert [round(110 * part["share"]) for part in bar["parts"]] == [65, 36, 9]


def test_the_bar_says_what_the_peer_did() -> None:
    """The client waits 36 s for the server. The server's application is silent for 34 s (94%), and in the second case for 30 s (83%)."""
    account = {f"{side}_{cause.replace('-', '_')}_ns": 0 for side in schema.SIDES for cause in schema.CAUSES}
    account |= {"client_peer_ns": 36 * S, "server_application_ns": 34 * S}
    assert bars(account)[0]["parts"][0]["name"] == "peer (the server's application was not sending)"
    account |= {"server_application_ns": 30 * S}
    assert bars(account)[0]["parts"][0]["name"] == "peer (waiting for the server)"
    assert bars(account)[1]["parts"][0]["name"] == "application"
