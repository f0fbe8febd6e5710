"""The TCP stacks other than Linux, with everything that the lab needs for each stack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, HELD_BACK
from tcptrace_lab.lab.other_stacks import build
from tcptrace_lab.lab.other_stacks.gvisor_truth import GvisorSender
from tcptrace_lab.lab.other_stacks.scripts import KINDS, SMOLTCP_KINDS, with_every_setting
from tcptrace_lab.lab.other_stacks.smoltcp_truth import SmoltcpSender

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from random import Random

    from tcptrace_lab.lab.other_stacks.scripts import Script
    from tcptrace_lab.lab.other_stacks.truth import Sender


@dataclass(frozen=True, slots=True)
class Stack:
    """A TCP stack in a program of its own.

    Attributes:
        name: prefix of the names of this stack's programs, families and transfer folders.
        part: the part of the corpus to which its transfers belong.
        program: compiles the program if needed, and returns the program's path.
        sender: makes a sender with the rules of this stack, with or without Nagle's algorithm.
        controls: congestion controls that the stack supports.
        kinds: function that draws the script, for each kind of transfer.
        settings: draws the settings that the kind leaves open; None: the stack's defaults are used.
    """

    name: str
    part: str
    program: Callable[[], Path]
    sender: Callable[[bool], Sender]
    controls: tuple[str, ...]
    kinds: Mapping[str, Callable[[int | None, Random], Script]]
    settings: Callable[[str, Script, Random], Script] | None = None


STACKS = {
    stack.name: stack
    for stack in (
        Stack("gvisor", DEVELOPMENT, build.gvisor, GvisorSender, ("reno", "cubic"), KINDS),
        Stack("smoltcp", HELD_BACK, build.smoltcp, SmoltcpSender, ("reno", "cubic", "none"), SMOLTCP_KINDS, with_every_setting),
    )
}
"""The stacks by name. No rule of the engine is developed with smoltcp, because it is held back."""
