"""Bootstrap secrets: before Flux, renewed, reported, removed."""
