"""What ships for tests: the contracts of the ports."""
