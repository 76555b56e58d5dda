"""User-assigned identities and their federated credentials.

Sources: ManagedIdentity.json 2023-01-31 of github.com/Azure/azure-rest-api-specs (shapes, names, required
properties); learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (20 for an
identity, issuer and subject unique, lengths, no two writes at once). The refused write is quoted in
hashicorp/terraform-provider-azurerm#29242 and Azure/bicep-registry-modules#1447. No published answer has the
code of the twenty-first, nor of a second one of the same issuer and subject: BadRequest is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from localcloud.azure.world import request_limits as limits
from localcloud.azure.world.arm_errors import ArmError, no_resource
from localcloud.azure.world.arm_keys import group_key
from localcloud.azure.world.arm_resources import WriteAnswer
from localcloud.azure.world.azure_engine import AzureEngine
from localcloud.azure.world.catalog import TENANT
from localcloud.common.json_copy import copied
from shared.json_tree import Json

MOST = 20
_TYPE = "Microsoft.ManagedIdentity/userAssignedIdentities"
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,119}")
_LONGEST = 600
_CONCURRENT = "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"


@dataclass
class _Identity:
    document: dict[str, Any]
    credentials: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes_of_others: int = 0


class Identities:
    """The user-assigned identities of every subscription."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._identities: dict[str, _Identity] = {}

    def others_write(self, subscription: str, group: str, name: str, times: int = 1) -> None:
        """Let somebody else write a federated credential during each of the next writes."""
        with self._engine.lock:
            self._of(subscription, group, name).writes_of_others = times

    def inside(self, subscription: str, group: str) -> list[Json]:
        """Return the identities in a group, as a list of its resources has them."""
        documents = (identity.document for identity in self._identities.values())
        place = group_key(subscription, group)
        return [document for document in documents if group_key(*_place(document["id"])) == place]

    def delete_inside(self, subscription: str, group: str) -> None:
        """Delete the identities of a group with it."""
        for document in self.inside(subscription, group):
            del self._identities[document["id"].lower()]

    def peek_credentials(self, subscription: str, group: str, name: str) -> dict[str, Json]:
        """Return the federated credentials of an identity by name; counts as no request."""
        with self._engine.lock:
            return dict(self._of(subscription, group, name).credentials)

    def get_identity(self, subscription: str, group: str, name: str) -> Json:
        """Return an identity."""
        with self._engine.request(subscription, limits.ARM_READ):
            return copied(self._of(subscription, group, name).document)

    def list_identities(self, subscription: str) -> list[Json]:
        """Return the identities of a subscription."""
        with self._engine.request(subscription, limits.ARM_READ):
            below = f"/subscriptions/{subscription}/".lower()
            found = sorted(self._identities.items())
            return [copied(identity.document) for key, identity in found if key.startswith(below)]

    def put_identity(self, subscription: str, group: str, name: str, body: Json) -> WriteAnswer:
        """Create or update an identity, at once."""
        with self._engine.request(subscription, limits.ARM_WRITE):
            self._engine.group(subscription, group)
            resource = _resource(subscription, group, name)
            found = self._identities.get(resource.lower())
            document = {
                "id": resource,
                "name": name,
                "type": _TYPE,
                "location": body.get("location") or "",
                "tags": dict(body.get("tags") or {}),
                "properties": {
                    "tenantId": TENANT,
                    "principalId": str(uuid5(NAMESPACE_URL, resource.lower())),
                    "clientId": str(uuid5(NAMESPACE_URL, f"{resource.lower()}#client")),
                },
            }
            credentials = found.credentials if found else {}
            self._identities[resource.lower()] = _Identity(document, credentials)
            status = 200 if found else 201
            return self._engine.accept(WriteAnswer("put-identity", resource, status, copied(document)))

    def delete_identity(self, subscription: str, group: str, name: str) -> WriteAnswer:
        """Delete an identity with its federated credentials, at once."""
        with self._engine.request(subscription, limits.ARM_DELETE):
            resource = _resource(subscription, group, name)
            if self._identities.pop(resource.lower(), None) is None:
                return WriteAnswer("", resource, 204)
            return self._engine.accept(WriteAnswer("delete-identity", resource, 200))

    def list_federated_credentials(self, subscription: str, group: str, name: str) -> list[Json]:
        """Return the federated credentials of an identity."""
        with self._engine.request(subscription, limits.ARM_READ):
            return [
                copied(credential) for credential in self._of(subscription, group, name).credentials.values()
            ]

    def get_federated_credential(self, subscription: str, group: str, name: str, credential: str) -> Json:
        """Return a federated credential."""
        with self._engine.request(subscription, limits.ARM_READ):
            found = self._of(subscription, group, name)
            if credential.lower() not in found.credentials:
                raise no_resource(f"{found.document['id']}/federatedIdentityCredentials/{credential}")
            return copied(found.credentials[credential.lower()])

    def put_federated_credential(
        self, subscription: str, group: str, name: str, credential: str, body: Json
    ) -> WriteAnswer:
        """Create or replace a federated credential, at once."""
        with self._engine.request(subscription, limits.ARM_WRITE):
            identity = self._of(subscription, group, name)
            _require_alone(identity)
            properties = _checked(credential, body.get("properties") or {})
            _check_room(identity, credential.lower(), properties)
            resource = f"{identity.document['id']}/federatedIdentityCredentials/{credential}"
            document = {
                "id": resource,
                "name": credential,
                "type": f"{_TYPE}/federatedIdentityCredentials",
                "properties": properties,
            }
            held, key = identity.credentials, credential.lower()
            return self._engine.store("put-federated-credential", held, key, document)

    def delete_federated_credential(
        self, subscription: str, group: str, name: str, credential: str
    ) -> WriteAnswer:
        """Delete a federated credential, at once."""
        with self._engine.request(subscription, limits.ARM_DELETE):
            identity = self._of(subscription, group, name)
            _require_alone(identity)
            resource = f"{identity.document['id']}/federatedIdentityCredentials/{credential}"
            held, key = identity.credentials, credential.lower()
            return self._engine.drop("delete-federated-credential", held, key, resource)

    def _of(self, subscription: str, group: str, name: str) -> _Identity:
        resource = _resource(subscription, group, name)
        found = self._identities.get(resource.lower())
        if found is None:
            self._engine.group(subscription, group)
            raise no_resource(resource)
        return found


def _resource(subscription: str, group: str, name: str) -> str:
    return f"/subscriptions/{subscription}/resourceGroups/{group}/providers/{_TYPE}/{name}"


def _place(resource: str) -> tuple[str, str]:
    parts = resource.split("/")
    return parts[2], parts[4]


def _require_alone(identity: _Identity) -> None:
    if identity.writes_of_others:
        identity.writes_of_others -= 1
        raise ArmError(
            409,
            _CONCURRENT,
            "Too many Federated Identity Credentials are written concurrently for the managed identity "
            f"'{identity.document['id']}'. Concurrent Federated Identity Credentials writes under the same "
            "managed identity are not supported.",
        )


def _checked(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a body that is complete, or refuse it."""
    if not _NAME.fullmatch(name):
        raise ArmError(400, "BadRequest", f"The federated identity credential name '{name}' is invalid.")
    issuer, subject, audiences = (properties.get(key) for key in ("issuer", "subject", "audiences"))
    texts = [issuer, subject, *(audiences if isinstance(audiences, list) else [None])]
    if set(properties) > {"issuer", "subject", "audiences"} or len(texts) != 3:
        raise ArmError(400, "BadRequest", "A federated identity credential has issuer, subject and audience.")
    if not all(isinstance(text, str) and 0 < len(text) <= _LONGEST for text in texts):
        raise ArmError(400, "BadRequest", f"issuer, subject and audience have 1 to {_LONGEST} characters.")
    if not str(issuer).startswith("https://"):
        raise ArmError(400, "BadRequest", f"The issuer '{issuer}' is no https URL.")
    return {"issuer": issuer, "subject": subject, "audiences": list(audiences or ())}


def _check_room(identity: _Identity, name: str, properties: Mapping[str, Any]) -> None:
    others = {
        key: credential["properties"] for key, credential in identity.credentials.items() if key != name
    }
    same = [key for key, document in others.items() if _pair(document) == _pair(properties)]
    if same:
        message = f"Issuer and subject combination already exists for this Managed Identity: {same[0]}."
        raise ArmError(409, "Conflict", message)
    if len(others) >= MOST:
        message = f"Too many Federated Identity Credentials: a managed identity has at most {MOST}."
        raise ArmError(400, "BadRequest", message)


def _pair(properties: Mapping[str, Any]) -> tuple[Any, Any]:
    return properties["issuer"], properties["subject"]
