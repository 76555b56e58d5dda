"""What the kustomize-controller does: build, decrypt, apply, prune and wait."""
