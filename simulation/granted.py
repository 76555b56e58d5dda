"""What git says of federated credentials, roles and policies, and how Azure shows whose one is.

Each has the cluster and the entry in what Azure shows of it, and not only in its name, which is production's.
"""

from __future__ import annotations

from collections.abc import Sequence

from localcloud.azure.world.access.policy_assignments import DEFINITIONS
from localcloud.azure.world.access.role_assignments import ROLES
from localcloud.azure.world.azure_world import AzureWorld

SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
IDENTITY = (SUBSCRIPTION, "rg-identities", "shared")
_ID = "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{}"
_SCOPE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/granted-"
OF_A_PERSON = "of-a-person"
_PERSONS_ASSIGNMENT = "00000000-0000-0000-0000-000000000077"
_DEFINITION = next(iter(DEFINITIONS))
_PRINCIPAL = "00000000-0000-0000-0000-000000000088"

Granted = tuple[str, str, str]
"""A kind, a cluster, and the name of an entry."""


def as_grants(cluster: str, names: Sequence[str]) -> str:
    """Return YAML of a federated credential, a role assignment and a policy for each name."""
    if not names:
        return ""
    credential = "    - {{name: {0}, identity: {1}, namespace: {2}, serviceAccount: {0}}}\n"
    role = "    - {{name: {0}, role: Reader, scope: {1}{2}-{0}, identity: controlPlane}}\n"
    credentials = "".join(credential.format(name, _ID.format(*IDENTITY), cluster) for name in names)
    roles = "".join(role.format(name, _SCOPE, cluster) for name in names)
    policy = "    - {{name: {0}, definition: {1}, mode: Indexed}}\n"
    policies = "".join(policy.format(name, _DEFINITION) for name in names)
    issuer = "  oidcIssuerProfile: {enabled: true}\n"
    return f"{issuer}  federatedCredentials:\n{credentials}  roleAssignments:\n{roles}  policies:\n{policies}"


def create_by_hand(azure: AzureWorld) -> None:
    """Create the identity, and a federated credential and a role assignment of a person."""
    azure.put_group(*IDENTITY[:2], {"location": "eastus"})
    azure.identities.put_identity(*IDENTITY, {"location": "eastus"})
    subject = {"issuer": "https://example.com", "subject": "x", "audiences": ["x"]}
    azure.identities.put_federated_credential(*IDENTITY, OF_A_PERSON, {"properties": subject})
    role = {"roleDefinitionId": f"/x/{ROLES['Reader']}", "principalId": _PRINCIPAL}
    azure.roles.put_role_assignment(SUBSCRIPTION, f"{_SCOPE}a-x", _PERSONS_ASSIGNMENT, {"properties": role})


def granted_in(azure: AzureWorld) -> list[Granted]:
    """Return what exists of all clusters."""
    found: list[Granted] = []
    for name, credential in azure.identities.peek_credentials(*IDENTITY).items():
        subject = credential["properties"]["subject"].removeprefix("system:serviceaccount:")
        cluster, _, entry = subject.partition(":")
        mine = name == OF_A_PERSON
        found.append(("credential", "", OF_A_PERSON) if mine else ("credential", cluster, entry))
    for assignment in azure.roles.peek_assignments():
        cluster, _, entry = assignment["properties"]["scope"].removeprefix(_SCOPE).partition("-")
        mine = assignment["name"] == _PERSONS_ASSIGNMENT
        found.append(("assignment", "", OF_A_PERSON) if mine else ("assignment", cluster, entry))
    for policy in azure.policies.peek_policies():
        entry, _, cluster = policy["properties"]["displayName"].removesuffix(" (Roadstead)").partition(" of ")
        found.append(("policy", cluster, entry))
    return found


OF_PERSONS = {("credential", "", OF_A_PERSON), ("assignment", "", OF_A_PERSON)}
