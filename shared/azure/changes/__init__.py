"""What a change does to a cluster that exists, and the writes that make it: effects, conditions, upgrades."""
