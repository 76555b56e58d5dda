"""Commands that write a fleet."""
