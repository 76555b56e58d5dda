"""Node pools: replacement, drains, upgrades, stops."""
