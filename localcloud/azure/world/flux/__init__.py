"""The Flux extension: its resources, and what its agents do in a cluster."""
