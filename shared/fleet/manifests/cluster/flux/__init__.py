"""``spec.flux``: how Flux is installed, and what it reconciles."""
