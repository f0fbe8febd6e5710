"""A parser of HTML pages, and attack text that must not become markup."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onmouseover='alert(3)' &lt;{{ 7 * 7 }}\u2028\u202e"


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append((tag, dict(attrs)))
        self._script = tag == "script"
        if self._script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        """Record the end of a script."""
        self._script = self._script and tag != "script"

    def handle_data(self, data: str) -> None:
        """Collect text."""
        if self._script:
            self.scripts[-1] += data
        else:
            self.text += data
