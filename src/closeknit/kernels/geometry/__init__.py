"""Loops over ranges and boxes of codes."""
