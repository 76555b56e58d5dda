"""An invalid fleet.yaml in the middle of a rollout: nothing starts, and nobody plans in vain."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.rollout import act_on_rollout
from shared.app.api.views.rollouts import rollout_view
from shared.cluster.record_parts import Phase
from shared.rollouts.rollout_acts import ActKind
from tests.support.pipeline_runs import phases, push
from tests.support.replaced_ports import around
from tests.support.staged_fleets import DEV, PROD, changed, ready_fleet, staged, tags

pytestmark = pytest.mark.lives

STAGES = """\
  rollout:
    stages:
      - name: all
        groups:
          - {maxConcurrency: "2", failureBudget: "3"}
"""
HOUR = 3600


def invalid(value: str) -> dict[str, bytes]:
    files = staged(STAGES, tags(value))
    files["fleet.yaml"] += b"  nonsense: true\n"
    return files


def begun() -> tuple[MemoryCloud, str]:
    """Return a fleet whose newest fleet.yaml is invalid, and the commit of its unfinished rollout."""
    cloud = ready_fleet(STAGES)
    commit = push(cloud, staged(STAGES, tags("one")))
    cloud.run(until=lambda: Phase.UPDATING in phases(cloud).values())
    push(cloud, invalid("one"))
    cloud.run(seconds=HOUR)
    assert 0 < len(changed(cloud, "one")) < len(DEV + PROD)
    return cloud, commit


def whole_plans(cloud: MemoryCloud) -> list[str]:
    """Return the list to which every read of all records is added from now on."""
    reads, clusters = list[str](), cloud.ports.state.clusters

    def counted() -> object:
        reads.append("clusters")
        return clusters()

    around(cloud, "state", clusters=counted)
    return reads


def test_the_fleet_is_not_planned_again_before_something_changes() -> None:
    cloud, _ = begun()
    reads = whole_plans(cloud)
    cloud.run(seconds=HOUR, until=lambda: False)
    assert reads == []
    push(cloud, staged(STAGES, tags("two")))
    cloud.run(seconds=2 * HOUR)
    assert changed(cloud, "two") == {*DEV, *PROD}


def test_what_waits_and_the_rollout_say_so() -> None:
    cloud, commit = begun()
    shown = rollout_view(commit, cloud.ports)
    assert shown is not None
    assert shown["state"] == "Waiting for a valid fleet.yaml"
    told = {waiting["waits"]: waiting["suggestedAction"] for waiting in shown["waiting"]}
    why = "waits, because the fleet.yaml of a newer commit is invalid"
    assert told[why] == "Correct fleet.yaml and push."


def test_what_a_person_decides_meanwhile_is_stored_and_plans_nothing() -> None:
    cloud, commit = begun()
    reads = whole_plans(cloud)
    given = act_on_rollout(commit, ActKind.PAUSE, "", "ops", cloud.ports)
    assert given.status == 202, given.body
    cloud.run(seconds=600, until=lambda: False)
    rollout = cloud.state.rollout(commit)
    assert rollout is not None
    assert (rollout.people.paused is not None, reads) == (True, [])


def test_the_clusters_go_on_once_the_file_is_as_it_was() -> None:
    cloud, _ = begun()
    push(cloud, staged(STAGES, tags("one")))
    cloud.run(seconds=2 * HOUR)
    assert changed(cloud, "one") == {*DEV, *PROD}
