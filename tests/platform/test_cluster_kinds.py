"""Quotas, limits, priorities, webhooks, policies and definitions are those that the API server takes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.platform.inventories import definition, manifest
from tests.support.built_platforms import NAMESPACE, Platform

ADMISSION, NETWORK, RBAC = (
    "admissionregistration.k8s.io/v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
)
POD = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a:1"}]}
RULE = {"rule": "self.a > 1"}


def quota(**hard: str) -> dict[str, Any]:
    return manifest("ResourceQuota", "platform/q", spec={"hard": hard})


def limits(**given: Any) -> dict[str, Any]:
    return manifest("LimitRange", "platform/l", spec={"limits": [{"type": "Container", **given}]})


def priority(value: int, name: str = "high", **rest: Any) -> dict[str, Any]:
    return manifest("PriorityClass", name, "scheduling.k8s.io/v1", value=value, **rest)


def webhook(**given: Any) -> dict[str, Any]:
    whole = {
        "name": "pods.platform.example",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://hooks.example"},
        **given,
    }
    return manifest("ValidatingWebhookConfiguration", "hooks", ADMISSION, webhooks=[whole])


def policy(**rule: Any) -> dict[str, Any]:
    spec = {"podSelector": {"matchLabels": {"app": "a"}}, "ingress": [rule]}
    return manifest("NetworkPolicy", "platform/n", NETWORK, spec=spec)


def cron(**spec: Any) -> dict[str, Any]:
    whole = {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": POD}}}, **spec}
    return manifest("CronJob", "platform/c", "batch/v1", spec=whole)


def things(*rules: dict[str, str]) -> dict[str, Any]:
    part = {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [*rules]}
    whole = {"type": "object", "properties": {"spec": part}}
    found = definition("Thing")
    found["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": whole}
    return found


OBJECTS: list[tuple[dict[str, Any], str]] = [
    (quota(cpus="1"), "is nothing that a quota counts; did you mean cpu?"),
    (quota(**{"requests.cpu": "1", "count/jobs.batch": "1", "hugepages-2Mi": "1Gi"}), ""),
    (quota(**{"gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}), ""),
    (limits(default={"cpu": "2"}, max={"cpu": "1"}), "default.cpu: must be at most max, 1, got 2"),
    (limits(defaultRequest={"cpu": "2"}, default={"cpu": "1"}), "must be at most default, 1, got 2"),
    (limits(min={"cpu": "100m"}, max={"cpu": "1"}, default={"cpu": "1"}), ""),
    (priority(2_000_000_000), "must be at most 1,000,000,000, got 2,000,000,000"),
    (priority(-3_000_000_000), "must be at least -2,147,483,648, got -3,000,000,000"),
    (priority(1_000_000_000), ""),
    (priority(1, "system-mine"), "must not begin with system-"),
    (priority(2_000_001_000, "system-node-critical"), ""),
    (webhook(name="pods.platform"), "must be a domain with at least three parts, got pods.platform"),
    (webhook(sideEffects="Some"), "must be None or NoneOnDryRun, got Some"),
    (webhook(timeoutSeconds=31), "must be 1 to 30, got 31"),
    (webhook(timeoutSeconds=30), ""),
    (policy(ports=[{"port": 90, "endPort": 80}]), "must be at least port, 90, got 80"),
    (policy(ports=[{"port": 80, "endPort": 90}]), ""),
    (policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}), "make two entries"),
    (
        policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.1.0.0/24"]}}]}),
        "except[0]: 10.1.0.0/24 is no part of 10.0.0.0/16",
    ),
    (
        policy(**{"from": [{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.0.0/16"]}}]}),
        "is no part of",
    ),
    (policy(**{"from": [{"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:1::/32"]}}]}), ""),
    (cron(startingDeadlineSeconds=-1), "must be at least 0, got -1"),
    (
        manifest("ConfigMap", "platform/c", data={"a": "b"}, binaryData={"a": "Yg=="}),
        "binaryData.a: is a key of data too",
    ),
    (
        manifest("Role", "platform/r", RBAC, rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": []}]),
        "verbs is missing; add at least one",
    ),
    (things(RULE, RULE), "the rule self.a > 1 is here twice"),
    (things(RULE, {"rule": "self.a < 9"}), ""),
]
"""Objects, with what is wrong; ``tests/authority/test_refused_objects.py`` asks a real API server."""


@pytest.mark.parametrize(("given", "problem"), OBJECTS)
def test_what_governs_a_cluster_is_what_the_api_server_takes(given: dict[str, Any], problem: str) -> None:
    found = Platform(NAMESPACE, yaml.safe_dump(given)).problems
    assert [problem in text for text in found] == ([True] if problem else [])


def test_one_priority_is_the_default() -> None:
    both = [priority(number, name, globalDefault=True) for number, name in enumerate(("low", "high"))]
    (problem,) = Platform(*map(yaml.safe_dump, both)).problems
    assert "PriorityClass low and PriorityClass high are the default of all pods" in problem
    both[0]["globalDefault"] = False
    assert Platform(*map(yaml.safe_dump, both)).problems == []
