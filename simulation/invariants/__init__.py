"""The invariants: what must always hold, by what they watch; ``rules`` has them all."""
