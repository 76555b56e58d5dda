"""Pods that the level of their own namespace refuses are said before the merge."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.built_platforms import Platform, deployment

GOOD = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def said(
    level: str, pod: dict[str, Any], *, version: str = "", container: dict[str, Any] | None = None
) -> list[str]:
    """Return the problems of a platform with one workload in a namespace of a level."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    labels |= {"pod-security.kubernetes.io/enforce-version": version} if version else {}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "platform", "labels": labels}}
    workload = yaml.safe_load(deployment())
    spec = workload["spec"]["template"]["spec"]
    spec["containers"][0] |= container or {}
    spec |= pod
    platform = Platform(yaml.safe_dump(namespace), yaml.safe_dump(workload))
    assert platform.notes == []
    return platform.problems


@pytest.mark.parametrize(
    ("level", "pod", "security", "wrong"),
    [
        ("baseline", {}, {}, ""),
        ("privileged", {"hostNetwork": True}, {"privileged": True}, ""),
        ("baseline", {"hostPID": True}, {}, "hostPID must not be true"),
        ("baseline", {"hostNetwork": False}, {}, ""),
        ("baseline", {}, {"privileged": True}, "privileged must not be true (web)"),
        (
            "baseline",
            {},
            {"capabilities": {"add": ["NET_ADMIN"]}},
            "capabilities.add has one that is not allowed",
        ),
        ("baseline", {}, {"capabilities": {"add": ["CHOWN"]}}, ""),
        (
            "baseline",
            {},
            {"seccompProfile": {"type": "Unconfined"}},
            "seccompProfile.type must not be Unconfined",
        ),
        ("baseline", {}, {"seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions must not set user or role"),
        ("baseline", {}, {"seLinuxOptions": {"level": "s0"}}, ""),
        (
            "baseline",
            {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
            {},
            "hostPath is not allowed (volume h)",
        ),
        (
            "baseline",
            {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}},
            {},
            "the sysctl net.core.somaxconn is not allowed",
        ),
        ("restricted", {}, GOOD, ""),
        (
            "restricted",
            {},
            {},
            "allowPrivilegeEscalation must be false (web); capabilities.drop must have ALL (web)",
        ),
        ("restricted", {}, {**GOOD, "runAsNonRoot": None}, "runAsNonRoot must be true (web)"),
        ("restricted", {"securityContext": {"runAsNonRoot": True}}, {**GOOD, "runAsNonRoot": None}, ""),
        ("restricted", {"securityContext": {"runAsNonRoot": True}}, {**GOOD, "runAsNonRoot": False}, "(web)"),
        ("restricted", {"securityContext": {"runAsUser": 0}}, GOOD, "runAsUser must not be 0 (the pod)"),
        ("restricted", {"volumes": [{"name": "n", "nfs": {"server": "a", "path": "/"}}]}, GOOD, "(not n)"),
        ("restricted", {"volumes": [{"name": "n", "emptyDir": {}}]}, GOOD, ""),
        ("restricted", {"os": {"name": "windows"}}, {}, ""),
        ("restricted", {"hostUsers": False}, {}, ""),
    ],
)
def test_a_workload_whose_pods_its_namespace_refuses_is_a_problem(
    level: str, pod: dict[str, Any], security: dict[str, Any], wrong: str
) -> None:
    found = said(level, pod, container={"securityContext": security} if security else {})
    assert len(found) == bool(wrong), found
    assert not wrong or (wrong in found[0] and f"the namespace platform enforces {level}" in found[0])


@pytest.mark.parametrize(
    ("version", "refused"), [("", True), ("latest", True), ("v1.31", True), ("v1.24", False)]
)
def test_an_older_version_of_the_standards_is_left_to_the_cluster(version: str, refused: bool) -> None:
    assert bool(said("baseline", {"hostNetwork": True}, version=version)) == refused


def test_pods_that_a_webhook_of_the_platform_may_change_are_a_note() -> None:
    namespace = (
        "apiVersion: v1\nkind: Namespace\n"
        "metadata: {name: platform, labels: {pod-security.kubernetes.io/enforce: restricted}}\n"
    )
    api, kind = "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"
    webhook = f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: m}}\n"
    platform = Platform(namespace, webhook, deployment())
    assert platform.problems == []
    assert "so no pod of Deployment web is created" in platform.notes[0]
