"""The objects that Roadstead applies to a cluster: Flux and its sync."""
