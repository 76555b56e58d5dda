"""Who owns a resource: the tags of everything that Roadstead creates, which no commit changes."""

from __future__ import annotations

from dataclasses import dataclass

from shared.fleet.json_tree import Json

POOL_TAG = "roadstead-pool"
"""The manifest's name of a node pool, on a pool that has another name in Azure."""
FLEET_TAG, CLUSTER_TAG, REPOSITORY_TAG = "roadstead-fleet", "roadstead-cluster", "roadstead-repository"


@dataclass(frozen=True)
class Owner:
    """The tags of a cluster's resources; ``previous`` is the repository's name before a rename.

    Two apps can have the same fleet name by mistake: the repository distinguishes their clusters.
    """

    fleet: str
    repository: str
    cluster: str
    previous: str = ""

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a resource that belongs to this cluster of this fleet."""
        return {**self._identity, REPOSITORY_TAG: self.repository.lower()}

    @property
    def _identity(self) -> dict[str, str]:
        return {FLEET_TAG: self.fleet, CLUSTER_TAG: self.cluster}

    def owns(self, resource: Json) -> bool:
        """Return whether a resource carries the tags of this fleet and cluster; Azure may change key case."""
        tagged = all(tag(resource, key) == value for key, value in self._identity.items())
        return tagged and self._from_our_repository(resource)

    def created_group(self, group: Json) -> bool:
        """Return whether a resource group was created for a cluster of this fleet."""
        return tag(group, FLEET_TAG) == self.fleet and self._from_our_repository(group)

    def _from_our_repository(self, resource: Json) -> bool:
        repository = (tag(resource, REPOSITORY_TAG) or self.repository).lower()
        return repository in (self.repository.lower(), self.previous.lower())

    def is_others(self, resource: Json) -> bool:
        """Return whether a resource carries the tags of another fleet, or of another cluster of this one."""
        return not self.owns(resource) and any(tag(resource, key) is not None for key in self._identity)

    def describe_tags(self, resource: Json) -> str:
        """Return a phrase with the tags that our resources have, and those of this one."""
        ours = self._from_our_repository(resource)
        expected_tags = self._identity if ours else self.tags
        expected = " and ".join(f"{key}={value}" for key, value in expected_tags.items())
        found = " and ".join(
            f"no {key}" if (value := tag(resource, key)) is None else f"{key}={value}"
            for key in expected_tags
        )
        renamed = "" if ours else "; set GITHUB_REPOSITORY_PREVIOUS after a rename of the repository"
        return f"expected the tags {expected}, found {found}{renamed}"

    def pool_tags(self, pool: str, azure_name: str) -> dict[str, str]:
        """Return the tags for a node pool of the manifest that has this name in Azure."""
        return self.tags if pool == azure_name else {**self.tags, POOL_TAG: pool}

    def pool_of(self, profile: Json) -> str:
        """Return the manifest's name of the pool that a pool in Azure serves."""
        return (self.owns(profile) and tag(profile, POOL_TAG)) or str(profile["name"])


def tag(resource: Json, key: str) -> str | None:
    """Return the value of a tag, None where there is none; Azure may change the case of its key."""
    tags = resource.get("tags") or {}
    return next((str(value) for name, value in tags.items() if name.lower() == key), None)
