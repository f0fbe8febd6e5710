"""What is concluded of each connection: where it was captured, how far its capture can be believed, and how both ends behave."""
