"""Runs a local cloud as processes: their supervision, ports, settings and state folder."""
