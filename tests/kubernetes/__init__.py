"""The objects on a cluster."""
