"""Sweeps: what Azure lists, compared with the records."""
