"""Azure's own examples: a manifest that asks for what a request asked for finds no drift in the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.azure.differences import drift_of
from shared.azure.ownership import OwnerTags
from shared.language.desired import Desired
from tests.support.arm_bodies import OWNER, desired

EXAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "published.json").read_text())[
    "examples"
]


def manifest(example: dict[str, Any]) -> Desired:
    """Return a cluster whose manifest owns what the request asked for, at the minor that Azure chose."""
    version = example["shown"]["properties"]["kubernetesVersion"]
    return desired(kubernetesVersion=version.rpartition(".")[0], **example["requested"])


def shown(example: dict[str, Any], owner: OwnerTags) -> dict[str, Any]:
    """Return the answer with the tags that Roadstead would have sent."""
    live: dict[str, Any] = json.loads(json.dumps(example["shown"]))
    live["tags"] |= owner.tags
    for pool in live["properties"]["agentPoolProfiles"]:
        pool["tags"] = {**pool.get("tags", {}), **owner.tags}
    return live


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["example"])
def test_what_azure_answers_to_a_request_is_no_drift(example: dict[str, Any]) -> None:
    assert drift_of(manifest(example), OWNER, shown(example, OWNER), None) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["example"])
def test_a_later_patch_that_azure_brings_is_no_drift(example: dict[str, Any]) -> None:
    live = shown(example, OWNER)
    for properties in (live["properties"], *live["properties"]["agentPoolProfiles"]):
        for name in ("kubernetesVersion", "currentKubernetesVersion", "orchestratorVersion"):
            if name in properties:
                properties[name] += "9"
    assert drift_of(manifest(example), OWNER, live, None) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["example"])
def test_one_more_node_is_the_one_difference(example: dict[str, Any]) -> None:
    live = shown(example, OWNER)
    live["properties"]["agentPoolProfiles"][0]["count"] += 1
    (found,) = drift_of(manifest(example), OWNER, live, None)
    assert (found.path, found.git, found.live) == ("nodePools[nodepool1].count", 3, 4)
