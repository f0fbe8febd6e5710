"""The tests, in folders by subject; what they share is in `support`."""
