"""What the source-controller of the local Flux fetches: branches, artifacts of registries, and blobs."""
