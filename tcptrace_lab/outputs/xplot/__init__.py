"""Graphs for xplot, as tcptrace draws them (options `-S -T -R -N -F`): five files for each direction of each connection.

`write` reads the segments once, in capture order, and writes text in slices. It frees the state of a connection after its last segment, so
that memory depends on the number of simultaneously open connections.
"""

from tcptrace_lab.outputs.xplot.files import write

__all__ = ["write"]
