"""The step after the maintenance windows: federated credentials and role assignments are as git has them."""

from __future__ import annotations

from collections.abc import Mapping

from shared.jobs.outcomes import Done, Outcome
from shared.pipeline.worker.steps.contests import read_ours
from shared.pipeline.worker.steps.context import StepContext
from shared.pipeline.worker.steps.identity_access.credentials import (
    ensure_credentials,
    read_credentials,
    without_room,
)
from shared.pipeline.worker.steps.identity_access.removal import former_grants, remove_former
from shared.pipeline.worker.steps.identity_access.roles import ensure_roles


def ensure_identity_access(context: StepContext) -> Outcome:
    """Write what differs from the manifest, and remove what earlier manifests asked for; else no call.

    What goes comes first where it is in the way of what comes: a federated credential has its place, and its
    service account, to itself. A role goes last, so that a narrower one is there before the wider one goes.
    """
    spec, former = context.desired.spec, former_grants(context)
    if not (spec.federated_credentials or spec.role_assignments or former):
        return Done()
    existing = read_ours(context)
    if not isinstance(existing, Mapping):
        return existing
    notes = [remove_former(context, credentials=True)]
    read = read_credentials(context)
    full = without_room(context, read)
    if full:
        return full
    notes += ensure_credentials(context, existing, read)
    notes += ensure_roles(context, existing)
    notes.append(remove_former(context, credentials=False))
    return Done("; ".join(filter(None, notes)))
