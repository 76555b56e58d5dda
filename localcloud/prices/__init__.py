"""The list of Azure's retail prices."""
