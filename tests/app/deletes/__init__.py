"""Deletes of clusters and of resource groups."""
