"""Escaping of text from outside for a terminal or for Markdown. Such text is a file name, an address, or a message of another tool."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories of characters that move the cursor, change the writing direction, or are invisible."""

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
"""Characters that have a meaning in Markdown (GitHub Flavored Markdown, 2.4, and its tables)."""

_LIST = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s|$)")
"""Markers that start a list item."""

_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\b(www)\.")
"""Prefixes that GitHub turns into a link without markup (GitHub Flavored Markdown, 6.9)."""

_MENTION = re.compile(r"@(?=\w)")
_NOTHING = "<!-- -->"
"""An empty comment. It is invisible, but splits a word that GitHub would turn into a link."""

BAR = "\\|"

_BACKTICKS = re.compile(r"`+")


def printable(text: str) -> str:
    """Return `text` on one line, safe for a terminal: invisible characters become escapes."""
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _HIDDEN else character for character in text
    )


def markdown(text: str) -> str:
    """Escape `text` so that Markdown shows it literally: no markup, no link, no mention."""
    escaped = _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", printable(text)))
    escaped = _LINK.sub(lambda found: f"{found[1] or found[2]}{_NOTHING}{':' if found[1] else '.'}", escaped)
    return _MENTION.sub(f"@{_NOTHING}", escaped)


def markdown_code(text: str, *, in_table: bool = False) -> str:
    """Return `text` as a code span.

    The fence has more backticks than any run of backticks in the text. In a table, vertical bars are escaped even inside the code span.
    """
    shown = printable(text) or " "
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown.replace('|', BAR) if in_table else shown}{pad}{fence}"
