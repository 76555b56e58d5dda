"""Ids as keys: names of Resource Manager do not differ by case."""

from __future__ import annotations

from shared.resource_ids import ClusterId


def key_of(cluster: ClusterId) -> ClusterId:
    """Return the id as a key: ARM's names do not differ by case."""
    return ClusterId(cluster.subscription.lower(), cluster.resource_group.lower(), cluster.name.lower())


def group_key(subscription: str, name: str) -> tuple[str, str]:
    """Return a resource group's key."""
    return subscription.lower(), name.lower()
