"""The properties that every analysis of a capture has, for modules that need no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl


class Captured(Protocol):
    """The attributes of an `Analysis` that describe the capture."""

    @property
    def name(self) -> str:
        """The capture's name for display."""

    @property
    def capture(self) -> Mapping[str, Any]:
        """The object `capture` of the JSON output: properties of the capture, and read errors."""

    @property
    def connections(self) -> pl.LazyFrame:
        """Rows of `schema.CONNECTIONS`; the table can be larger than memory."""

    @property
    def segments(self) -> pl.LazyFrame:
        """Rows of `schema.SEGMENTS`, in frame order; the table can be larger than memory."""
