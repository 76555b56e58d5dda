"""A worker that has the kubeconfig of a cluster waits for Flux in its message."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from localcloud.kubernetes.world.controllers import Delays
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.access.context import ClusterAccess
from shared.app.access.lease_guard import LeasedRecord, LeaseLost
from shared.app.access.rate_limiter import RateLimited
from shared.app.worker.stay import FIRST, PAUSE, SHARE, Stay
from shared.azure.rate_limits import ARM_READ
from shared.cluster.job import Lease
from shared.cluster.outcomes import Done, Outcome, Wait
from shared.cluster.recipes import Step
from shared.cluster.record import ClusterRecord
from shared.cluster.record_parts import Phase
from shared.cluster.transitions.acceptance import accept_change
from shared.ports import Ports
from shared.ports.process import Stays
from tests.support import one_cluster
from tests.support.cluster_records import record
from tests.support.one_cluster import fetched
from tests.support.pipeline_runs import another_worker_for_each_message, phases, push, record_of


def fleet(rollout: float = 0.0, places: int = 8) -> MemoryCloud:
    """Return a cloud whose cluster is Ready; another worker took each message."""
    cloud = MemoryCloud(delays=Delays(rollout=rollout))
    cloud.with_ports(lambda ports: replace(ports, process=replace(ports.process, stays=Stays(places))))
    another_worker_for_each_message(cloud)
    push(cloud, one_cluster.files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def test_a_cluster_with_local_accounts_costs_one_kubeconfig() -> None:
    assert fetched(fleet()) == 1


def test_flux_that_takes_longer_than_half_a_lease_costs_more() -> None:
    quick, slow = fleet(rollout=4), fleet(rollout=40)
    assert fetched(quick) == 1
    assert fetched(slow) > 1


def test_without_a_free_place_a_wait_ends_the_message() -> None:
    assert fetched(fleet(rollout=4, places=0)) > fetched(fleet(rollout=4)) == 1


def test_the_first_pause_is_brief_and_needs_no_place_and_later_ones_do() -> None:
    assert runs(AT_WORK, places=0) == 2


def test_places_are_free_again_after_a_stay() -> None:
    stays = Stays(1)
    with stays.place() as first, stays.place() as second:
        assert (first, second) == (True, False)
    with stays.place() as again:
        assert again


class Entered(ClusterAccess):
    """The access of a worker that has a kubeconfig, or a token."""

    def __init__(self, ports: Ports, *, with_secret: bool) -> None:
        super().__init__(record(), ports)
        self._secret = with_secret

    @property
    def with_secret(self) -> bool:
        return self._secret


def leased(cloud: MemoryCloud, step: Step) -> LeasedRecord:
    """Return a record with a lease, as a worker has it before its first step."""
    lease = Lease("worker", cloud.clock() + timedelta(seconds=20), cloud.clock())
    found = cloud.state.save(replace(record(step=step), etag=""))
    return LeasedRecord(replace(found, job=replace(found.job, lease=lease)), cloud.ports)


def runs(
    outcome: Outcome,
    *,
    step: Step = Step.VERIFY,
    with_secret: bool = True,
    left: float = 999,
    places: int = 8,
) -> int:
    """Return how often a step runs in one message that always has this outcome, with a lease of 20 s."""
    cloud, seen = MemoryCloud(), list[ClusterRecord]()
    cloud.with_ports(lambda ports: replace(ports, process=replace(ports.process, stays=Stays(places))))

    def run(current: ClusterRecord) -> Outcome:
        seen.append(current)
        return outcome

    access = Entered(cloud.ports, with_secret=with_secret)
    stay = Stay(leased(cloud, step), cloud.ports, access, cloud.ports.elapsed() + left)
    assert stay.run(run) == outcome
    return len(seen)


AT_WORK = Wait(20, "Flux is at work")


def test_a_step_runs_again_for_half_a_lease() -> None:
    pauses = [FIRST, 2 * FIRST, 4 * FIRST, 8 * FIRST]
    assert sum(pauses) <= 20 * SHARE < sum(pauses) + PAUSE
    assert runs(AT_WORK) == 1 + len(pauses)
    assert runs(Wait(FIRST, "the API server does not serve it yet")) == 1 + 20 * SHARE / FIRST


@pytest.mark.parametrize(
    "outcome",
    [
        Done(),
        Wait(20, "Flux: it fails", action_required="Correct it."),
        Wait(300, "somebody suspended it", open_ended=True),
    ],
)
def test_what_a_person_ends_is_not_waited_for(outcome: Outcome) -> None:
    assert runs(outcome) == 1


def test_nobody_stays_with_a_token_or_for_azure_or_past_the_last_start() -> None:
    assert runs(AT_WORK, with_secret=False) == 1
    assert runs(AT_WORK, step=Step.NODE_POOLS) == 1
    assert runs(AT_WORK, left=FIRST / 2) == 1


def test_a_commit_that_is_accepted_meanwhile_ends_the_stay() -> None:
    cloud = MemoryCloud()
    push(cloud, one_cluster.files())
    sleep = cloud.ports.sleep

    def accept_meanwhile(seconds: float) -> None:
        sleep(seconds)
        current = one_cluster.record(cloud)
        if current.generation == 1:
            cloud.state.save(accept_change(current, current.desired, commit="d" * 40, now=cloud.clock()))

    cloud.with_ports(lambda ports: replace(ports, sleep=accept_meanwhile))
    cloud.run()
    after = one_cluster.record(cloud)
    assert (after.observed_generation, after.phase) == (2, Phase.READY)


def test_a_limit_that_is_free_soon_does_not_end_the_message_and_a_later_one_does() -> None:
    cloud, left = MemoryCloud(), [True, False]
    stay = Stay(
        leased(cloud, Step.VERIFY),
        cloud.ports,
        Entered(cloud.ports, with_secret=True),
        cloud.ports.elapsed() + 999,
    )

    def limited_once(_: ClusterRecord) -> Outcome:
        if left.pop(0):
            raise RateLimited(ARM_READ, "a", cloud.clock() + timedelta(seconds=7))
        return Done()

    begin = cloud.ports.elapsed()
    assert stay.run(limited_once) == Done()
    assert cloud.ports.elapsed() - begin == 7

    def limited(_: ClusterRecord) -> Outcome:
        raise RateLimited(ARM_READ, "a", cloud.clock() + timedelta(seconds=60))

    with pytest.raises(RateLimited):
        stay.run(limited)


def test_a_worker_that_stays_has_saved_its_lease_and_notices_a_newer_commit() -> None:
    cloud = MemoryCloud()
    mine = leased(cloud, Step.VERIFY)
    stay = Stay(mine, cloud.ports, Entered(cloud.ports, with_secret=True), cloud.ports.elapsed() + 999)
    seen: list[str] = []

    def accept_meanwhile(_: ClusterRecord) -> Outcome:
        current = record_of(cloud, "one")
        seen.append(current.job.lease.owner if current.job.lease else "")
        if len(seen) == 2:
            cloud.state.save(accept_change(current, current.desired, commit="d" * 40, now=cloud.clock()))
        return AT_WORK

    with pytest.raises(LeaseLost):
        stay.run(accept_meanwhile)
    assert seen == ["", "worker"]
