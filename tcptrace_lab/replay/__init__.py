"""Replay a captured connection: its frames, its application behaviour over real sockets, its simulation under other settings, a reproducer.

Replaying the application behaviour, in reading order:

- `schedule`: what both applications did (writes, reads, pauses), as editable data;
- `evidence`: what is taken from the capture; `reading`: pauses of a slow reader, from its advertised windows; `losses`: packets that the
  path lost; `reconstruct`: capture → schedule;
- `ends`: runs one end of a schedule over a real socket; `private`: runs both ends in network namespaces;
- `laid`: compares the original with its replays.

Other replays:

- `packets`: sends the captured frames on an interface;
- `whatif`: simulates the schedule with the models of `stacks`, also with changed settings;
- `script`: writes a minimal reproducer. `showing` and `shrink` find the smallest schedule that still shows the problem, `reproducer` and
  `drill` write it to files, and `standalone` is the script that users receive.
"""
