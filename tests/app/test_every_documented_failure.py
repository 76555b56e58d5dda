"""Every documented code, over the wire: what happens next, again when or never, and what ``why`` says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localcloud.azure.wire.arm_server import ArmServer
from localcloud.azure.world.failures.documented import DocumentedFailure, failures
from localcloud.common.certificates import Authority
from localcloud.memory.memory_cloud import MemoryCloud
from shared.adapters.arm import ArmAzure
from shared.app.api.acts.cluster import replay
from shared.app.api.views.why import why_view
from shared.cluster.failures.catalogue import AZURE, Actor, CatalogueEntry, entry_of
from shared.cluster.record_parts import Phase
from shared.rollouts.decide import decide
from shared.rollouts.waits import MemberStanding
from tests.support import fleet_files
from tests.support.azure_ports import StaticCredential
from tests.support.documented_failures import ENTRIES
from tests.support.pipeline_runs import phases, push, status
from tests.support.sample import sample

pytestmark = pytest.mark.lives

AGAIN = {
    **dict.fromkeys(("Throttled", "Unavailable", "Dependency", "Blocked"), 5),
    **dict.fromkeys(("Unauthorized", "Unauthenticated"), 15),
    **dict.fromkeys(("Interrupted", "RoleNotEffective"), 60),
    **dict.fromkeys(("OutOfCapacity", "Obstructed", "Refused", "QuotaExceeded", "OutOfAddresses"), 600),
    "Conflict": 10,
    "Unexplained": 300,
}
"""An error of the class is tried again for the first time after so many seconds, or after half of that."""
NEVER = {
    *("InvalidManifest", "TooLarge", "Immutable", "Aborted"),
}
"""Classes after which a write is not repeated."""
READ_AGAIN = {"ResourceNotFound", "ResourceGroupNotFound"}
"""Nothing has failed: the job begins again at its first step."""
LONG = 86_400.0
LARGER = partial(fleet_files.cluster, count=3)
MOST = 3
"""So many failures of a class are walked in a run that is not deep."""


def found(name: str) -> CatalogueEntry:
    """Return the entry that a failure has to lead to."""
    failure = failures()[name.lower()]
    key = ENTRIES.get(failure.name)
    entry = entry_of(key) if key else AZURE.find(failure.name)
    assert entry is not None, name
    return entry


def of(*when: str) -> Mapping[str, list[str]]:
    """Return the names of the failures that happen at a write or a delete, by the class of their entries."""
    classes: dict[str, list[str]] = {}
    for failure in failures().values():
        if failure.when in when:
            classes.setdefault(found(failure.name).kind.__name__, []).append(failure.name)
    return classes


@contextmanager
def on_the_wire(authority: tuple[Authority, Path]) -> Iterator[MemoryCloud]:
    """Yield a cloud whose app reaches Azure through its adapter and a socket."""
    cloud = MemoryCloud(throttle=False)
    with ArmServer(cloud.azure, authority[0], accepts=lambda token: token == "a-token") as server:
        adapter = ArmAzure(StaticCredential(), base_url=server.url)
        cloud.with_ports(lambda ports: replace(ports, azure=adapter))
        yield cloud
        adapter.close()


def walk(cloud: MemoryCloud, names: Iterable[str]) -> Mapping[str, tuple[Any, datetime]]:
    """Run until each cluster has failed, or is Ready; return what is seen of its first failure, and when."""
    seen: dict[str, tuple[Any, datetime]] = {}

    def all_seen() -> bool:
        ready = {record.name for record in cloud.state.clusters() if record.phase is Phase.READY}
        for record in cloud.state.clusters():
            failure = record.job.step.failure
            if record.name not in seen and failure is not None:
                seen[record.name] = why_view(record.name, cloud.ports), failure.since
        return seen.keys() | ready == {*names}

    cloud.run(LONG, until=all_seen)
    return seen


def check(failure: DocumentedFailure, why: Any, at: datetime) -> bool:
    """Check what ``why`` says of a failure; return whether the app tries again."""
    entry, error, name = found(failure.name), why["lastError"], failure.name
    assert (error["entry"], error["meaning"], error["link"]) == (entry.key, entry.meaning, entry.link), name
    assert failure.body["message"][:100] in error["message"], name
    kind = error["class"]
    never = kind in NEVER or (kind == "Blocked" and failure.when == "operation")  # AKS has abandoned a drain
    assert never or kind in AGAIN, name
    if entry.actor is not Actor.NOBODY:
        assert f"Who acts: {entry.actor}." in why["suggestedAction"], name
    if never:
        assert (why["nextAt"], why["phase"]) == (None, "Failed"), name
        return False
    wait = datetime.fromisoformat(why["nextAt"]) - at
    assert timedelta(seconds=AGAIN[kind] // 2 - 1) <= wait <= timedelta(seconds=AGAIN[kind]), (name, wait)
    return True


WRITES, DELETES = of("request", "operation"), of("delete")


@pytest.mark.parametrize("kind", WRITES)
def test_after_a_write_that_fails_the_app_does_what_its_entry_says(
    kind: str, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    names = {f"c{number}": name for number, name in enumerate(sample(kind, WRITES[kind], MOST))}
    with on_the_wire(authority) as cloud:
        for cluster, name in names.items():
            cloud.azure.interventions.fail_next(cluster, name)
        push(cloud, fleet_files.fleet(*names))
        seen = walk(cloud, names)
        expected = {}
        for cluster, name in names.items():
            again = name in READ_AGAIN or check(failures()[name.lower()], *seen[cluster])
            expected[cluster] = Phase.READY if again else Phase.FAILED
        cloud.run(LONG)
        assert phases(cloud) == expected


@pytest.mark.parametrize("kind", DELETES)
def test_a_delete_that_fails_goes_on_once_the_reason_is_gone(
    kind: str, authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    names = {f"c{number}": name for number, name in enumerate(sample(kind, DELETES[kind], MOST))}
    with on_the_wire(authority) as cloud:
        push(cloud, fleet_files.fleet(*names, budget=100))
        cloud.run(LONG)
        for cluster, name in names.items():
            cloud.azure.interventions.fail_next(cluster, name)
        push(cloud, fleet_files.fleet(budget=100))
        seen = walk(cloud, names)
        for cluster, name in names.items():
            assert check(failures()[name.lower()], *seen[cluster])
        cloud.run(LONG)
        assert phases(cloud) == {}


BLOCKS = (
    *("ScopeLocked", "PolicyAtDelete", "InUseSubnetCannotBeDeleted", "PublicIPAddressCannotBeDeleted"),
    *(
        "LoadBalancerInUseByVirtualMachineScaleSet",
        "InUseRouteTableCannotBeDeleted",
        "ReadOnlyDisabledSubscription",
    ),
    "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted",
)


def test_what_keeps_a_cluster_is_waited_for_and_the_delete_goes_on_once_it_is_gone(
    authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    names = {f"c{number}": name for number, name in enumerate(BLOCKS)}
    with on_the_wire(authority) as cloud:
        push(cloud, fleet_files.fleet(*names, budget=100))
        cloud.run(LONG)
        for cluster, name in names.items():
            cloud.azure.interventions.block(cluster, name)
        push(cloud, fleet_files.fleet(budget=100))
        for cluster, (why, at) in walk(cloud, names).items():
            assert check(failures()[names[cluster].lower()], why, at)
            assert why["lastError"]["class"] == ("Refused" if "Policy" in names[cluster] else "Obstructed")
        cloud.run(6 * 3600)
        shown = {cluster: why_view(cluster, cloud.ports) for cluster in names}
        assert all(
            why is not None and "Roadstead continues by itself" in why["suggestedAction"]
            for why in shown.values()
        )
        assert set(phases(cloud).values()) <= {Phase.DELETING, Phase.STALLED}
        for cluster in names:
            cloud.azure.interventions.unblock(cluster)
        cloud.run(3700)
        assert phases(cloud) == {}


def test_a_change_that_a_policy_refuses_counts_as_failed_and_goes_on_by_itself_once_the_policy_is_gone(
    authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with on_the_wire(authority) as cloud:
        files = fleet_files.fleet("atlantic", "baltic")
        push(cloud, files)
        cloud.run(LONG)
        cloud.azure.interventions.deny("atlantic", "RequestDisallowedByPolicy")
        commit = push(
            cloud, files | {f"clusters/{name}/cluster.yaml": LARGER(name) for name in phases(cloud)}
        )
        cloud.run(2 * 86_400)
        assert phases(cloud) == {"atlantic": Phase.STALLED, "baltic": Phase.READY}
        state, told = status(cloud, commit)
        assert state == "failure"
        assert "atlantic" in told
        rollout = cloud.state.rollout(commit)
        assert rollout is not None
        standings = decide(rollout, {found.name: found for found in cloud.state.summaries()}, cloud.clock())
        assert standings.standings["atlantic"] is MemberStanding.FAILED
        assert standings.standings["baltic"] is MemberStanding.WAITING
        why = why_view("atlantic", cloud.ports)
        assert why is not None
        assert why["lastError"] is not None
        assert (why["lastError"]["class"], why["phase"]) == ("Refused", "Stalled")
        assert (
            "Who acts: the owner of the policy. Roadstead tries again within an hour"
            in (why["suggestedAction"])
        )
        assert "takes more than" not in why["suggestedAction"]
        cloud.azure.interventions.unblock("atlantic")
        cloud.run(2 * 3700)
        assert phases(cloud) == {"atlantic": Phase.READY, "baltic": Phase.READY}
        assert status(cloud, commit)[0] == "success"
        assert [record.observed_generation for record in cloud.state.clusters()] == [2, 2]


def test_a_role_that_is_missing_for_over_an_hour_counts_as_failed_and_is_tried_until_somebody_assigns_it(
    authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with on_the_wire(authority) as cloud:
        cloud.azure.interventions.deny("atlantic", "LinkedAuthorizationFailed")
        commit = push(cloud, fleet_files.fleet("atlantic"))
        cloud.run(3600, until=lambda: False)
        why = why_view("atlantic", cloud.ports)
        assert why is not None
        assert why["lastError"] is not None
        assert (why["phase"], why["lastError"]["class"]) == ("Provisioning", "RoleNotEffective")
        assert why["suggestedAction"].startswith("Assign a role with Microsoft.Network/ddosProtectionPlans/")
        assert all(part in why["suggestedAction"] for part in (" on /subscriptions/", " to "))
        cloud.run(LONG, until=lambda: False)
        assert phases(cloud) == {"atlantic": Phase.STALLED}
        assert status(cloud, commit)[0] == "failure"
        why = why_view("atlantic", cloud.ports)
        assert why is not None
        assert "Who acts: who assigns roles in Azure. Roadstead tries again" in why["suggestedAction"]
        cloud.azure.interventions.unblock("atlantic")
        cloud.run(1200, until=lambda: False)
        assert phases(cloud) == {"atlantic": Phase.READY}
        assert status(cloud, commit)[0] == "success"


def test_an_operator_has_a_refused_change_tried_again_at_once(
    authority: tuple[Authority, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    with on_the_wire(authority) as cloud:
        cloud.azure.interventions.deny("atlantic", "RequestDisallowedByPolicy")
        push(cloud, fleet_files.fleet("atlantic"))
        cloud.run(3600)
        assert phases(cloud) == {"atlantic": Phase.STALLED}
        cloud.azure.interventions.unblock("atlantic")
        replay("atlantic", "ops", cloud.ports)
        cloud.run(600)
        assert phases(cloud) == {"atlantic": Phase.READY}


def test_every_entry_and_every_code_is_walked() -> None:
    codes = {code.lower() for entry in AZURE.entries if not entry.family for code in entry.codes if code}
    assert codes <= failures().keys() | {failure.body["code"].lower() for failure in failures().values()}
    walked = {found(failure.name).key for failure in failures().values()}
    assert {entry.key for entry in AZURE.entries} - walked == set()
