"""Loops that deal rows of buckets to classes."""
