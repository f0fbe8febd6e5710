"""UDP: datagrams, and the flows that they make."""
