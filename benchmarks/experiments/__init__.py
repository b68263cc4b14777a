"""The experiments of the sources, run again: one module for each source, one function for each figure or table."""
