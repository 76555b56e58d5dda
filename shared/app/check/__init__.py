"""Checks inside the clusters that were verified Ready: whether Flux and the nodes are healthy now."""
