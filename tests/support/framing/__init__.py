"""Every way to carry IP, as bytes."""
