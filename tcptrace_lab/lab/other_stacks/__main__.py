"""`python -m tcptrace_lab.lab.other_stacks`: makes transfers of another TCP stack. The stack's own state is stored next to the captures.

    python -m tcptrace_lab.lab.other_stacks -n 36                    the first 36 transfers of a seed by gVisor's netstack (root, Go)
    python -m tcptrace_lab.lab.other_stacks -n 36 --stack smoltcp    by smoltcp (root, Rust), which is held back

The transfers are stored in build/transfers/STACK/. `python -m tcptrace_lab.lab.corpus compare build/transfers/gvisor` compares them; for
smoltcp, add `--held-back`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.kernel_ledger.build import tracer
from tcptrace_lab.lab.other_stacks.making import make
from tcptrace_lab.lab.other_stacks.stacks import STACKS

FOLDER = Path(__file__).parents[3] / "build" / "transfers"


def main(arguments: list[str] | None = None) -> int:
    """Make the requested transfers. Return 0, or the exit code of the error."""
    parser = argparse.ArgumentParser(prog="python -m tcptrace_lab.lab.other_stacks", description="Transfers of another TCP stack.")
    parser.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where they go (default: build/transfers/STACK)")
    parser.add_argument("--stack", choices=STACKS, default="gvisor", help="the stack (default: gvisor)")
    parser.add_argument("-n", "--number", type=int, default=36, metavar="N", help="number of transfers (default: 36)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first transfer of this seed (default: 0)")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    stack = STACKS[options.stack]
    try:
        tracer()
        stack.program()
        wanted = range(options.first, options.first + options.number)
        for line in make(stack, options.folder or FOLDER / stack.name, options.seed, wanted):
            print(line, flush=True)  # noqa: T201
    except TcptraceLabError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
