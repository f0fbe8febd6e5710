"""The programs of the corpus as a table, grouped by what they do. An entry consists of a server command and a client command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus.programs.bulk import BULK
from tcptrace_lab.lab.corpus.programs.messages import BACKUP, MESSAGES
from tcptrace_lab.lab.corpus.programs.requests import REQUESTS
from tcptrace_lab.lab.corpus.programs.services import SERVICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.lab.corpus.programs.program import Program

PROGRAMS: Mapping[str, Program] = {**BULK, **REQUESTS, **MESSAGES, **BACKUP, **SERVICES}
