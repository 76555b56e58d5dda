"""Mutations of replacements: the old cluster goes before the one that replaces it was ever Ready."""

from __future__ import annotations

import pytest

from shared.app import outbox
from shared.plan import make_plan, replacements
from simulation.actors.kinds import REPLACEMENTS
from tests.simulation.mutations import mutation


def a_delete_does_not_wait_for_what_replaces_the_cluster(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(make_plan, "waiting_items", lambda *_: {})


def a_cluster_that_was_never_verified_counts_as_ready(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(replacements, "_is_ready", lambda _item, record: record is not None)


def nothing_starts_the_delete_once_the_other_cluster_is_ready(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(outbox, "request_replacing_plan", lambda *_: None)
    patch.setattr(outbox, "request_awaited_deletes", lambda *_: None)


REPLACEMENT_MUTATIONS = (
    mutation(a_delete_does_not_wait_for_what_replaces_the_cluster, REPLACEMENTS, "early delete"),
    mutation(a_cluster_that_was_never_verified_counts_as_ready, REPLACEMENTS, "early delete"),
    mutation(
        nothing_starts_the_delete_once_the_other_cluster_is_ready,
        REPLACEMENTS,
        *("lost work", "open status", "orphan"),
    ),
)
