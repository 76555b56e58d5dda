"""Mutations that lost and restored tables reveal: what distinguishes two lives of a cluster."""

from __future__ import annotations

import pytest

from shared.app.planner import compute
from shared.app.worker.steps import cluster, delete, registry
from shared.app.worker.steps.guards import rebuilt
from tests.simulation.mutations import mutation


def a_delete_begins_whatever_git_says_by_then(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "not_removed", lambda *_, **__: None)


def a_tombstone_deletes_any_life(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(delete, "of_later_life", lambda *_: None)


def a_rebuilt_record_is_like_any_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cluster, "is_rebuilt", lambda *_: False)


def the_steps_after_a_rebuild_write_what_differs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebuilt, "differences_of", lambda *_: [])
    patch.setattr(rebuilt, "differing_windows", lambda _: {})
    patch.setattr(registry, "without_writes", lambda ports: ports)


def generations_begin_at_one_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compute, "_first_generation", lambda *_: 1)


DISASTER_MUTATIONS = (
    mutation(a_delete_begins_whatever_git_says_by_then, "tables-restored", "unrequested delete"),
    # Where Azure had accepted the delete of the former life, the tombstone waits for its end.
    mutation(a_tombstone_deletes_any_life, "tables-restored", "later life", "lost work"),
    mutation(a_rebuilt_record_is_like_any_other, "tables-lost", "written after a loss"),
    mutation(the_steps_after_a_rebuild_write_what_differs, "tables-lost", "written after a loss"),
    mutation(generations_begin_at_one_again, "tables-lost", "generation"),
)
