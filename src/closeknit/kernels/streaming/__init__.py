"""Loops over rows of a stream."""
