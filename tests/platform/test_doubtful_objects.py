"""What the API server takes, and what then does not do what is meant, is a note and no fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from shared.platform.rules import ClusterPlatform, Finding
from shared.platform.rules.conflicts import selects_nothing
from shared.platform.rules.limits import beyond_quota
from tests.platform.inventories import manifest
from tests.platform.judged_objects import TAKEN, cron, ingress, quota, service, webhook, workload
from tests.support.built_platforms import NAMESPACE, Platform, calls_of

SERVICE = service()
CPU = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


def notes(*objects: dict[str, Any]) -> list[str]:
    platform = Platform(NAMESPACE, *map(yaml.safe_dump, objects))
    assert platform.problems == []
    return platform.notes


@pytest.mark.parametrize(
    ("path", "kind", "told"),
    [
        ("/api(/|$)(.*)", "Prefix", True),
        ("/v[12]", "Exact", True),
        ("/api/.*", "Prefix", True),
        ("/api(/|$)(.*)", "ImplementationSpecific", False),
        ("/.well-known/a~b%20c/*", "Prefix", False),
        ("/index.html", "Exact", False),
    ],
)
def test_a_regular_expression_is_no_prefix(path: str, kind: str, told: bool) -> None:
    found = [note for note in notes(SERVICE, ingress(path, kind)) if "letter for letter" in note]
    assert bool(found) == told


@pytest.mark.parametrize(("seconds", "told"), [(0, True), (9, True), (10, False)])
def test_a_deadline_of_a_cron_job_is_longer_than_its_controller_sleeps(seconds: int, told: bool) -> None:
    assert ["no Job may ever run" in note for note in notes(cron(startingDeadlineSeconds=seconds))] == [
        True
    ] * told


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        (
            [quota(**{"requests.cpu": "1"}), workload(container=CPU, replicas=4)],
            "for 2, and this allows 1, so",
        ),
        ([quota(**{"requests.memory": "3Gi"}), workload(container=CPU, replicas=4)], "for 4096Mi"),
        (
            [quota(pods="3"), workload(replicas=2), workload("api", replicas=2)],
            "for 4 pods, and this allows 3",
        ),
        (
            [quota(pods="3"), workload(replicas=3)],
            "for 4 pods, and this allows 3: the last is the pod that an",
        ),
        ([quota(pods="4"), workload(replicas=3)], ""),
        ([quota(pods="3"), workload(replicas=3, strategy={"type": "Recreate"})], ""),
        ([manifest("ResourceQuota", "apps/q", spec={"hard": {"pods": "1"}}), workload(replicas=3)], ""),
    ],
)
def test_a_quota_is_large_enough_for_what_its_namespace_asks_for(
    objects: list[dict[str, Any]], told: str
) -> None:
    found = [note for note in notes(*objects) if "the workloads of platform ask for" in note]
    assert len(found) == bool(told)
    assert told in "".join(found)


def test_what_an_autoscaler_scales_counts_as_one_pod() -> None:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": ref, "maxReplicas": 9}
    scaler = manifest("HorizontalPodAutoscaler", "platform/web", "autoscaling/v2", spec=spec)
    found = notes(quota(pods="2"), workload(replicas=9), scaler)
    assert [note for note in found if "ask for" in note] == []


@pytest.mark.parametrize(("given", "told"), TAKEN)
def test_what_does_not_do_what_is_meant_is_a_note(given: dict[str, Any], told: str) -> None:
    found = notes(given)
    assert [told in note for note in found] == ([True] if told else [])


def test_a_bundle_that_cert_manager_injects_is_not_in_git() -> None:
    hooks = webhook(clientConfig={"url": "https://hooks.example", "caBundle": "Cg=="})
    assert notes(hooks) == []
    hooks["metadata"]["annotations"] = {"cert-manager.io/inject-apiserver-ca": "true"}
    (note,) = notes(hooks)
    assert "webhooks[0].clientConfig.caBundle: cert-manager writes caBundle" in note


def test_a_claim_of_a_volume_of_another_cluster_is_a_note() -> None:
    requests = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": requests, "volumeName": "pvc-1"}
    (note,) = notes(manifest("PersistentVolumeClaim", "platform/a", spec=spec))
    assert "nothing here defines PersistentVolume pvc-1, and without it it stays Pending" in note


def crowd(count: int) -> Platform:
    """Return a platform with so many quotas, workloads with the same label, and Services of all of these."""
    platform = Platform(NAMESPACE)
    for number in range(count):
        for given in (quota(pods="1"), service(selector={"app": "web"}), workload()):
            given["metadata"]["name"] = f"{given['kind'].lower()}-{number}"
            platform.add(yaml.safe_dump(given))
    return platform


@pytest.mark.parametrize("rule", [beyond_quota, selects_nothing])
def test_the_work_grows_with_the_objects_and_not_with_their_square(
    rule: Callable[[ClusterPlatform], Iterator[Finding]],
) -> None:
    assert calls_of(rule, crowd(80))[1] < 2.5 * calls_of(rule, crowd(40))[1]
