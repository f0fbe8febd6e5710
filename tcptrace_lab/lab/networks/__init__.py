"""Private networks, their emulated paths, and the logs of what the paths did to each packet."""
