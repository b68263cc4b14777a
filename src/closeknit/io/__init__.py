"""Doors: files and frames come in as `Columns` and go out built anew; the only room that knows dataframe libraries."""
