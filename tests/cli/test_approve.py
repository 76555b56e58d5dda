"""``roadstead plans`` and ``approve``: what may still be approved, and what may not any more."""

from __future__ import annotations

from datetime import timedelta

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from tests.support import fleet_files
from tests.support.one_cluster import ONE, ready, record
from tests.support.pipeline_runs import phases, push, with_two_removed
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served
from tests.support.staged_fleets import NAMESPACE, ready_fleet, staged
from tests.support.sweeps import sweep

pytestmark = pytest.mark.lives


@pytest.fixture
def cloud() -> MemoryCloud:
    """A cloud whose last commit has removed two of three clusters, more than the budget."""
    return with_two_removed()


def test_deletes_can_be_approved_however_old_their_plan_is(cloud: MemoryCloud, url: str) -> None:
    cloud.clock.advance(timedelta(days=40).total_seconds())
    commit = cloud.state.fleet().commit[:8]
    listed = roadstead("plans", ROADSTEAD_URL=url).stdout
    assert f"2 removals need approval: roadstead approve {commit}" in listed
    done = roadstead("approve", commit, "--yes", ROADSTEAD_URL=url)
    assert done.returncode == 0, done.stderr
    cloud.run()
    assert set(phases(cloud)) == {"three"}


def test_an_old_plan_is_not_offered_and_refused_before_a_question(cloud: MemoryCloud, url: str) -> None:
    old = cloud.state.fleet().commit[:8]
    push(cloud, fleet_files.fleet("one", "two", "three"))
    cloud.run()
    listed = roadstead("plans", ROADSTEAD_URL=url).stdout
    assert "2 removals never approved; a newer commit was planned" in listed
    assert f"roadstead approve {old}" not in listed
    refused = roadstead("approve", old, ROADSTEAD_URL=url)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"a newer commit than {old} is planned" in refused.stderr
    assert set(phases(cloud)) == {"one", "two", "three"}


def test_what_flux_deletes_is_not_called_a_delete_of_clusters() -> None:
    made = ready_fleet()
    files = {path: text for path, text in staged().items() if path != "platform/namespaces.yaml"}
    push(made, files | {"platform/monitoring.yaml": NAMESPACE})
    made.run()
    with served(made.ports) as address:
        shown = roadstead("approve", made.state.fleet().commit[:8], ROADSTEAD_URL=address).stdout
        listed = roadstead("plans", ROADSTEAD_URL=address).stdout
    assert "7 removals need approval" in listed
    assert "Flux deletes what no commit brings back, on 7 clusters" in " ".join(shown.split())
    assert "everything that runs there" not in shown


def with_old_image() -> MemoryCloud:
    """Return a cloud with a cluster whose correction reimages its nodes, as a sweep found."""
    made = ready('  minNodeImageVersion: "202101.01"\n  drift: {action: correct}\n')
    made.azure.interventions.set_node_image(ONE, "system", "AKSUbuntu-2204gen2containerd-202001.01.0")
    sweep(made)
    return made


class TestCorrections:
    @pytest.fixture
    def cloud(self) -> MemoryCloud:
        return with_old_image()

    def test_a_correction_is_shown_with_its_diff_and_approved_as_shown(
        self, cloud: MemoryCloud, url: str
    ) -> None:
        for command in ("plans", "status"):
            listed = " ".join(roadstead(command, ROADSTEAD_URL=url).stdout.split())
            assert (
                "the correction of 1 cluster needs approval (roadstead approve --cluster NAME): one" in listed
            )
        assert "roadstead approve --cluster one" in roadstead("drift", ROADSTEAD_URL=url).stdout
        done = roadstead("approve", "--cluster", "one", "--yes", "--reason", "tonight", ROADSTEAD_URL=url)
        assert done.returncode == 0, done.stderr
        shown = " ".join(done.stdout.split())
        assert "- minNodeImageVersion: '202101.01'" in shown
        assert "the correction needs an approval: in place, nodes are reimaged" in shown
        assert "roadstead status one --watch" in shown
        act = cloud.state.acts(1)[0]
        assert (act.action, act.clusters, act.reason, act.result) == (
            *("approve", ("one",), "tonight"),
            "accepted",
        )
        cloud.run()
        assert record(cloud).divergence.drift is None
        again = roadstead("approve", "--cluster", "one", "--yes", ROADSTEAD_URL=url)
        assert (again.returncode, "no correction of one needs approval" in again.stderr) == (1, True)

    @pytest.mark.parametrize("arguments", [(), ("abcdef0", "--cluster", "one")])
    def test_either_a_commit_or_a_cluster_is_approved(self, url: str, arguments: tuple[str, ...]) -> None:
        refused = roadstead("approve", *arguments, ROADSTEAD_URL=url)
        assert refused.returncode == 2
        assert "give the COMMIT of a plan, or the cluster of a correction" in refused.stderr
