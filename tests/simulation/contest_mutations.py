"""Mutations that a second app of the fleet reveals: it is not looked for, not marked, or not believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from shared.app.access import contests
from shared.app.worker import worker
from shared.app.worker.steps import registry
from shared.azure import ownership
from shared.azure.ownership import Installation, OwnerTags
from shared.cluster.outcomes import Done, Outcome, Wait
from shared.cluster.record import ClusterRecord
from shared.json_tree import Json
from shared.ports import Ports
from tests.simulation.mutations import Mutation


def another_installation_is_not_looked_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OwnerTags, "rivals", lambda *_: ())


def the_cluster_of_another_installation_gets_no_tag(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(contests, "_leave_mark", lambda *_: None)


def the_contest_tag_stops_nobody(patch: pytest.MonkeyPatch) -> None:
    def named(self: OwnerTags, cluster: Json) -> Iterator[Installation]:
        creator = ownership.tag(cluster, ownership.INSTALLATION_TAG)
        if creator is not None and self.installation and Installation.of(creator).id != self.installation.id:
            yield Installation.of(creator)

    patch.setattr(OwnerTags, "_named", named)


def _mutation(remove: Callable[[pytest.MonkeyPatch], None], *rules: str) -> Mutation:
    return Mutation(remove, "second-installation", frozenset(rules))


def the_steps_of_a_contested_cluster_count_as_done(patch: pytest.MonkeyPatch) -> None:

    def without_contests(record: ClusterRecord, ports: Ports, *, inside: bool = False) -> Outcome:
        outcome = registry.run_step(record, ports, inside=inside)
        return Done() if isinstance(outcome, Wait) and outcome.contest is not None else outcome

    patch.setattr(worker, "run_step", without_contests)


CONTEST_MUTATIONS = (
    _mutation(the_steps_of_a_contested_cluster_count_as_done, "contested", "false ready"),
    _mutation(another_installation_is_not_looked_for, "contested"),
    _mutation(the_cluster_of_another_installation_gets_no_tag, "contested"),
    _mutation(the_contest_tag_stops_nobody, "contested"),
)
