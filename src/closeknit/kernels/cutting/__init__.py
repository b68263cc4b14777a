"""Loops that cut classes in two."""
