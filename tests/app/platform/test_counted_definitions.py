"""A plan that removes a definition says how many objects of its kind clusters have, once they counted."""

from __future__ import annotations

import pytest

from localcloud.memory.memory_cloud import MemoryCloud
from shared.kubernetes.readiness.observation import ObjectCount
from shared.ports import KubernetesApi
from tests.support.pipeline_runs import cloud_with, push, record_of, step_until
from tests.support.proposals import Repo
from tests.support.staged_fleets import DEV, PROD, staged, with_file

pytestmark = pytest.mark.lives

DEFINITION = "backups.data.example.com"
BACKUPS = b"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: backups.data.example.com}
spec:
  group: data.example.com
  names: {kind: Backup, listKind: BackupList, plural: backups, singular: backup}
  scope: Namespaced
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


@pytest.fixture
def cloud() -> MemoryCloud:
    return cloud_with(with_file("backups.yaml", BACKUPS))


def on(cloud: MemoryCloud, name: str) -> KubernetesApi:
    record = record_of(cloud, name)
    return cloud.kubernetes.connect(record.desired.id)


def back_up(cloud: MemoryCloud, cluster: str, *names: str) -> None:
    for name in names:
        metadata = {"name": name, "namespace": "default"}
        on(cloud, cluster).apply(
            {"apiVersion": "data.example.com/v1", "kind": "Backup", "metadata": metadata}
        )


def counted(cloud: MemoryCloud) -> dict[str, ObjectCount | None]:
    known = cloud.state.readiness((*DEV, *PROD))
    return {name: record.counted.get(DEFINITION) for name, record in known.items()}


def reason(cloud: MemoryCloud, commit: str, cluster: str) -> str:
    plan = cloud.state.plan(commit)
    assert plan is not None
    return next(item.reason for item in plan.plan.items if item.cluster == cluster)


def test_nothing_is_counted_while_no_plan_removes_a_definition(cloud: MemoryCloud) -> None:
    push(cloud, with_file("backups.yaml", BACKUPS.replace(b"type: object", b"type: object, properties: {}")))
    cloud.run()
    assert set(counted(cloud).values()) == {None}


def test_a_pull_request_says_what_goes_with_a_definition(cloud: MemoryCloud) -> None:
    back_up(cloud, "a1", "nightly", "weekly")
    back_up(cloud, "b4", "nightly")
    repo = Repo(cloud)
    git = cloud.repository
    git.reset(git.head("main"), "topic")
    head = git.push(staged(), branch="topic")
    number = git.pulls.open("Remove backups", "topic", "main").number
    repo.announce(number, head, "opened")
    step_until(cloud, lambda: bool(repo.comments(number)))
    (body,) = repo.comments(number)
    assert "with every Backup of every namespace" in body
    assert "how many of them exist is unknown" in " ".join(body.split())
    cloud.run()
    (body,) = repo.comments(number)
    assert "3 objects on 7 clusters, counted 20" in " ".join(body.split())
    assert {known.objects for known in counted(cloud).values() if known} == {0, 1, 2}


def test_a_plan_of_the_branch_has_the_count_of_each_cluster_and_asks_once_an_hour(cloud: MemoryCloud) -> None:
    back_up(cloud, "a1", "nightly", "weekly")
    push(cloud, staged())
    cloud.run()
    before = counted(cloud)
    assert before["a1"] is not None
    assert before["a1"].objects == 2
    push(cloud, staged())
    cloud.run()
    assert counted(cloud) == before
    assert "2 objects on 1 cluster" in reason(cloud, cloud.state.fleet().commit, "a1")
    cloud.clock.advance(7200)
    back_up(cloud, "a1", "monthly")
    push(cloud, staged())
    cloud.run()
    after = counted(cloud)["a1"]
    assert after is not None
    assert after.objects == 3


def test_what_a_cluster_that_does_not_answer_has_is_unknown(cloud: MemoryCloud) -> None:
    on(cloud, "a2").delete(
        next(found for found in on(cloud, "a2").list("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    )
    commit = push(cloud, staged())
    cloud.run()
    known = counted(cloud)["a2"]
    assert known is not None
    assert known.objects is None
    assert "unknown" not in reason(cloud, commit, "a1")
