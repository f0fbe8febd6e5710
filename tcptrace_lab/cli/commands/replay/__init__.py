"""The commands of `tcptrace-lab replay`, one module each."""

from __future__ import annotations

import typer

from tcptrace_lab.cli.commands.replay import packets, script, transfer, whatif

app = typer.Typer(
    help="Replay packets or transfers, and predict the effect of changes.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.command("packets")(packets.packets)
app.command("transfer")(transfer.transfer)
app.command("whatif")(whatif.whatif)
app.command("script")(script.script)
