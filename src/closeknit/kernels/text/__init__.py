"""Loops over the bytes of cells and lines."""
