"""Measurements; each prints what it compares in one run. Nothing here is a test."""
