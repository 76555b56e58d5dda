"""Flux on a cluster: components, objects, readiness."""
