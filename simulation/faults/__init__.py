"""The faults: what can happen at a call, by topic; ``catalog`` has them all."""
