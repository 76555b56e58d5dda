"""List prices: the price file of a fleet repository, and what a cluster is listed at. Pure."""
