"""Mutations of systems: a team leaves its namespaces, or loses them although no commit took them."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.worker.steps import managed_namespaces as managed_step
from shared.app.worker.steps.flux import pinned
from shared.azure.companions import managed_namespaces
from shared.kubernetes import sync_objects
from shared.language.cluster_systems import without_invalid
from shared.language.resolve import systems
from simulation.actors.kinds import SYSTEMS
from tests.simulation.mutations import mutation


def flux_is_not_locked_down(patch: pytest.MonkeyPatch) -> None:
    for module in (pinned, sync_objects):
        patch.setattr(module, "is_locked_down", lambda _: False)


def a_system_with_an_invalid_manifest_counts_as_removed(patch: pytest.MonkeyPatch) -> None:
    def none_is_invalid(wanted: Any, recorded: Any, _: Any) -> Any:
        return without_invalid(wanted, recorded, frozenset())

    patch.setattr(systems, "without_invalid", none_is_invalid)


def a_namespace_that_git_keeps_is_deleted_by_azure(patch: pytest.MonkeyPatch) -> None:
    wanted = managed_namespaces.wanted_fields

    def deleting(*args: Any) -> Any:
        return {**wanted(*args), "deletePolicy": "Delete"}

    patch.setattr(managed_namespaces, "wanted_fields", deleting)
    patch.setattr(managed_step, "kept_against_git", lambda _: None)


SYSTEM_MUTATIONS = (
    mutation(flux_is_not_locked_down, SYSTEMS, "confined"),
    mutation(a_system_with_an_invalid_manifest_counts_as_removed, SYSTEMS, "unasked removal"),
    mutation(a_namespace_that_git_keeps_is_deleted_by_azure, SYSTEMS, "retained namespace"),
)
