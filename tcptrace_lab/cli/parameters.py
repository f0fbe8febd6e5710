"""Stops Typer from converting plain strings and defaults, and from adding types and brackets to the names of parameters in help.

Typer converts every parameter with pydantic, which takes longer to import than the engine. Most parameters need no conversion: they are
strings, or are not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from typer._click.core import Context
from typer._coercion import RuntimeParam, build_runtime_param

if TYPE_CHECKING:
    from typer._click.core import Command
    from typer._coercion import TypeDescriptor
    from typer.core import _TyperParameter


@dataclass(frozen=True)
class _OnDemand(RuntimeParam):
    """A parameter that Typer converts only if needed. Plain strings and defaults already have the declared type."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: _TyperParameter, ctx: Context) -> Any:  # noqa: ANN401  (what Typer's own says)
        if self.parameter_info.parser is None and type(value) is self.annotation:
            return value
        if self.parameter_info.parser is None and self.annotation == list[str] and all(isinstance(word, str) for word in value):
            return list(value)
        return build_runtime_param(self.descriptor).coerce(value, param, ctx)


def adapt(command: Command) -> None:
    """Convert the parameters of `command` and of its subcommands only where needed (`_OnDemand`), and show their names as declared."""
    context = Context(command)
    parameters: list[Any] = command.get_params(context)  # includes --help
    for parameter in parameters:
        descriptor = parameter.type_descriptor
        parameter._runtime_param = _OnDemand(descriptor.parameter_info, descriptor.annotation, descriptor)  # noqa: SLF001
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None  # noqa: ARG005  (FILE, not FILE <list[str]>)
            parameter._usage_display_name = partial(_usage_name, parameter)  # noqa: SLF001
        elif descriptor.is_choice and parameter.metavar is None:
            parameter.metavar = "|".join(descriptor.choices)
    for inner in getattr(command, "commands", {}).values():
        adapt(inner)


def _usage_name(argument: Any) -> str:  # noqa: ANN401  (Typer's own class)
    """Return the name in the usage line: FILE, FILE... or [FILE]. A name with `…` already shows that it can be repeated."""
    name = argument.display_name_raw
    name += "..." if argument.nargs != 1 and "…" not in name else ""
    return name if argument.required or name.startswith("[") else f"[{name}]"
