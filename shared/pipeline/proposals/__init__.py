"""Proposals: pull requests that take what somebody changed in Azure into the manifest of a cluster."""
