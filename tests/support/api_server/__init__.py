"""Requests to an API server, and sequences of them, as data for any server; their recorded answers."""
