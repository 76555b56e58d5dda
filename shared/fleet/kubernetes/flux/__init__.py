"""Flux on a cluster: its objects, their inventory, what they show, and its documents in Azure. Pure."""
