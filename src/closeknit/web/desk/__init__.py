"""The logic behind the pages: plain functions over closeknit's types that return records for a page to show.

This package does not use the web framework. A *draft* is an unfinished recipe as plain forms; every change returns a new one.
"""
