"""Loops that exchange rows between classes while the guarantees hold."""
