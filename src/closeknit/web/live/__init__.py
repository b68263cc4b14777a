"""Streams that the service runs: rows arrive over HTTP, wait in a durable inbox, and are published by a process of the stream.

The server writes the inbox, and the process of the stream everything else. Either may be killed at any instant: a row that was
accepted is published or suppressed exactly once.
"""
