"""The step of systems: what a cluster has of them is applied, and what git took is removed."""
