"""Skip Typer's conversion of parameters that are plain strings.

Typer converts every parameter with pydantic, which takes longer to import than the engine. Most parameters are strings or not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typer._click.core import Context
from typer._coercion import RuntimeParam, build_runtime_param

if TYPE_CHECKING:
    from typer._click.core import Command
    from typer._coercion import TypeDescriptor
    from typer.core import _TyperParameter


@dataclass(frozen=True)
class _OnDemand(RuntimeParam):
    """A parameter that Typer converts only if it is given and not a plain string."""

    descriptor: TypeDescriptor

    def _coerce_value(self, value: Any, param: _TyperParameter, ctx: Context) -> Any:  # noqa: ANN401  (what Typer's own says)
        if self.parameter_info.parser is None and self.annotation is str and isinstance(value, str):
            return value
        if self.parameter_info.parser is None and self.annotation == list[str] and all(isinstance(word, str) for word in value):
            return list(value)
        return build_runtime_param(self.descriptor).coerce(value, param, ctx)


def convert_on_demand(command: Command) -> None:
    """Let Typer convert the parameters of `command`, and of its subcommands, only where needed (`_OnDemand`)."""
    parameters: list[Any] = command.get_params(Context(command))  # with --help
    for parameter in parameters:
        descriptor = parameter.type_descriptor
        parameter._runtime_param = _OnDemand(descriptor.parameter_info, descriptor.annotation, descriptor)  # noqa: SLF001
    for inner in getattr(command, "commands", {}).values():
        convert_on_demand(inner)
