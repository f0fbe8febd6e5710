"""The input of a run as a mapping, from a TOML file or from command options. All keys are optional.

mss_bytes = 9148            # MSS that the path allows; or "9148"
no_slow_start = true        # the congestion window does not limit the sender before the first loss
until = "60s"

[client]                    # and [server]
stack = "sunos4"
send_buffer = "16K"
receive_buffer = "16K"
program = "10 * (write 8K/4K; read 1)"
nodelay = false             # cork, quickack
phase = "70ms"              # first tick of the periodic timers
host = "sparc-ipc"          # costs of a host of the papers (stacks.hosts)
[client.costs]              # nanoseconds: the fields of stacks.Costs; they override those of the host
write_call_ns = 50_000

[forward]                   # client to server; [backward] takes missing keys from [forward], but no loss
rate = "100M"
delay = "1ms"
framing = "atm"             # framing overhead on the link: ethernet, atm, bare
loss = 0.01                 # loss probability; `seed` seeds its random numbers
drop = [7, 8]               # packets of this direction that are lost, counted from 0
"""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tcptrace_lab.errors import UsageError
from tcptrace_lab.simulation.programs import program
from tcptrace_lab.stacks import STACKS, Costs, Host, Link, Setting, Stack
from tcptrace_lab.stacks.hosts import HOSTS
from tcptrace_lab.stacks.path import FRAMINGS
from tcptrace_lab.text.quantities import duration_ns, rate_bps, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = TypeVar("Value")

MIN_MSS_BYTES: Final = 1
MAX_MSS_BYTES: Final = 65_495
"""Largest MSS: 65,535 bytes of an IPv4 packet, minus the IP and TCP headers."""

_MSS_BYTES: Final = 1460
_UNTIL: Final = "3600s"
_CLIENT_PROGRAM: Final = "write 1M"
_SERVER_PROGRAM: Final = "read"


def declared(what: Mapping[str, Any]) -> Setting:
    """Convert a mapping to a `Setting`. Missing keys have defaults.

    Raises:
        UsageError: a key is unknown, or a value is invalid. The message contains the path of the key.
    """
    table = _Table("", what)
    forward = _link(table.table("forward"), Link())
    setting = Setting(
        client=_host(table.table("client"), _CLIENT_PROGRAM),
        server=_host(table.table("server"), _SERVER_PROGRAM),
        forward=forward,
        backward=_link(table.table("backward"), dataclasses.replace(forward, lost=frozenset(), loss=0.0)),
        mss_bytes=table.take("mss_bytes", _MSS_BYTES, _mss),
        no_slow_start=table.flag("no_slow_start"),
        until_ns=table.take("until", _UNTIL, _time),
    )
    table.end()
    return setting


def read(path: str) -> dict[str, Any]:
    """Read the mapping from a TOML file.

    Raises:
        UsageError: the file cannot be read or is not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"the setting cannot be read: {error.strerror}", where=path) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the setting is not TOML: {error}", where=path) from error


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two mappings by key.

    A value of `above` takes precedence, unless it is empty or False. Such a value means that the user did not give the option.
    """
    found = dict(below)
    for key, value in above.items():
        if isinstance(value, dict):
            found[key] = merged(found.get(key, {}), value)
        elif value:
            found[key] = value
    return found


def _host(table: _Table, steps: str) -> Host:
    host = Host(
        stack=table.take("stack", "linux", _stack),
        send_buffer_bytes=table.take("send_buffer", 0, _size),
        receive_buffer_bytes=table.take("receive_buffer", 0, _size),
        no_delay=table.flag("nodelay"),
        cork=table.flag("cork"),
        quick_ack=table.flag("quickack"),
        costs=_costs(table.table("costs"), table.take("host", "", _host_costs)),
        phase_ns=table.take("phase", "0s", _time),
        program=table.take("program", steps, lambda value: program(_text(value))),
    )
    table.end()
    return host


def _costs(table: _Table, default: Costs) -> Costs:
    costs = Costs(**{field.name: table.take(field.name, getattr(default, field.name), _number) for field in dataclasses.fields(Costs)})
    table.end()
    return costs


def _link(table: _Table, default: Link) -> Link:
    link = Link(
        rate_bps=table.take("rate", default.rate_bps, _rate),
        propagation_ns=table.take("delay", f"{default.propagation_ns}ns", _time),
        framing=table.take("framing", default.framing, _framing),
        lost=frozenset(table.take("drop", sorted(default.lost), _numbers)),
        loss=table.take("loss", default.loss, _share),
        seed=table.take("seed", default.seed, _number),
    )
    table.end()
    return link


class _Table:
    """Reads a mapping key by key. `end` rejects the keys that were not read."""

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        self._path = path
        self._left = dict(values)
        self._known: list[str] = []

    def take(self, key: str, default: Any, read: Callable[[Any], Value]) -> Value:  # noqa: ANN401  (any type that a user can write)
        self._known.append(key)
        try:
            return read(self._left.pop(key, default))
        except (ValueError, TypeError) as error:
            raise UsageError(f"{self._path}{key}: {error}") from None
        except UsageError as error:
            raise UsageError(f"{self._path}{key}: {error.what}", remedy=error.remedy) from None

    def flag(self, key: str) -> bool:
        return self.take(key, default=False, read=_flag)

    def table(self, key: str) -> _Table:
        self._known.append(key)
        values = self._left.pop(key, {})
        if not isinstance(values, dict):
            raise UsageError(f"{self._path}{key} is a table, not {values!r}")
        return _Table(f"{self._path}{key}.", values)

    def end(self) -> None:
        for key in self._left:
            near = difflib.get_close_matches(key, self._known, n=1)
            raise UsageError(f"{self._path}{key} is not a setting of a run", remedy=f"use {', '.join(near or self._known)}")


def _stack(value: object) -> Stack:
    if value not in STACKS:
        raise UsageError(f"unknown stack {value!r}", remedy=f"use {', '.join(STACKS)}")
    return STACKS[str(value)]


def _host_costs(value: object) -> Costs:
    if value == "":
        return Costs()
    if value not in HOSTS:
        raise UsageError(f"unknown host {value!r}", remedy=f"use {', '.join(HOSTS)}")
    return HOSTS[str(value)]


def _framing(value: object) -> str:
    if value not in FRAMINGS:
        raise UsageError(f"unknown framing {value!r}", remedy=f"use {', '.join(FRAMINGS)}")
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a whole number from 0 on")
    return value


def _numbers(value: object) -> list[int]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of whole numbers")
    return [_number(item) for item in value]


def _size(value: object) -> int:
    return size_bytes(value) if isinstance(value, str) else _number(value)


def _rate(value: object) -> int:
    return rate_bps(value) if isinstance(value, str) else _number(value)


def _time(value: object) -> int:
    if not isinstance(value, str):
        raise TypeError(f'{value!r} is not a time with its unit, as "10ms"')
    return duration_ns(value)


def _mss(value: object) -> int:
    mss = _size(value)
    if not MIN_MSS_BYTES <= mss <= MAX_MSS_BYTES:
        raise ValueError(f"{mss} is not between {MIN_MSS_BYTES} and {MAX_MSS_BYTES}")
    return mss


def _share(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1:
        raise ValueError(f"{value!r} is not a probability (0 up to, but not including, 1)")
    return float(value)
