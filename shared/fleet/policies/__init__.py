"""Assignments of Azure Policy to a cluster: names, documents, and what Azure found. Pure."""
