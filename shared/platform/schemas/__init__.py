"""The kinds and fields that API servers know: those of Kubernetes, by version, and of definitions."""
