"""What a cluster grants to identities in Azure, and identities of its own. Pure.

Shapes: userAssignedIdentities and federatedIdentityCredentials of Microsoft.ManagedIdentity (2023-01-31) and
roleAssignments of Microsoft.Authorization (2022-04-01) in github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Self
from uuid import NAMESPACE_URL, uuid5

from shared.azure.companions.companion import Companion, Fields
from shared.azure.differences import Difference
from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.desired import Desired
from shared.language.model.cluster.grants import (
    CONTROL_PLANE,
    KUBELET,
    FederatedCredential,
    OwnIdentity,
    RoleAssignment,
)
from shared.resource_ids import ClusterId, ManagedIdentityId

OF_CLUSTER = "roadstead-of-cluster"
"""The tag of an identity with the id of the cluster that has it."""
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def credential_name(cluster: ClusterId, entry: str) -> str:
    """Return the name of a federated credential; Azure allows 120 letters, digits and hyphens."""
    return f"{_prefix(cluster)}{entry}"


def _prefix(cluster: ClusterId) -> str:
    """Return how the names of a cluster's federated credentials begin."""
    return f"roadstead-{hashlib.sha256(cluster.resource.lower().encode()).hexdigest()[:12]}-"


@dataclass(frozen=True)
class IdentityCompanion(Companion):
    """An identity that the cluster alone has: a tag says whose it is, and no other is touched."""

    noun, entries = "identity", "identities"
    segment = "/providers/microsoft.managedidentity/userassignedidentities/"
    location: str = ""

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the identities of a manifest."""
        return [cls._of(desired, entry) for entry in desired.spec.identities]

    @classmethod
    def _of(cls, desired: Desired, entry: OwnIdentity) -> Self:
        cluster, fields = desired.id, {"cluster": desired.id.resource.lower()}
        resource = cls.id_of(cluster, {"identity": entry.identity})
        return cls(cluster, entry.name, resource, fields, fields, desired.spec.location)

    @classmethod
    def id_of(cls, cluster: ClusterId, entry: Json) -> str:
        """Return the id of a stored identity."""
        identity = ManagedIdentityId.of(entry["identity"])
        group = f"/subscriptions/{identity.subscription}/resourceGroups/{identity.resource_group}"
        return f"{group}{cls.segment}{identity.name}"

    @classmethod
    def ids_among(cls, resources: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of identities among ids in lower case: those of their credentials are longer."""
        found = super().ids_among(resources)
        return tuple(resource for resource in found if "/" not in resource.rpartition(cls.segment)[2])

    @classmethod
    def is_ours(cls, cluster: ClusterId, resource: str, live: Json) -> bool:
        """Return whether a step of this cluster has created an identity: its tag says so."""
        return _of_cluster(live) == cluster.resource.lower()

    def shown(self, live: Json) -> Fields:
        """Return whose it is."""
        return {"cluster": _of_cluster(live)}

    def _body(self, fields: Fields) -> Json:
        return {"location": self.location, "tags": {OF_CLUSTER: fields["cluster"]}}


def _of_cluster(live: Json) -> str:
    tags = {name.lower(): value for name, value in (live.get("tags") or {}).items()}
    return str(tags.get(OF_CLUSTER, "")).lower()


@dataclass(frozen=True)
class CredentialCompanion(Companion):
    """A federated credential, without the issuer of its tokens where nobody has read that.

    Azure has a limit for each identity, and gives a service account to one credential: what goes makes room.
    """

    noun, entries = "federated credential", "federatedCredentials"
    segment = "/federatedidentitycredentials/"
    makes_room = True

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the federated credentials of a manifest, without an issuer."""
        return [cls._of(desired.id, entry) for entry in desired.spec.federated_credentials]

    @classmethod
    def _of(cls, cluster: ClusterId, entry: FederatedCredential) -> Self:
        resource = cls.id_of(cluster, {"name": entry.name, "identity": entry.identity})
        fields = {"subject": entry.subject, "audiences": [entry.audience]}
        return cls(cluster, entry.name, resource, fields, fields)

    @classmethod
    def id_of(cls, cluster: ClusterId, entry: Json) -> str:
        """Return the id of a stored federated credential."""
        return f"{entry['identity']}{cls.segment}{credential_name(cluster, entry['name'])}"

    @classmethod
    def is_ours(cls, cluster: ClusterId, resource: str, live: Json) -> bool:
        """Return whether a step of this cluster has written a federated credential: its name says so."""
        return resource.rpartition("/")[2].startswith(_prefix(cluster))

    def shown(self, live: Json) -> Fields:
        """Return what Azure has of what is known."""
        properties = super().shown(live)
        return {name: properties.get(name) for name in self.fields}

    def is_twin(self, resource: str, live: Json) -> bool:
        """Return whether another credential of the identity says the same."""
        return self._is_next_to(resource) and not self.differing(live)

    def is_rival(self, resource: str, live: Json) -> bool:
        """Return whether another credential of the identity has the service account."""
        subject = super().shown(live).get("subject")
        return self._is_next_to(resource) and bool(subject == self.fields["subject"])


@dataclass(frozen=True)
class RoleCompanion(Companion):
    """A role assignment; its fields are the ids of the principal and the role, once somebody has read them.

    Azure never changes an assignment, and takes no second one of a role, a scope and a principal. One that
    somebody else created for the same is left, and counts.
    """

    noun, entries = "role assignment", "roleAssignments"
    segment = "/providers/microsoft.authorization/roleassignments/"
    is_fixed = True
    entry: RoleAssignment

    @classmethod
    def of(cls, desired: Desired) -> Sequence[Self]:
        """Return the role assignments of a manifest, without the ids."""
        return [cls._of(desired.id, entry) for entry in desired.spec.role_assignments]

    @classmethod
    def _of(cls, cluster: ClusterId, entry: RoleAssignment) -> Self:
        shown = {"role": entry.role, "scope": entry.scope, "principal": entry.principal}
        stored = {"name": entry.name, "identity": entry.principal, **shown}
        return cls(cluster, entry.name, cls.id_of(cluster, stored), {}, shown, entry)

    @classmethod
    def id_of(cls, cluster: ClusterId, entry: Json) -> str:
        """Return the id of a stored role assignment."""
        principal = entry.get("identity") or entry.get("principalId") or ""
        description = _description(cluster, entry["name"], entry["role"], principal)
        return f"{entry['scope']}{cls.segment}{_assignment_name(cluster, entry['scope'], description)}"

    @classmethod
    def is_ours(cls, cluster: ClusterId, resource: str, live: Json) -> bool:
        """Return whether a step of this cluster has written a role assignment: its name says so."""
        properties = live.get("properties") or {}
        description, scope = str(properties.get("description") or ""), str(properties.get("scope") or "")
        return resource.rpartition("/")[2] == _assignment_name(cluster, scope, description)

    def differences(self, live: Json | None, *, left_alone: bool = False) -> Iterator[Difference]:
        """Yield the assignment where it is missing, or somebody else has it."""
        if live is None or self.differing(live):
            yield from super().differences(None, left_alone=left_alone)

    def shown(self, live: Json) -> Fields:
        """Return who has which role."""
        shown = super().shown(live)
        role = str(shown.get("roleDefinitionId") or "").rpartition("/")[2]
        return {"principal": str(shown.get("principalId") or "").lower(), "role": role.lower()}

    def is_twin(self, resource: str, live: Json) -> bool:
        """Return whether another assignment, whatever its name, gives what the manifest asks for."""
        same = not self.differing(live) and not super().shown(live).get("condition")
        return self._is_next_to(resource) and same

    def _body(self, fields: Fields) -> Json:
        """Return the body of a role assignment.

        With the type of the principal, Azure does not look for a new one in its directory, where it may not
        be yet (learn.microsoft.com/azure/role-based-access-control/troubleshooting).
        """
        entry = self.entry
        of = f"/subscriptions/{entry.subscription}/providers/Microsoft.Authorization/roleDefinitions"
        return {
            "properties": {
                "roleDefinitionId": f"{of}/{fields['role']}",
                "principalId": fields["principal"],
                "principalType": "ServicePrincipal",
                "description": _description(self.cluster, entry.name, entry.role, entry.principal),
            }
        }


def _description(cluster: ClusterId, entry: str, role: str, principal: str) -> str:
    what = f"{role} for {principal}, {entry} of {cluster.name}"
    return f"Roadstead: {what}; written from git, and removed with it"


def _assignment_name(cluster: ClusterId, scope: str, description: str) -> str:
    """Return the name of a role assignment, which Azure wants to be a GUID."""
    return str(uuid5(NAMESPACE_URL, f"{cluster.resource}|{scope}|{description}".lower()))


def issuer_of(live: Json) -> str:
    """Return the issuer of a cluster's tokens, "" where Azure shows none."""
    profile = (live.get("properties") or {}).get("oidcIssuerProfile") or {}
    return str(profile.get("issuerURL") or "")


def role_id(role: str) -> str:
    """Return the GUID of a role that is named by it, "" for one that is named by its name."""
    return role.lower() if _GUID.fullmatch(role) else ""


def principal_in(live: Json, identity: str) -> str:
    """Return the object id of an identity of a cluster that Azure shows; "" where it shows none."""
    properties, own = live.get("properties") or {}, live.get("identity") or {}
    if identity == KUBELET:
        kubelet = (properties.get("identityProfile") or {}).get("kubeletidentity") or {}
        return str(kubelet.get("objectId") or "")
    assigned = {
        name.lower(): shown or {} for name, shown in (own.get("userAssignedIdentities") or {}).items()
    }
    if identity == CONTROL_PLANE:
        first = next(iter(assigned.values()), own)
        return str(first.get("principalId") or "")
    return str(assigned.get(identity.lower(), {}).get("principalId") or "")
