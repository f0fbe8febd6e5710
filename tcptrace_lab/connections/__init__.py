"""What a connection as a whole shows: where it was captured, how reliable its capture is, and how both ends behave."""
