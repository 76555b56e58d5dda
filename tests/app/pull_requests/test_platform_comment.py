"""The comment on a pull request that changes what Flux applies to many clusters."""

from __future__ import annotations

from typing import Any

import pytest

from shared.app.pull_requests.comment import Documents, PullPlan, PullPlatform, comment_of
from shared.azure.changes.field_effects import Effect
from shared.language.resolve.problems import Problem
from shared.plan.differences import FieldChange
from shared.plan.plan import Action, Item, Plan
from shared.platform.changes.guards import PlatformChange, judge
from shared.platform.changes.report import sections_of
from tests.platform.inventories import (
    claim,
    deployment,
    inventory,
    manifest,
    owner,
    release,
    stateful_set,
)

FLEET = ("development", "staging", "production")
NAMES = {f"{FLEET[number % 3]}-{number:02}": FLEET[number % 3] for number in range(14)}


def document(name: str, tier: str) -> dict[str, Any]:
    spec = {
        "location": "westeurope",
        "resourceGroup": f"rg-{name}",
        "sku": {"tier": tier},
        "tags": {"a": "b"},
    }
    return {"name": name, "spec": spec, "components": "c"}


def view(change: PlatformChange, *items: Item, documents: Documents | None = None, **rest: Any) -> PullPlan:
    platform = PullPlatform(sections_of(dict.fromkeys(NAMES, change), NAMES, FLEET), **rest)
    plan, shown = Plan("b" * 40, items), documents or {}
    return PullPlan("acme", "main", "a" * 40, "b" * 40, plan, documents=shown, platform=platform)


def chart(version: str) -> dict[str, object]:
    spec = {"chart": "prometheus", "version": version, "sourceRef": {"kind": "HelmRepository"}}
    return release("monitoring/prometheus", chart={"spec": spec})


def test_one_class_line_and_two_platform_files_of_14_clusters_fit_a_page() -> None:
    before = inventory(
        owner("core", manifest("Namespace", "legacy"), claim("a/b")), owner("edge", chart("61.3.2"))
    )
    after = inventory(
        owner("core", claim("a/b"), deployment("ingress/nginx")), owner("edge", chart("62.0.0"))
    )
    tier = FieldChange("spec.sku.tier", "Free", "Standard", Effect.IN_PLACE, "classes/small.yaml:4")
    items = [Item(name, Action.UPDATE, 2, changes=(tier,)) for name in NAMES]
    documents = {name: (document(name, "Free"), document(name, "Standard")) for name in NAMES}
    change = judge(before, after, 20)
    shown = view(change, *items, documents=documents, note="built with kustomize v5.7.1")
    text = comment_of(shown)
    assert len(text.splitlines()) <= 60
    assert all(text.count(f"`{name}`") == 2 for name in NAMES)  # for Flux, and for Azure
    blocks = "".join(text.split("```")[1::2])  # a browser wraps everything else
    assert "Namespace legacy" in blocks
    assert max(map(len, blocks.splitlines())) <= 80
    assert (
        "#### Flux on 14 clusters of development, staging and production (2 paths): **needs approval**"
        in text
    )
    assert (
        "- Namespace legacy\n"
        "    needs approval: Namespace legacy is deleted, with everything in it\n"
        "    hint: to keep it on the clusters, first commit the annotation\n"
    ) in text
    assert "+ Deployment ingress/nginx\n" in text
    assert "\nFlux: built with kustomize v5.7.1.\n" in text
    assert "~ HelmRelease monitoring/prometheus spec.chart.spec.version 61.3.2 -> 62.0.0" in text
    assert shown.title == "14 update; Flux changes on 14, needs approval"


def test_what_may_be_wrong_is_in_the_comment_as_lines_of_a_narrow_window() -> None:
    message = "nothing here defines ConfigMap flux-system/extra, which Kustomization flux-system/m needs"
    notes = tuple(Problem(f"platform/{number}.yaml", 3, 1, "spec", message) for number in range(7))
    change = judge(inventory(), inventory(owner("core", deployment("ingress/nginx"))), 20)
    text = comment_of(view(change, notes=notes))
    part = text.partition("#### Flux: may be wrong\n\n```\n")[2].partition("```")[0].splitlines()
    assert part[0].startswith("platform/0.yaml:3:1 spec: nothing here defines ConfigMap")
    assert max(map(len, part)) <= 80
    assert part[-1] == "2 more notes are not shown."


@pytest.mark.parametrize(
    ("old", "new", "conclusion"),
    [
        (deployment("a/b", "x:1"), deployment("a/b", "x:2"), "success"),
        (stateful_set("1Gi"), stateful_set("2Gi"), "failure"),
        (claim("a/b"), deployment("a/b"), "neutral"),
    ],
)
def test_the_check_follows_what_the_change_does(old: Any, new: Any, conclusion: str) -> None:
    change = judge(inventory(owner("p", old)), inventory(owner("p", new)), 20)
    assert view(change).conclusion == conclusion


def test_nothing_of_a_manifest_ends_the_block() -> None:
    hostile = deployment("a/b", "x:1\n```\n@everyone <img src=x>")
    before, after = inventory(owner("p", deployment("a/b", "x:1"))), inventory(owner("p", hostile))
    text = comment_of(view(judge(before, after, 20)))
    start, end = text.index("````diff"), text.rindex("````")
    assert start < text.index("@everyone") < end
