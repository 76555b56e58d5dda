"""Mutations of bootstrap secrets: a value is too old, stays, goes although git has it, or is shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shared.app.check import secrets as checks
from shared.app.worker.steps import bootstrap_secrets
from shared.app.worker.steps.flux.applied import Removal
from shared.kubernetes.bootstrap_secrets import secret_ref
from shared.language.model.cluster.grants import BootstrapSecret
from shared.ports import KubernetesApi
from shared.resource_ids import ObjectRef
from simulation.actors.kinds import SECRETS
from tests.simulation.mutations import mutation


def a_new_version_is_not_applied(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checks, "_renew", lambda *_: None)


def what_git_no_longer_has_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bootstrap_secrets, "remove", lambda *_: Removal((), {}))


def every_secret_counts_as_former(patch: pytest.MonkeyPatch) -> None:
    class Unlike(ObjectRef):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = object.__hash__

    def unlike(secret: BootstrapSecret) -> ObjectRef:
        ref = secret_ref(secret)
        return Unlike(ref.api_version, ref.kind, ref.name, ref.namespace)

    patch.setattr(bootstrap_secrets, "secret_ref", unlike)


def a_step_notes_what_it_read(patch: pytest.MonkeyPatch) -> None:
    def created(wanted: Sequence[BootstrapSecret], api: KubernetesApi) -> str:
        return str([api.get(secret_ref(secret)) for secret in wanted])

    patch.setattr(bootstrap_secrets, "_create_namespaces", created)


SECRET_MUTATIONS = (
    mutation(a_new_version_is_not_applied, SECRETS, "secrets"),
    mutation(what_git_no_longer_has_stays, SECRETS, "secrets"),
    mutation(every_secret_counts_as_former, SECRETS, "unasked removal"),
    mutation(a_step_notes_what_it_read, SECRETS, "secret shown"),
)
