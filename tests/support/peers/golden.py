"""Files in `golden/`."""

from __future__ import annotations

from tests.support.places import ROOT

GOLDEN = ROOT / "tests" / "golden" / "tcptrace-deviations.tsv"
