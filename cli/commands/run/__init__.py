"""Commands that run the app of a fleet."""
