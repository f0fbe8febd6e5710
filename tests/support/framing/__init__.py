"""Every encapsulation of IP, as bytes."""
