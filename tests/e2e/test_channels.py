"""The version of a channel, over the wire: what AKS offers becomes a pull request, then an upgrade."""

from __future__ import annotations

import base64
import ssl
from typing import Any

import httpx
import pytest

from localcloud.azure.world.catalog import NODE_IMAGES
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.arm_client import arm, path
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start

QUICK = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
FILE, BRANCH = "environments/development.versions.yaml", "roadstead/versions/example/development"
HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: development}}\n"


def fleet() -> dict[str, bytes]:
    """Return a fleet whose one cluster is in an environment that follows a channel."""
    found = fleet_files.fleet("one")
    environment = HEAD.format(kind="Environment") + "spec:\n  kubernetes: {channel: stable}\n"
    versions = HEAD.format(kind="Versions") + 'spec:\n  kubernetesVersion: "1.35.7"\n'
    found |= {"environments/development.yaml": environment.encode(), FILE: versions.encode()}
    found["clusters/one/cluster.yaml"] += b"  environment: development\n"
    return found


def pulls(operator: Operator, state: str = "open") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operator.github.get(f"{operator.repository}/pulls?state={state}").json()
    return found


@pytest.mark.long
def test_an_offered_version_is_proposed_shown_and_upgraded_to_once_somebody_has_merged_it(
    start: Start,
) -> None:
    operator = start(QUICK)
    operator.wait_for_status(operator.push(fleet()), "success", seconds=120)
    operator.wait(lambda: len(pulls(operator)) == 1, "the version is proposed")
    (pull,) = pulls(operator)
    assert (pull["head"]["ref"], pull["title"]) == (BRANCH, "Kubernetes 1.36.3 for development")
    contents = operator.github.get(f"{operator.repository}/contents/{FILE}", params={"ref": BRANCH}).json()
    assert 'kubernetesVersion: "1.36.3"' in base64.b64decode(contents["content"]).decode()
    (shown,) = operator.api.get("versions")["channels"]
    assert (shown["channel"], shown["proposed"], shown["pullRequest"]) == (
        "stable",
        "1.36.3",
        pull["html_url"],
    )
    assert operator.api.get("versions")["environments"][0]["versions"] == {"1.35.7": 1}
    merged = operator.github.put(f"{operator.repository}/pulls/{pull['number']}/merge", json={})
    assert merged.status_code == 200, merged.text
    operator.wait_for_status(merged.json()["sha"], "success", seconds=180)
    operator.wait(
        lambda: operator.api.get("versions")["environments"][0]["versions"] == {"1.36.3": 1},
        "the cluster is upgraded",
    )
    gone = f"{operator.repository}/git/ref/heads/{BRANCH}"
    operator.wait(lambda: operator.github.get(gone).status_code == 404, "the branch is deleted")
    assert pulls(operator) == []


@pytest.mark.long
def test_a_newer_node_image_is_proposed_and_the_nodes_get_it_once_somebody_has_merged_it(
    start: Start,
) -> None:
    operator = start(QUICK)
    environment = HEAD.format(kind="Environment") + (
        "spec:\n  nodeImages: {channel: NodeImage}\n  defaults:\n"
        "    autoUpgradeProfile: {nodeOSUpgradeChannel: None}\n"
    )
    versions = HEAD.format(kind="Versions") + 'spec:\n  minNodeImageVersion: "202510.19.1"\n'
    files = fleet() | {"environments/development.yaml": environment.encode(), FILE: versions.encode()}
    operator.wait_for_status(operator.push(files), "success", seconds=120)
    trust = ssl.create_default_context(cafile=str(operator.cloud.state / "ca.pem"))
    old = {"pool": "system", "image": NODE_IMAGES[0]}
    control = f"{operator.cloud.urls.arm}/_local/clusters/one/image"
    httpx.post(control, json=old, verify=trust, trust_env=False).raise_for_status()
    operator.api.refresh([])  # what a plan compares may have been read before
    operator.wait(lambda: len(pulls(operator)) == 1, "the image is proposed")
    (pull,) = pulls(operator)
    assert (pull["head"]["ref"], pull["title"]) == (
        "roadstead/images/example/development",
        "Node image 202511.01.0 for development",
    )
    merged = operator.github.put(f"{operator.repository}/pulls/{pull['number']}/merge", json={})
    assert merged.status_code == 200, merged.text
    operator.wait_for_status(merged.json()["sha"], "success", seconds=180)
    with arm(operator) as azure:
        (nodes,) = azure.get(path("one")).json()["properties"]["agentPoolProfiles"]
    assert nodes["nodeImageVersion"] == NODE_IMAGES[1]
    operator.wait(lambda: pulls(operator) == [], "nothing is proposed any more")


@pytest.mark.long
def test_a_newer_extension_of_flux_is_proposed_and_installed_once_somebody_has_merged_it(
    start: Start,
) -> None:
    operator = start(QUICK)
    environment = HEAD.format(kind="Environment") + (
        "spec:\n  flux: {channel: rapid}\n  defaults:\n    flux: {install: extension}\n"
    )
    versions = HEAD.format(kind="Versions") + 'spec:\n  flux:\n    extension: {version: "1.22.1"}\n'
    files = fleet() | {"environments/development.yaml": environment.encode(), FILE: versions.encode()}
    operator.wait_for_status(operator.push(files), "success", seconds=120)
    operator.wait(lambda: len(pulls(operator)) == 1, "the extension is proposed")
    (pull,) = pulls(operator)
    assert (pull["head"]["ref"], pull["title"]) == (
        "roadstead/flux/example/development",
        "Flux extension 1.23.0 for development",
    )
    merged = operator.github.put(f"{operator.repository}/pulls/{pull['number']}/merge", json={})
    assert merged.status_code == 200, merged.text
    operator.wait_for_status(merged.json()["sha"], "success", seconds=180)
    place = path("one", "/providers/Microsoft.KubernetesConfiguration/extensions/flux").partition("?")[0]
    with arm(operator) as azure:
        found = azure.get(place, params={"api-version": "2025-03-01"}).json()["properties"]
    assert (found["currentVersion"], found["autoUpgradeMinorVersion"]) == ("1.23.0", False)
    operator.wait(lambda: pulls(operator) == [], "nothing is proposed any more")
