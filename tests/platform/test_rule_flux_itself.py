"""What is refused or noted because Flux would delete itself by it, or would act as nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.built_platforms import Platform

IN_FLUX = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: flux-system\n"
KEPT = f"{IN_FLUX}  annotations: {{kustomize.toolkit.fluxcd.io/prune: disabled}}\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reconciler, namespace: flux-system}\n"


def test_a_namespace_that_gets_the_name_of_that_of_flux_is_refused() -> None:
    platform = Platform().kustomize("extra", IN_FLUX, spec={"targetNamespace": "flux-system"})
    assert platform.problems == [
        "platform/layers/extra/all.yaml:4:3 metadata.name: spec.targetNamespace of Kustomization "
        "flux-system/extra calls this Namespace flux-system: when it leaves the platform, Flux deletes "
        "itself; move it to another Kustomization, or leave spec.targetNamespace out"
    ]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (KEPT, {"targetNamespace": "flux-system"}),
        (IN_FLUX, {"targetNamespace": "flux-system", "prune": False}),
        (IN_FLUX, {}),
        (IN_FLUX.replace("flux-system", "shop"), {"targetNamespace": "shop"}),
    ],
)
def test_a_namespace_that_stays_or_has_its_own_name_is_not(text: str, spec: dict[str, Any]) -> None:
    platform = Platform().kustomize("extra", text, spec=spec)
    assert [problem for problem in platform.problems if "calls this Namespace" in problem] == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [("reconcilr", "did you mean reconciler?"), ("nobody", "add it")],
)
def test_an_account_that_nothing_defines_is_a_note(name: str, hint: str) -> None:
    platform = Platform(ACCOUNT).kustomize("extra", spec={"serviceAccountName": name})
    assert platform.problems == []
    found = [note for note in platform.notes if "nothing here defines ServiceAccount" in note]
    assert len(found) == 1
    assert found[0].startswith("platform/extra.yaml:")
    assert hint in found[0]


@pytest.mark.parametrize("name", ["kustomize-controller", "reconciler", "default", "${account}"])
def test_an_account_that_is_there_is_not(name: str) -> None:
    platform = Platform(ACCOUNT).kustomize("extra", spec={"serviceAccountName": name})
    assert [note for note in platform.notes if "nothing here defines ServiceAccount" in note] == []
