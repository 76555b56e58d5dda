"""What Flux builds of a folder, and what each Kustomization of a cluster then owns."""
