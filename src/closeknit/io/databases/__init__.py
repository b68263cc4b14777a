"""Databases: one file per engine, and the pieces that all of them share."""
