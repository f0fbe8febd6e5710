"""`verify`: compares our results with those of tshark and tcptrace on the same file, and explains each difference.

    analyzers                     runs the other tools safely, and reads their output line by line
    tshark, tcptrace              the results of these tools, as tables
    pairing, fields, our_verdicts our segments and tshark's side by side, in tshark's terms
    wireshark_model               a model of how tshark reaches its verdicts
    tcptrace_model                a model of how tcptrace computes its figures (also `tcptrace_sequence_model`, `model_figures`)
    segments, figures             the comparison per segment (tshark), and per figure of a connection (tcptrace)
    differences, rules            the differences, and the rules that explain them
    run, output                   from a file to a `Verification`, and its JSON

A rule describes a known behaviour of the other tool, and tests whether this behaviour caused the difference in this capture. If no rule
explains a difference, it counts as unexplained, because we are possibly wrong.
"""

from __future__ import annotations

from tcptrace_lab.verify.run import TOOLS, Verification, verify

__all__ = ["TOOLS", "Verification", "verify"]
