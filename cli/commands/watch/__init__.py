"""Commands that watch a fleet."""
