"""Graphs for xplot, as tcptrace draws them (`-S -T -R -N -F`): five files for each direction of each connection.

`write` goes over the segments once, in capture order. What a direction's graphs remember is let go of when its connection is over, and
text is written in parts, so memory is bounded by the connections that are open at a time.
"""

from tcptrace_lab.outputs.xplot.files import write

__all__ = ["write"]
