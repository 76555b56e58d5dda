"""Federated credentials: each service account of the manifest may act as its identity, under our issuer.

One identity is written to by one call after the other: Azure refuses two at once, and the step is retried
where another cluster's came between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
        for name in sorted(set(each.live) - set(each.wanted)):
            if _is_ours(context, name):
                context.azure(DeleteFederatedCredential(each.identity, name))
                yield f"removed the federated credential {name} of {each.identity.name}"
        for name, entry in each.wanted.items():
            body = credential_body(entry, issuer)
            if name not in each.live or not same_credential(each.live[name], body):
                context.azure(PutFederatedCredential(each.identity, name, body))
                yield f"wrote the federated credential {entry.name}"


def _is_ours(context: StepContext, name: str) -> bool:
    return name.startswith(credential_prefix(context.cluster))
