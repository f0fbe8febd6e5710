"""The program: its commands, exit codes, and the output of errors.

Every error is one line on stderr, `tcptrace-lab: <what>: <where>; <what to do>`. `--debug` adds the traceback. `errors` lists the exit
codes.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab import errors
from tcptrace_lab.cli import guide
from tcptrace_lab.cli.parameters import adapt
from tcptrace_lab.cli.terminal import PROGRAM, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMMANDS = ("analyze", "annotate", "batch", "capture", "compare", "export", "predict", "simulate", "verify", "view")
"""Commands. The function of a command has the name of its module."""

GROUPS = ("archive", "replay", "lab")
"""Groups of commands. The module with the name of the group contains its `app`."""

COMPLETION = "_TCPTRACE_LAB_COMPLETE"
"""Environment variable with which a shell requests completions. Typer derives the variable's name from the name of the program."""


def _tell_version(asked: bool) -> None:  # noqa: FBT001  (Typer passes flags by position)
    if asked:
        from importlib.metadata import version  # noqa: PLC0415  (takes 20 ms to import; only `--version` needs it)

        typer.echo(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


class Shell(StrEnum):
    """The shells that `--show-completion` supports."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        from typer._completion_shared import get_completion_script  # noqa: PLC0415  (nothing else needs it)

        typer.echo(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION, shell=shell))
        raise typer.Exit


def _program(
    _version: Annotated[bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Print the version and exit.")] = False,
    _completion: Annotated[
        Shell | None,
        typer.Option("--show-completion", callback=_show_completion, is_eager=True, help="Print the completion script for this shell."),
    ] = None,
) -> None:
    """Options before a command."""


def app(names: Iterable[str] = (*COMMANDS, *GROUPS)) -> typer.Typer:
    """Return the program with these commands and groups. Only their modules are imported."""
    program = typer.Typer(
        name=PROGRAM,
        help="Find out from packet captures why TCP transfers are slow, and what to change.",
        epilog="Exit codes: 0 done, 1 finding at or above --fail-on, 2 usage, 3 not a capture or unreadable, "
        "4 partly read, 5 a tool is missing, 70 internal error.",
        rich_markup_mode=None,  # plain help, because importing Rich would take longer than everything else
        add_completion=False,  # --install-completion would edit the shell's startup files; `--show-completion` prints the text for them
        pretty_exceptions_enable=False,
    )
    program.callback()(_program)
    for name in names:
        module = import_module(f"tcptrace_lab.cli.commands.{name}")
        if name in GROUPS:
            program.add_typer(module.app, name=name)
        else:
            program.command()(getattr(module, name))
    guide.tell(program)
    return program


def _called(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command that `arguments` name. For help and completion, or if they name no command, return all commands."""
    all_commands = (*COMMANDS, *GROUPS)
    first = arguments[0] if arguments and COMPLETION not in os.environ else ""
    return (first,) if first in all_commands else all_commands


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Raises nothing."""
    if COMPLETION in os.environ:
        from typer._completion_classes import completion_init  # noqa: PLC0415  (only shell completion needs it)

        completion_init()
    try:
        if not arguments and COMPLETION not in os.environ:
            sys.stdout.write(guide.FIRST_STEPS)
            sys.stdout.flush()
            return errors.EXIT_DONE
        command = typer.main.get_command(app(_called(arguments)))
        adapt(command)
        code: int | None = command(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except SystemExit as done:  # Typer raises it after printing completions, and for a broken pipe
        return int(done.code or 0) if COMPLETION in os.environ else _reader_gone()
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return errors.EXIT_INTERRUPTED
    except BaseException as error:  # noqa: BLE001  (a panic of the engine is not an Exception; only `--debug` shows a traceback)
        return _report_error(error, debug="--debug" in arguments)
    return code or errors.EXIT_DONE


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors which mean that standard output is redirected to a full disk. Other outputs raise errors of their own (`output`)."""


def _report_error(error: BaseException, *, debug: bool) -> int:
    """Print the error in one line and return its exit code."""
    if debug:
        import traceback  # noqa: PLC0415

        traceback.print_exception(error)
    if isinstance(error, errors.TcptraceLabError):
        say(str(error))
        return error.exit_code
    if isinstance(error, typer.TyperException):
        return _report_usage_error(error)
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        refused = errors.OutputUnwritable.from_os(error, "standard output", "name another place")
        say(str(refused))
        return refused.exit_code
    say(f"internal error: {type(error).__name__}: {error}; please report it, with the output of --debug")
    return errors.EXIT_DEFECT


def _report_usage_error(error: typer.TyperException) -> int:
    """Print a usage error. For a group without a command, the error contains the group's help."""
    words = error.format_message()
    if words.lstrip().startswith("Usage:"):
        typer.echo(words, err=True)
        return errors.EXIT_USAGE
    context = getattr(error, "ctx", None)
    say(f"{plain(words).rstrip('.')}; {context.command_path if context else PROGRAM} --help shows how")
    return errors.EXIT_USAGE


_PLAIN = (
    (re.compile(r"Value error, "), ""),
    (re.compile(r"Input should be a valid integer\b.*"), "it must be a whole number"),
    (re.compile(r"Input should be a valid number\b.*"), "it must be a number"),
    (re.compile(r"Input should be greater than or equal to (\S+)"), r"it must be \1 or more"),
    (re.compile(r"Input should be less than or equal to (\S+)"), r"it must be \1 or less"),
)
"""Message of the option parser → the text that replaces it."""


def plain(message: str) -> str:
    """Return the message of a usage error in the wording of tcptrace-lab."""
    for words, ours in _PLAIN:
        message = words.sub(ours, message)
    return message


def _reader_gone() -> int:
    """Exit quietly if the reader of stdout has closed the pipe. stdout is redirected, so that the final flush succeeds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return errors.EXIT_BROKEN_PIPE
