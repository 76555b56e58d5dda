"""Commands that act on a fleet."""
