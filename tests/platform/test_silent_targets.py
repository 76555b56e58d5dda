"""Patches and images that kustomize applies to nothing are notes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.built_platforms import Platform, deployment

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: platform}\n"


def notes(given: dict[str, Any], *, of_flux: bool = False) -> list[str]:
    """Return the notes of a platform with more in its kustomization file, or in the spec of Flux's object."""
    platform = Platform(NAMESPACE, deployment(), spec=given if of_flux else {})
    if not of_flux:
        platform.files["platform/kustomization.yaml"] = yaml.safe_dump({"resources": ["all.yaml"], **given})
    assert platform.problems == []
    return platform.notes


def patch(text: str = "[{op: remove, path: /spec/replicas}]", **target: str) -> dict[str, Any]:
    return {"patches": [{"patch": text, "target": target}]}


CASES = [
    (patch(kind="Deployment", name="web"), ""),
    (patch(kind="Deployment", name="w.*"), ""),
    (patch(kind="Deployment"), ""),
    (patch(labelSelector="app=web"), ""),
    (patch(kind="Deployment", name="(web|wev)"), ""),
    (patch(kind="Deployment", name="("), ""),
    (patch(kind="Deployment", name="wev.*|.+-wev"), "this patch is for Deployment wev"),
    (patch(kind="Deployment", name="wev"), "this patch is for Deployment wev, which is not built here"),
    (patch(kind="StatefulSet"), "this patch is for StatefulSet"),
    (patch(kind="Deployment", version="v1beta1", name="web"), "this patch is for v1beta1 Deployment web"),
    (patch("$patch: delete", kind="Deployment", name="gone"), ""),
    (patch(kind="Deployment", name="${name}"), ""),
    ({"images": [{"name": "registry.k8s.io/pause", "newTag": "2"}]}, ""),
    ({"images": [{"name": "pause", "newName": "registry.k8s.io/pause"}]}, ""),
    ({"images": [{"name": "web", "newTag": "2"}]}, "has the image web"),
]


@pytest.mark.parametrize("of_flux", [False, True])
@pytest.mark.parametrize(("given", "said"), CASES)
def test_a_patch_or_an_image_for_nothing_is_a_note(given: dict[str, Any], said: str, of_flux: bool) -> None:
    found = notes(given, of_flux=of_flux)
    assert len(found) == bool(said), found
    assert not said or (said in found[0] and "kustomize changes nothing, silently" in found[0])


@pytest.mark.parametrize("pattern", ["(.*)*(.*)*(.*)*$!", "(a|a|b)" * 60 + "!", ".*" * 40 + "!", "(e|e+)+!"])
def test_a_pattern_that_takes_python_forever_is_not_tried(pattern: str) -> None:
    name = "e" * 200
    platform = Platform(NAMESPACE, deployment(name))
    platform.files["platform/kustomization.yaml"] = yaml.safe_dump(patch(kind="Deployment", name=pattern))
    assert platform.notes == []


def test_a_folder_below_is_looked_at_and_a_prefix_hides_names() -> None:
    platform = Platform(NAMESPACE, deployment())
    platform.files["platform/kustomization.yaml"] = "resources: [below]\n"
    below = yaml.safe_dump(patch(kind="Deployment", name="wev"))
    platform.files["platform/below/kustomization.yaml"] = below
    (note,) = platform.notes
    assert note.startswith("platform/below/kustomization.yaml")
    platform.files["platform/kustomization.yaml"] += "namePrefix: eu-\n"
    assert platform.notes == []
