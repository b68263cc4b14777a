"""Loops that count, sort and compare histograms."""
