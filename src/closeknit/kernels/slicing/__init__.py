"""Loops over the buckets of slicing and anatomy."""
