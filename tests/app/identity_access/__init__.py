"""Federated credentials and role assignments of clusters: written, removed, and never of others."""
