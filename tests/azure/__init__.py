"""Azure's side of a cluster."""
