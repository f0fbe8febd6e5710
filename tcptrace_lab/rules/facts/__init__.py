"""The words that rules are written in: Polars expressions over one departure and what is known of its direction.

A departure is a row of `schema.SEGMENTS` with data, SYN or FIN; `ledger.waits` puts the facts of its direction beside it (`of_direction`),
and then, column by column, what follows from both (`columns.beside`). None of these expressions looks at another row. Unknown is false
here: a rule that needs a value does not hold without it.

One after the other, each from those before it: `limits` (the numbers), `path` (line, clocks, what kind of sender), `resent` (what it is,
and what was lost), `acks` (what was heard of the flight, and how late), `released` (whether an ACK let it go), `window`, `held` (Nagle's
rule), `flow` (queues, repairs, stalls).
"""
