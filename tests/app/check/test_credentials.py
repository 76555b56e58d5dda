"""The Secret with which Flux reads its source: a check sees who changed it, and looks at no value."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from localcloud.kubernetes.world.object_store import At, WriteMode
from localcloud.kubernetes.world.writes.patches import MERGE
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api import schema
from shared.app.api.views.tree import tree_view
from shared.cluster.record import to_json
from shared.cluster.record_parts import Phase
from shared.json_tree import Json
from shared.kubernetes.flux_objects import SECRET, GitCredentials
from shared.kubernetes.inside import COMPONENT
from tests.support.calls_inside import counted
from tests.support.checks import check, condition
from tests.support.one_cluster import api, files, live, ready, record, world
from tests.support.pipeline_runs import phases, push

TOKEN, OTHER = "a-token-of-flux", "somebody-s-token"


def with_credentials(cloud: MemoryCloud, token: str = TOKEN) -> None:
    config = replace(cloud.ports.config, git_credentials=GitCredentials("git", token))
    cloud.with_ports(lambda ports: replace(ports, config=config))


@pytest.fixture
def cloud() -> MemoryCloud:
    """Return a cloud in which the cluster is Ready, with git credentials."""
    cloud = MemoryCloud(throttle=False)
    with_credentials(cloud)
    push(cloud, files())
    cloud.run()
    assert phases(cloud) == {"one": Phase.READY}
    return cloud


def patched(cloud: MemoryCloud, patch: Json) -> None:
    """Change the Secret as a person does."""
    kind = world(cloud).kind(SECRET.api_version, SECRET.kind)
    assert kind is not None
    world(cloud).patch(
        At(kind, SECRET.name, SECRET.namespace), patch, MERGE, WriteMode(manager="kubectl-edit")
    )


def test_credentials_as_they_were_applied_are_healthy(cloud: MemoryCloud) -> None:
    check(cloud)
    assert condition(record(cloud)).status is True


@pytest.mark.parametrize(
    ("patch", "fields"),
    [
        ({"data": {"password": "c29tZWJvZHktcy10b2tlbg=="}}, "data.password"),
        ({"data": {"identity": "a2V5"}}, "data.identity"),
        ({"data": {"password": None}}, "data.password"),
        ({"data": {"username": "bw==", "identity": "a2V5"}}, "data.identity, data.username"),
    ],
)
def test_a_change_by_somebody_else_is_named_by_its_fields_and_no_value_leaves_the_check(
    cloud: MemoryCloud, patch: Json, fields: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    patched(cloud, patch)
    check(cloud)
    found = condition(record(cloud))
    assert (found.status, found.reason) == (False, "ObjectChanged")
    assert found.message.startswith(
        f"the Secret flux-system in flux-system: somebody changed what Roadstead applied: {fields}"
    )
    left = to_json(record(cloud)) + caplog.text
    for value in (TOKEN, OTHER, *live(cloud, SECRET)["data"].values()):
        assert value not in left


def test_credentials_that_somebody_deleted_are_missing(cloud: MemoryCloud) -> None:
    api(cloud).delete(live(cloud, SECRET))
    check(cloud)
    assert condition(record(cloud)).reason == "ObjectMissing"


def test_the_tree_counts_credentials_among_what_roadstead_applied_and_names_their_change(
    cloud: MemoryCloud,
) -> None:
    check(cloud)
    healthy = applied(cloud)
    patched(cloud, {"data": {"password": "c29tZWJvZHktcy10b2tlbg=="}})
    check(cloud)
    found = applied(cloud)
    assert (found["total"], found["ready"], found["failed"]) == (healthy["total"], healthy["ready"] - 1, 1)
    assert [
        (unhealthy["kind"], unhealthy["name"], unhealthy["reason"]) for unhealthy in found["unhealthy"]
    ] == [("Secret", "flux-system", "ObjectChanged")]


def applied(cloud: MemoryCloud) -> schema.ObjectGroup:
    """Return what the tree has of all that Roadstead applied."""
    tree = tree_view("one", cloud.ports)
    assert tree is not None
    return next(part for part in tree["flux"] if part["kind"] == COMPONENT)


def test_a_token_that_is_being_replaced_makes_no_cluster_unhealthy(cloud: MemoryCloud) -> None:
    with_credentials(cloud, "a-newer-token")
    check(cloud)
    assert condition(record(cloud)).status is True


def test_a_cluster_without_credentials_costs_no_read_of_them_and_later_ones_are_not_missing_yet() -> None:
    cloud = ready()
    with_credentials(cloud)
    with counted(cloud) as calls:
        check(cloud)
    assert condition(record(cloud)).status is True
    assert str(SECRET) not in map(str, calls.read)
