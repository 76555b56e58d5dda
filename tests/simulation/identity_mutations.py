"""Mutations of what identities may do, and of policies: something stays that git took back, or goes."""

from __future__ import annotations

import pytest

from shared.app.access.companions import POLICIES
from shared.app.worker.steps import companions
from shared.azure.companions.identity_access import CredentialCompanion
from shared.cluster.transitions import acceptance
from simulation.actors.kinds import IDENTITY_ACCESS
from tests.simulation.mutations import mutation


def what_a_commit_takes_back_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acceptance, "companions_to_remove", lambda *_: ())


def a_deleted_cluster_leaves_what_it_granted(patch: pytest.MonkeyPatch) -> None:
    known = companions._known
    patch.setattr(companions, "_known", lambda kind, of: known(kind, of) if kind is POLICIES else ())


def every_credential_of_roadstead_counts_as_that_of_the_cluster(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CredentialCompanion, "is_ours", lambda _, resource, __: "/roadstead-" in resource)


def every_credential_of_an_identity_counts_as_that_of_the_cluster(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CredentialCompanion, "is_ours", lambda *_: True)


def a_deleted_cluster_leaves_its_policies(patch: pytest.MonkeyPatch) -> None:
    known = companions._known
    patch.setattr(companions, "_known", lambda kind, of: () if kind is POLICIES else known(kind, of))


IDENTITY_MUTATIONS = (
    mutation(a_deleted_cluster_leaves_its_policies, IDENTITY_ACCESS, "left behind"),
    mutation(what_a_commit_takes_back_is_not_recorded, IDENTITY_ACCESS, "grants"),
    mutation(a_deleted_cluster_leaves_what_it_granted, IDENTITY_ACCESS, "left behind"),
    mutation(
        every_credential_of_roadstead_counts_as_that_of_the_cluster,
        IDENTITY_ACCESS,
        "unasked removal",
        "grants",
    ),
    mutation(
        every_credential_of_an_identity_counts_as_that_of_the_cluster, IDENTITY_ACCESS, "unasked removal"
    ),
)
