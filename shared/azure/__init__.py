"""A cluster in Azure Resource Manager: bodies, comparison, effects, upgrades, pool replacement, ownership."""
