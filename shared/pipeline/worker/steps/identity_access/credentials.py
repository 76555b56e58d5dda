"""Federated credentials: each service account of the manifest may act as its identity, under our issuer.

One identity is written to by one call after the other: Azure refuses two at once, and the step is retried
where another cluster's came between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.fleet.drift.grant_differences import credential_path
from shared.fleet.identity_access.bodies import credential_body, issuer_of, same_credential
from shared.fleet.identity_access.names import credential_prefix, wanted_names
from shared.fleet.json_tree import Json
from shared.fleet.manifests.cluster.identity_access import MOST_OF_AN_IDENTITY, FederatedCredential
from shared.fleet.resource_ids import ManagedIdentityId
from shared.jobs.failures.errors import Dependency
from shared.jobs.outcomes import Wait
from shared.pipeline.worker.steps.azure_state import OBSERVE_SECONDS
from shared.pipeline.worker.steps.context import StepContext
from shared.ports.azure import DeleteFederatedCredential, ListFederatedCredentials, PutFederatedCredential

SHOWN = 5
_FIELDS = ("issuer", "subject", "audiences")


@dataclass(frozen=True)
class OfIdentity:
    """The federated credentials of an identity: those that git has for this cluster, and those that exist."""

    identity: ManagedIdentityId
    wanted: Mapping[str, FederatedCredential]
    live: Mapping[str, Json]


def read_credentials(context: StepContext) -> Sequence[OfIdentity]:
    """Read the identities of the manifest, each once; Azure ignores the case of letters in a resource id."""
    entries: dict[str, list[FederatedCredential]] = {}
    for entry in context.desired.spec.federated_credentials:
        entries.setdefault(entry.identity.lower(), []).append(entry)
    return [_read(context, each) for each in entries.values()]


def _read(context: StepContext, entries: Sequence[FederatedCredential]) -> OfIdentity:
    identity = ManagedIdentityId.of(entries[0].identity)
    found = context.azure(ListFederatedCredentials(identity))
    if found is None:
        raise Dependency(f"the identity {identity.name} does not exist in {identity.resource_group}")
    live = {str(one["name"]).lower(): one for one in found}
    return OfIdentity(identity, wanted_names(context.cluster, entries), live)


def without_room(context: StepContext, read: Sequence[OfIdentity]) -> Wait | None:
    """Return the wait for an identity that has too many federated credentials of others, None for none."""
    for each in read:
        others = sorted(name for name in set(each.live) - set(each.wanted) if not _is_ours(context, name))
        if len(others) + len(each.wanted) > MOST_OF_AN_IDENTITY:
            name, shown = each.identity.name, ", ".join(others[:SHOWN]) + (", ..." * (len(others) > SHOWN))
            count = f"{len(each.wanted)} of this cluster and {len(others)} others ({shown})"
            limit = f"takes {MOST_OF_AN_IDENTITY} federated credentials"
            return Wait(
                OBSERVE_SECONDS,
                f"the identity {name} {limit}; {count} are too many",
                action_required=f"Remove some from the identity {name}, or name another identity.",
                open_ended=True,
            )
    return None


def ensure_credentials(context: StepContext, existing: Json, read: Sequence[OfIdentity]) -> Iterator[str]:
    """Write the federated credentials that differ, after those went that git does not have; yield notes."""
    issuer = issuer_of(existing)
    if read and not issuer:
        raise Dependency(f"Azure shows no issuer of the tokens of {context.record.name} yet")
    for each in read:
        bodies = {name: credential_body(entry, issuer) for name, entry in each.wanted.items()}
        obsolete = {
            name for name in each.live if _is_ours(context, name) and _is_obsolete(each, bodies, name)
        }
        for name in sorted(obsolete):
            context.azure(DeleteFederatedCredential(each.identity, name))
            yield f"removed the federated credential {name} of {each.identity.name}"
        live = {name: one for name, one in each.live.items() if name not in obsolete}
        for name, entry in each.wanted.items():
            yield _ensured(context, each.identity, (name, entry.name, bodies[name]), live)


def _is_obsolete(each: OfIdentity, bodies: Mapping[str, Json], name: str) -> bool:
    """Return whether git lacks a federated credential, or gives its service account to another one."""
    subject = (each.live[name].get("properties") or {}).get("subject")
    others = (body for other, body in bodies.items() if other != name)
    return name not in bodies or any(body["properties"]["subject"] == subject for body in others)


def _ensured(
    context: StepContext, identity: ManagedIdentityId, wanted: tuple[str, str, Json], live: Mapping[str, Json]
) -> str:
    """Write a federated credential that differs; return what was done, "" where it is as wanted."""
    name, entry, body = wanted
    left = context.desired.left
    if name in live:
        body = _with_left(body, live[name], {key for key in _FIELDS if credential_path(entry, key) in left})
    elif credential_path(entry) in left:
        return ""
    if name in live and same_credential(live[name], body):
        return ""
    if any(same_credential(other, body) for other in live.values()):
        return (
            f"left the federated credential that {entry} asks for: it exists, under a name that is not ours"
        )
    context.azure(PutFederatedCredential(identity, name, body))
    return f"wrote the federated credential {entry}"


def _with_left(body: Json, live: Json, left: Collection[str]) -> Json:
    """Return a body in which the fields that the job leaves have the values that Azure has."""
    shown = live.get("properties") or {}
    return {"properties": {**body["properties"], **{key: shown.get(key) for key in left}}}


def _is_ours(context: StepContext, name: str) -> bool:
    return name.startswith(credential_prefix(context.cluster))
