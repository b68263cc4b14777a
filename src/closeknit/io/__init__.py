"""Reading and writing: files and frames as `Columns`; the only package that imports dataframe libraries."""
