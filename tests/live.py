"""What tests with live transfers share: they need root, which CI has; elsewhere they are skipped."""

from __future__ import annotations

import os

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0 and os.environ.get("CI") != "true", reason="builds network namespaces, which needs root")
