"""A periodic writer: writes BYTES bytes every INTERVAL_MS milliseconds. This script needs only the standard library.

    sampler.py ADDRESS PORT BYTES INTERVAL_MS SECONDS [answered]

With `answered`, the writer waits for an answer to each message before it sleeps.
"""

from __future__ import annotations

import socket
import sys
import time


def main(address: str, port: int, size: int, interval_s: float, lasts_s: float, *, answered: bool) -> None:
    """Write on a fixed schedule. A late write does not delay later writes."""
    with socket.create_connection((address, port)) as connection:
        begun = time.monotonic()
        due_s = 0.0
        while due_s < lasts_s:
            connection.sendall(b"s" * size)
            if answered and not connection.recv(65_536):
                return
            due_s += interval_s
            time.sleep(max(0.0, begun + due_s - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]) / 1_000, float(sys.argv[5]), answered="answered" in sys.argv)
