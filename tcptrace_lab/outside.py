"""Text from outside (file names, addresses, words of other programs), made safe for where it is shown: a terminal, or Markdown."""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that can move the cursor, turn the writing direction, or are no characters at all."""

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
"""What Markdown may take for its own (GitHub Flavored Markdown, 2.4, and its tables)."""

_LIST = re.compile(r"^(\s*)([-+]|\d+[.)])(?=\s|$)")
"""What begins a list."""

_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp):|\b(www)\.")
"""What GitHub makes a link of where it stands by itself (6.9)."""

_MENTION = re.compile(r"@(?=\w)")
_NOTHING = "<!-- -->"
"""An empty comment: shown as nothing, and parts a word that GitHub would make a link of."""

BAR = "\\|"

_BACKTICKS = re.compile(r"`+")


def printable(text: str) -> str:
    """`text` on one line, safe for a terminal: what is not visible is written as an escape."""
    return "".join(
        character.encode("unicode_escape").decode() if unicodedata.category(character) in _HIDDEN else character for character in text
    )


def markdown(text: str) -> str:
    """`text` as Markdown that shows it as it is: no markup, no link, no mention of anybody."""
    escaped = _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", printable(text)))
    escaped = _LINK.sub(lambda found: f"{found[1] or found[2]}{_NOTHING}{':' if found[1] else '.'}", escaped)
    return _MENTION.sub(f"@{_NOTHING}", escaped)


def markdown_code(text: str, *, in_table: bool = False) -> str:
    """`text` as a code span, with more backticks around it than are in it; bars end a table's cell even there, unless they are escaped."""
    shown = printable(text) or " "
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown.replace('|', BAR) if in_table else shown}{pad}{fence}"
