"""What Azure answered to azure-cli, as that recorded it: what Azure chooses or scales is no drift."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.azure.differences import Difference, beyond_git, drift_of
from shared.language.desired import Desired
from tests.support.arm_bodies import OWNER, desired

ANSWERS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "recorded.json").read_text())["answers"]
AUTOSCALER, PROVISIONING, CHANNEL = ANSWERS


def manifest(answer: dict[str, Any]) -> Desired:
    """Return a cluster whose manifest owns what the request asked for, at the minor that Azure chose."""
    return desired(kubernetesVersion=answer["version"], **answer["requested"])


def shown(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer with the tags that Roadstead would have sent."""
    live: dict[str, Any] = json.loads(json.dumps(answer["shown"]))
    live["tags"] |= OWNER.tags
    for pool in live["properties"]["agentPoolProfiles"]:
        pool["tags"] = {**pool.get("tags", {}), **OWNER.tags}
    return live


def found(answer: dict[str, Any], live: dict[str, Any]) -> list[Difference]:
    """Return the drift of a cluster that was verified as it was answered."""
    known = beyond_git(manifest(answer), OWNER, shown(answer))
    return drift_of(manifest(answer), OWNER, live, known)


def first_pool(live: dict[str, Any]) -> dict[str, Any]:
    pool: dict[str, Any] = live["properties"]["agentPoolProfiles"][0]
    return pool


def upgraded(live: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a cluster that runs another version, as an upgrade by Azure itself leaves it."""
    minor = ".".join(version.split(".")[:2])
    live["properties"] |= {"kubernetesVersion": minor, "currentKubernetesVersion": version}
    first_pool(live).update(orchestratorVersion=minor, currentOrchestratorVersion=version)
    return live


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer["recording"])
def test_what_azure_answered_is_no_drift(answer: dict[str, Any]) -> None:
    assert found(answer, shown(answer)) == []
    assert drift_of(manifest(answer), OWNER, shown(answer), None) == []


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer["recording"])
def test_a_newer_node_image_is_no_drift(answer: dict[str, Any]) -> None:
    live = shown(answer)
    first_pool(live)["nodeImageVersion"] = "AKSUbuntu-2204gen2containerd-202611.01.0"
    assert found(answer, live) == []


@pytest.mark.parametrize("count", [2, 3, 5])
def test_what_the_autoscaler_scales_is_no_drift_and_its_bounds_are(count: int) -> None:
    live = shown(AUTOSCALER)
    first_pool(live)["count"] = count
    assert found(AUTOSCALER, live) == []
    first_pool(live)["maxCount"] = 9
    (difference,) = found(AUTOSCALER, live)
    assert (difference.path, difference.git, difference.live) == ("nodePools[nodepool1].maxCount", 5, 9)


def test_a_patch_and_a_minor_that_the_channel_brings_are_no_drift() -> None:
    for version in ("1.30.14", "1.31.2"):
        assert found(CHANNEL, upgraded(shown(CHANNEL), version)) == []


def test_a_newer_minor_that_no_channel_can_have_brought_is_drift() -> None:
    (difference,) = found(PROVISIONING, upgraded(shown(PROVISIONING), "1.33.1"))
    assert (difference.path, difference.left_alone) == ("kubernetesVersion", True), "the pool follows"


def test_the_mode_of_provisioning_that_somebody_changes_is_drift() -> None:
    live = shown(PROVISIONING)
    live["properties"]["nodeProvisioningProfile"]["mode"] = "Manual"
    (difference,) = found(PROVISIONING, live)
    assert (difference.path, difference.live) == ("nodeProvisioningProfile.mode", "Manual")
