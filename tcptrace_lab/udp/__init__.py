"""UDP: datagrams, and the flows to which they belong."""
