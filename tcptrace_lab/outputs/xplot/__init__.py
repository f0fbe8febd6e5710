"""Graphs for xplot, as tcptrace draws them (`-S -T -R -N -F`): five files for each direction of each connection.

`write` reads the segments once, in capture order. It writes text in slices and frees a connection's state after its last segment, so the
number of simultaneously open connections bounds its memory.
"""

from tcptrace_lab.outputs.xplot.files import write

__all__ = ["write"]
