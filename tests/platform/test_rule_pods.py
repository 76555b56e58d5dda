"""Values of pods, and of what creates them, that no cluster takes or no container starts with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.platform.inventories import release
from tests.platform.judged_objects import PODS, workload_with
from tests.support.built_platforms import NAMESPACE, Platform

SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


@pytest.mark.parametrize(
    ("pod", "container", "problem"),
    [
        ({}, {"resources": {"limits": {"memory": "512m"}}}, "512m is less than 1 MiB"),
        ({}, {"resources": {"limits": {"memory": "512Mi", "cpu": "512m"}}}, ""),
        ({}, {"resources": {"limits": {"memory": "64"}}}, "64 is less than 1 MiB"),
        ({}, {"resources": {"requests": {"memory": "64"}}}, ""),
        ({}, {"imagePullPolicy": "always"}, "imagePullPolicy"),
        ({"dnsPolicy": "clusterFirst"}, {}, "dnsPolicy"),
        (
            {"tolerations": [{"key": "a", "operator": "Exist"}]},
            {},
            "must be Equal or Exists or Gt or Lt, got Exist; did you mean Exists?",
        ),
        ({"tolerations": [{"key": "a", "operator": "Exists"}]}, {}, ""),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            {},
            "does not go with operator Exists",
        ),
        ({"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]}, {}, "must be 1 or more, got 0"),
        ({"topologySpreadConstraints": [{**SPREAD, "maxSkew": 1}]}, {}, ""),
        (
            {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 1, "whenUnsatisfiable": "Never"}]},
            {},
            "Never",
        ),
    ],
)
def test_values_of_a_pod_are_those_that_there_are(
    pod: dict[str, Any], container: dict[str, Any], problem: str
) -> None:
    found = Platform(NAMESPACE, yaml.safe_dump(workload_with(pod, container))).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(("pod", "container", "problem"), PODS)
def test_how_a_container_runs_is_what_the_api_server_takes(
    pod: dict[str, Any], container: dict[str, Any], problem: str
) -> None:
    found = Platform(NAMESPACE, yaml.safe_dump(workload_with(pod, container))).problems
    assert [problem in text for text in found] == ([True] if problem else [])


@pytest.mark.parametrize(
    ("zone", "hint"), [("Europe/Zurich", ""), ("Europe/Zurih", "did you mean Europe/Zurich?")]
)
def test_the_time_zone_of_a_cron_job_is_one_of_the_iana_database(zone: str, hint: str) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
    job = {"spec": {"template": {"spec": pod}}}
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "c", "namespace": "platform"},
        "spec": {"schedule": "0 3 * * *", "timeZone": zone, "jobTemplate": job},
    }
    assert [hint in text for text in Platform(NAMESPACE, yaml.safe_dump(cron)).problems] == [True] * bool(
        hint
    )


def test_an_object_in_git_has_no_owner_of_one_cluster() -> None:
    owner = "{apiVersion: v1, kind: ConfigMap, name: x, uid: 0d6f1c1e}"
    metadata = f"{{name: a, namespace: platform, ownerReferences: [{owner}]}}"
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\n"
    (problem,) = Platform(NAMESPACE, text).problems
    assert "on every other one Kubernetes deletes this object" in problem


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"targetNamespace": "nowhere"}, True),
        ({"targetNamespace": "nowhere", "install": {"createNamespace": True}}, False),
        ({"targetNamespace": "nowhere", "kubeConfig": {"secretRef": {"name": "a"}}}, False),
        ({"targetNamespace": "platform"}, False),
        ({}, False),
    ],
)
def test_a_release_goes_to_a_namespace_that_is_there(more: dict[str, Any], missing: bool) -> None:
    notes = Platform(NAMESPACE, yaml.safe_dump(release("platform/prom", **more))).notes
    assert any("without it helm installs nothing" in note for note in notes) == missing
