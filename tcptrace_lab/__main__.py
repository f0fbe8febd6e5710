"""`python -m tcptrace_lab` runs the command `tcptrace-lab`."""

from __future__ import annotations

from tcptrace_lab.cli import main

if __name__ == "__main__":
    main()
