"""Clusters in AKS: their documents, and the operations on those that exist."""
