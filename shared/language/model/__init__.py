"""The manifests of a fleet repository, as strict models."""
