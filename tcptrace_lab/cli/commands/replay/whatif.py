"""`tcptrace-lab replay whatif`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.cli.commands.replay import options
from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import interrupts, output
from tcptrace_lab.text.numbers import duration_s

if TYPE_CHECKING:
    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import Schedule
    from tcptrace_lab.replay.whatif import WhatIf


def whatif(
    capture: options.Capture = "",
    connection: options.Connection = None,
    nodelay: options.NoDelay = False,
    quickack: options.QuickAck = False,
    send_buffer: options.SendBuffer = "",
    receive_buffer: options.ReceiveBuffer = "",
    eager_reader: options.EagerReader = False,
    no_thinking: options.NoThinking = False,
    lossless: options.Lossless = False,
    delay: options.Delay = "",
    rate: options.Rate = "",
    json_path: options.Json = None,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Predict the effect of changes on a transfer. Models of both TCP stacks must first reproduce the original.

    The output lists the saving (with a range) of each change and of all changes together, largest first. If no model reproduces the
    original, nothing is predicted. Without options for changes, the remedies that the findings name are tried.
    """
    changed = options.changes(
        nodelay=nodelay, quickack=quickack, send_buffer=send_buffer, receive_buffer=receive_buffer, eager_reader=eager_reader,
        no_thinking=no_thinking, lossless=lossless, delay=delay, rate=rate,
    )  # fmt: skip
    options.check_capture(capture)
    if json_path is not None:
        output.check(json_path, [capture])
    with activity("reading", quiet=quiet) as shown, interrupts.raised():
        from tcptrace_lab.replay.evidence import gather  # noqa: PLC0415
        from tcptrace_lab.replay.reconstruct import reconstruct  # noqa: PLC0415
        from tcptrace_lab.replay.whatif import predict  # noqa: PLC0415

        hidden = anonymizer(anonymize_key, wanted=anonymize)
        evidence = gather([capture], connection, anonymizer=hidden, progress=shown.segments, say=None if quiet else say)
        schedule = reconstruct(evidence)
        shown.doing("fitting the model")
        asked = _alone_and_together(changed or _remedy(evidence, schedule))
        predicted = predict(evidence, schedule, asked)
    if json_path is not None:
        output.write_json(json_path, predicted.to_dict())
    if not quiet and json_path != output.STDOUT:
        _show(predicted)
    return EXIT_DONE


def _alone_and_together(changed: Changes) -> list[Changes]:
    each = list(changed.one_by_one())
    return each if len(each) == 1 else [*each, changed]


def _remedy(evidence: Evidence, schedule: Schedule) -> Changes:
    from tcptrace_lab.replay.changes import remedy  # noqa: PLC0415
    from tcptrace_lab.replay.side_by_side import original_figures, stall  # noqa: PLC0415

    captured_stall = stall(original_figures(evidence))
    if captured_stall is None:
        raise UsageError("no fixable cause in this transfer", remedy="give the changes to try, such as --nodelay")
    return remedy(schedule, captured_stall.family)


def _show(predicted: WhatIf) -> None:
    from rich.text import Text  # noqa: PLC0415

    from tcptrace_lab.cli.console import console, plain_table  # noqa: PLC0415

    out, table, fitted = console(), plain_table(), predicted.fitted
    original, modelled = (duration_s(one.duration_s) for one in (fitted.original, fitted.modelled))
    out.print(Text(f"The original took {original}; the model ({fitted.fit.stack}) takes {modelled} ({fitted.duration_error:+.1%})."))
    out.print(Text(f"The model assigns {fitted.ledger_error:.1%} of the time to other causes than the capture's ledger does."))
    for heading in ("with", "predicted", "range", "saves"):
        table.add_column(heading, justify="left" if heading == "with" else "right", overflow="fold")
    for one in predicted.predictions:
        saved = duration_s(abs(one.saved_s))
        spread = f"{duration_s(one.min_duration_s)} to {duration_s(one.max_duration_s)}"
        table.add_row(one.changes.words(), duration_s(one.duration_s), spread, saved if one.saved_s >= 0 else f"−{saved}")
    out.print(table)
