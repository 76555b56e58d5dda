"""Generators of pages of docs/: the reference of manifests, and the errors."""
