"""Checks inside the clusters."""
