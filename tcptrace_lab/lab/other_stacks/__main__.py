"""`python -m tcptrace_lab.lab.other_stacks`: makes transfers of gVisor's netstack. The stack's own state is stored next to the captures.

    python -m tcptrace_lab.lab.other_stacks -n 36              the first 36 transfers of a seed (needs root and Go)

The transfers are stored in build/transfers/gvisor/. `python -m tcptrace_lab.lab.corpus compare build/transfers/gvisor` compares them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.kernel_ledger.build import tracer
from tcptrace_lab.lab.other_stacks.build import gvisor
from tcptrace_lab.lab.other_stacks.making import STACK, make

FOLDER = Path(__file__).parents[3] / "build" / "transfers" / STACK


def main(arguments: list[str] | None = None) -> int:
    """Make the requested transfers. Return 0, or the exit code of the error."""
    parser = argparse.ArgumentParser(prog="python -m tcptrace_lab.lab.other_stacks", description="Transfers of gVisor's netstack.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    parser.add_argument("-n", "--number", type=int, default=36, metavar="N", help="number of transfers (default: 36)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first transfer of this seed (default: 0)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    try:
        tracer()
        gvisor()
        for line in make(options.folder, options.seed, range(options.first, options.first + options.number)):
            print(line, flush=True)  # noqa: T201
    except TcptraceLabError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
