"""The Flux controllers of a cluster, with the subset of their features that Roadstead uses."""
