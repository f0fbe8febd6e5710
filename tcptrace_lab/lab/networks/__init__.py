"""Private networks, their paths, and the logs of what happened to each packet."""
