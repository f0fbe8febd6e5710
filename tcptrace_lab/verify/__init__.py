"""Our tables held against tshark and tcptrace on the same file: what is the same, what is not, and why.

    programs                      other programs, run safely and read line by line
    tshark, tcptrace              what they say, as tables
    pairing, fields, ours         our segments and tshark's side by side, in the same terms
    wireshark                     how tshark comes to its verdicts
    segments, figures             segment by segment (tshark), figure by figure (tcptrace)
    differences, rules            what differs, and what explains it
    run, output                   the road from a file to a `Verification`, and its JSON

A difference is explained by a rule about a thing the other tool is known to do, with a test on this capture that says how it came
about here. There is no rule for the rest: what no rule explains is counted as unexplained, and may be our mistake.
"""

from __future__ import annotations

from tcptrace_lab.verify.run import TOOLS, Verification, verify

__all__ = ["TOOLS", "Verification", "verify"]
