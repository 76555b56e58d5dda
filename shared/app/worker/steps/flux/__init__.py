"""Flux on a running cluster: access, components, sync objects, and the check that they are Ready."""
