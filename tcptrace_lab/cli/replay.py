"""`tcptrace-lab replay`: its commands, each in a file of its own."""

from __future__ import annotations

import typer

from tcptrace_lab.cli import replay_packets, replay_script, replay_transfer, replay_whatif

app = typer.Typer(
    help="Replay the packets or transfers of a capture, and predict the effect of changes.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.command("packets")(replay_packets.packets)
app.command("transfer")(replay_transfer.transfer)
app.command("whatif")(replay_whatif.whatif)
app.command("script")(replay_script.script)
