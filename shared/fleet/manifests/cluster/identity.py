"""The identities of a cluster."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from shared.fleet.manifests.arm_types import Guid, Section
from shared.fleet.manifests.base import IdentityId, Manifest


class Identity(Manifest):
    """The identity that the control plane acts as."""

    type: Literal["SystemAssigned", "UserAssigned"] = "SystemAssigned"
    """An identity that Azure creates with the cluster, or your own."""
    user_assigned_identity: IdentityId | None = None
    """Your own identity."""

    @model_validator(mode="after")
    def _named_when_user_assigned(self) -> Self:
        if self.type == "UserAssigned" and self.user_assigned_identity is None:
            raise ValueError("type: UserAssigned needs userAssignedIdentity, the resource id of the identity")
        if self.type != "UserAssigned" and self.user_assigned_identity is not None:
            raise ValueError("userAssignedIdentity needs type: UserAssigned")
        return self


class KubeletIdentity(Section):
    """A user-assigned identity that the nodes act as, to pull images for example."""

    resource_id: IdentityId
    """The identity."""
    client_id: Guid | None = None
    """The identity's client id; Azure determines it by default."""
    object_id: Guid | None = None
    """The identity's object id; Azure determines it by default."""


class IdentityProfile(Section):
    """Identities besides the control plane's."""

    kubeletidentity: KubeletIdentity
