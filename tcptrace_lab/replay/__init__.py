"""Replays a captured connection: sends its frames on an interface, runs its applications over real sockets, or simulates it.

Replaying the application behaviour, in reading order:

- `schedule`: what both applications did (writes, reads, pauses), as editable data;
- `evidence`: the data of the connection, extracted from the capture; `reader_pauses`: pauses of a slow reader, from its advertised windows;
  `losses`: packets that the path lost; `reconstruct`: capture → schedule;
- `changes`: changes that can be applied to a schedule;
- `socket_replay`: runs one end of a schedule over a real socket; `namespace_replay`: runs both ends in network namespaces;
- `side_by_side`: compares the original with its replays; `transfer`: runs all of these (`replay transfer`).

Other replays:

- `packets/`: sends the captured frames on an interface;
- `whatif`: simulates the schedule with the models of `stacks`, also with changed settings (`model`: schedule → simulation,
  `fit_candidates`: settings that a capture does not show, `gains`: `analyze --whatif`);
- `reproducers/`: makes a minimal reproducer. `stall_oracle` and `shrink` find the smallest schedule that still shows the stall;
  `python_script` and `packetdrill` write this schedule to files, and `standalone` is the script that users receive. `reproducer` runs all
  of these.
"""
