"""Promotions by hand and by rules, on a fleet in memory."""
