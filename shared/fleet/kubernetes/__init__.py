"""The objects on a cluster that Roadstead applies: Flux and its sync."""
