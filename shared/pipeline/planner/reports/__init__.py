"""Commit statuses: what they say, when they are written, and by whom."""
