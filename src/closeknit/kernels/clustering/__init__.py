"""Loops that build clusters."""
