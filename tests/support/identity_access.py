"""A cluster whose pods act as identities of Azure, whose identities have roles, and what Azure has of it."""

from __future__ import annotations

from localcloud.memory.memory_cloud import MemoryCloud
from shared.json_tree import Json
from shared.resource_ids import ManagedIdentityId
from tests.support.azure_ports import SUBSCRIPTION

SHOP = ManagedIdentityId(SUBSCRIPTION, "rg-identities", "shop")
REGISTRY = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/rg-shared"
    "/providers/Microsoft.ContainerRegistry/registries/shared"
)
ISSUER = "  oidcIssuerProfile: {enabled: true}\n"
CREDENTIAL = f"""\
  federatedCredentials:
    - {{name: shop, identity: {SHOP.resource}, namespace: shop, serviceAccount: api}}
"""
ROLE = f"""\
  roleAssignments:
    - {{name: pull, role: AcrPull, scope: {REGISTRY}, identity: kubelet}}
"""
SECOND_CREDENTIAL = CREDENTIAL.splitlines()[1].replace("shop,", "more,", 1).replace("api", "more") + "\n"
SECOND_ROLE = ROLE.splitlines()[1].replace("pull", "read").replace("AcrPull", "Reader") + "\n"
"""One more entry of each, to follow the first one."""
ACCESS = ISSUER + CREDENTIAL + ROLE
"""YAML of one federated credential and one role assignment, for ``files``."""


OWN = ManagedIdentityId(SUBSCRIPTION, "rg-identities", "flux-one")
_EACH = f'"{OWN.resource.replace("flux-one", "flux-{name}")}"'
OWN_IDENTITY = f"""\
  securityProfile: {{workloadIdentity: {{enabled: true}}}}
  identities:
    - {{name: flux, identity: {_EACH}}}
"""
"""YAML of the identity that each cluster has for itself; ``OWN`` is that of the cluster one."""
OWN_ACCESS = f"""{ISSUER}{OWN_IDENTITY}\
  federatedCredentials:
    - {{name: flux, identity: {_EACH}, namespace: flux-system, serviceAccount: source-controller}}
{ROLE.replace("identity: kubelet", f"identity: {_EACH}")}"""
"""YAML of that identity with its federated credential for Flux, and its role."""
OWN_ACTS = f"  flux: {{workloadIdentity: {{identity: {_EACH}}}}}\n"
"""YAML of a Flux that acts as that identity."""


def with_identity(cloud: MemoryCloud | None = None, identity: ManagedIdentityId = SHOP) -> MemoryCloud:
    """Return a cloud that has the identity, which no cluster's group holds."""
    cloud = cloud or MemoryCloud(throttle=False)
    world, location = cloud.azure, {"location": "eastus"}
    world.put_group(identity.subscription, identity.resource_group, location)
    world.identities.put_identity(identity.subscription, identity.resource_group, identity.name, location)
    return cloud


def credentials(cloud: MemoryCloud, identity: ManagedIdentityId = SHOP) -> dict[str, Json]:
    """Return the federated credentials of an identity: their properties by their names."""
    place = identity.subscription, identity.resource_group, identity.name
    return {
        list_federated_credential["name"]: list_federated_credential["properties"]
        for list_federated_credential in cloud.azure.identities.list_federated_credentials(*place)
    }


def assignments(cloud: MemoryCloud) -> dict[str, Json]:
    """Return all role assignments: their properties by their names."""
    return {
        peek_assignment["name"]: peek_assignment["properties"]
        for peek_assignment in cloud.azure.roles.peek_assignments()
    }


def access_writes(cloud: MemoryCloud) -> list[str]:
    """Return the kinds of the accepted writes of federated credentials and role assignments, in order."""
    kinds = [write["accepted"] for write in cloud.azure.accepted]
    return [kind for kind in kinds if kind.endswith(("federated-credential", "role-assignment"))]
