"""Identifiers of resources in Azure and of objects in Kubernetes."""

from __future__ import annotations

from shared.frozen import dataclass


@dataclass(frozen=True, order=True)
class GroupId:
    """A resource group: subscription (UUID) and name."""

    subscription: str
    name: str

    @property
    def key(self) -> str:
        """The same text for every spelling of the group: Azure ignores the case of letters."""
        return f"{self.subscription}|{self.name}".lower()


@dataclass(frozen=True, order=True)
class SubscriptionId:
    """A subscription (UUID)."""

    subscription: str


@dataclass(frozen=True, order=True)
class RegionId:
    """A region of Azure in one subscription."""

    subscription: str
    location: str


@dataclass(frozen=True, order=True)
class ClusterId:
    """Where a managed cluster lives in Azure: subscription (UUID), resource group, name."""

    subscription: str
    resource_group: str
    name: str

    @classmethod
    def of(cls, resource: str) -> ClusterId | None:
        """Return the cluster of a resource id, None for a resource that is no cluster."""
        parts = resource.split("/")
        kind = "/".join(parts[6:8]).lower()
        found = len(parts) == 9 and kind == "microsoft.containerservice/managedclusters"
        return cls(parts[2], parts[4], parts[8]) if found else None

    @property
    def group(self) -> GroupId:
        """The resource group of the cluster."""
        return GroupId(self.subscription, self.resource_group)

    @property
    def resource(self) -> str:
        """The ARM resource id."""
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group}"
            f"/providers/Microsoft.ContainerService/managedClusters/{self.name}"
        )


@dataclass(frozen=True, order=True)
class ManagedIdentityId:
    """Where a user-assigned identity lives in Azure: subscription (UUID), resource group, name."""

    subscription: str
    resource_group: str
    name: str

    @classmethod
    def of(cls, resource: str) -> ManagedIdentityId:
        """Return the identity of a resource id, or of the id of something in the identity."""
        parts = resource.split("/")
        return cls(parts[2], parts[4], parts[8])

    @property
    def resource(self) -> str:
        """The ARM resource id."""
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.resource_group}"
            f"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{self.name}"
        )


@dataclass(frozen=True, order=True)
class ObjectRef:
    """A Kubernetes object: apiVersion, kind, name, and namespace ("" for cluster-scoped kinds)."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{where}"
