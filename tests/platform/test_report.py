"""The changes of a platform as people read them."""

from __future__ import annotations

import pytest

from shared.platform.changes.guards import judge
from shared.platform.changes.report import ReportSection, as_json, sections_of, text_of
from shared.platform.inventory import Inventory
from tests.platform.inventories import (
    asked_for,
    claim,
    deployment,
    inventory,
    manifest,
    owner,
    release,
    stateful_set,
)

FLEET = ("development", "staging", "production")


def chart(version: str) -> dict[str, object]:
    spec = {"chart": "prometheus", "version": version, "sourceRef": {"kind": "HelmRepository"}}
    return release("monitoring/prometheus", chart={"spec": spec})


def clusters(number: int) -> dict[str, str]:
    return {f"{FLEET[n % 3][:3]}-{n}": FLEET[n % 3] for n in range(number)}


def shown(before: Inventory, after: Inventory, width: int = 80) -> str:
    change = judge(before, after, 20)
    (section,) = sections_of({"dev-1": change}, {"dev-1": ""})
    return "\n".join(
        (section.heading + (f": {section.state}" if section.state else ""), *text_of(section, width))
    )


def test_one_change_of_many_clusters_is_one_section() -> None:
    names = clusters(14)
    kept = deployment("a/rest")
    changes = {}
    for cluster, environment in names.items():
        own = deployment(f"{environment}/own")  # each environment has another tree
        before = inventory(
            owner("core", manifest("Namespace", "legacy"), kept, own), owner("edge", chart("61.3.2"))
        )
        after = inventory(
            owner("core", deployment("ingress/nginx"), kept, own), owner("edge", chart("62.0.0"))
        )
        changes[cluster] = judge(before, after, 20)
    (section,) = sections_of(changes, names, FLEET)
    assert section.heading == "Flux on 14 clusters of development, staging and production (2 paths)"
    assert list(text_of(section, 80)) == [
        "- Namespace legacy",
        "    needs approval: Namespace legacy is deleted, with everything in it",
        "    hint: to keep it on the clusters, first commit the annotation",
        "    kustomize.toolkit.fluxcd.io/prune: disabled for it; once every cluster has",
        "    applied that, remove it in a second commit",
        "+ Deployment ingress/nginx",
        "~ HelmRelease monitoring/prometheus spec.chart.spec.version 61.3.2 -> 62.0.0",
    ]


def test_changes_of_some_clusters_have_a_section_of_their_own() -> None:
    old, new = (inventory(owner("p", deployment("a/b", image))) for image in ("x:1", "x:2"))
    more = inventory(owner("p", deployment("a/b", "x:2"), deployment("a/c")))
    changes = {"dev-1": judge(old, more, 20), "dev-2": judge(old, new, 20)}
    found = sections_of(changes, {})
    assert [(section.clusters, len(section.lines)) for section in found] == [
        (("dev-1", "dev-2"), 1),
        (("dev-1",), 1),
    ]


def test_a_renamed_kustomization_says_what_it_takes_along_and_the_way_without_loss() -> None:
    objects = manifest("Namespace", "monitoring"), claim("monitoring/samples"), deployment("monitoring/agent")
    old, new = owner("monitoring", *objects), owner("observability", *objects, path="platform/monitoring")
    text = shown(inventory(owner("p", asked_for(old)), old), inventory(owner("p", asked_for(new)), new))
    assert text == (
        "Flux on dev-1 (2 paths): needs approval\n"
        "- Kustomization flux-system/monitoring\n"
        "    needs approval: Kustomization flux-system/monitoring is deleted, with what\n"
        "    it owns: Namespace monitoring, PersistentVolumeClaim monitoring/samples,\n"
        "    Deployment monitoring/agent\n"
        "    hint: first commit spec.deletionPolicy: Orphan for Kustomization\n"
        "    flux-system/monitoring; once every cluster has applied that, rename it in a\n"
        "    second commit\n"
        "+ Kustomization flux-system/observability\n"
        "    with Namespace monitoring, PersistentVolumeClaim monitoring/samples,\n"
        "    Deployment monitoring/agent"
    )


def test_what_is_below_a_suspension_is_a_note_with_its_file() -> None:
    before, after = (
        inventory(owner("p", deployment("a/b", image), suspend=True)) for image in ("x:1", "x:2")
    )
    assert shown(before, after) == (
        "Flux on dev-1 (1 path)\n"
        "~ Deployment a/b\n"
        "    spec.template.spec.containers[b].image x:1 -> x:2\n"
        "    reaches no cluster: Kustomization flux-system/p is suspended in\n"
        "    platform/p.yaml"
    )


def test_a_field_that_cannot_change_is_refused_with_the_way_out() -> None:
    text = shown(inventory(owner("p", stateful_set("10Gi"))), inventory(owner("p", stateful_set("20Gi"))))
    assert "Flux on dev-1 (1 path): refused" in text
    assert "never changes: Flux would apply nothing of" in text
    assert "force: enabled" in text


def test_no_value_of_a_secret_is_shown() -> None:
    old, new = (
        manifest("Secret", "a/b", data={"password": value}) for value in ("b2xkLW9uZQ==", "bmV3LW9uZQ==")
    )
    before, after = inventory(owner("p", old)), inventory(owner("p", new))
    assert shown(before, after) == "Flux on dev-1 (1 path)\n~ Secret a/b data.password differs"
    json = str(as_json(sections_of({"a": judge(before, after, 20)}, {})[0]))
    assert "b2xk" not in json + repr(sections_of({"a": judge(before, after, 20)}, {}))


def test_what_moves_by_itself_is_named() -> None:
    before = inventory(owner("p", chart("61.x")))
    after = inventory(owner("p", chart("61.x"), deployment("a/b", "app")))
    assert shown(before, after).splitlines()[2:] == [
        "! Deployment a/b spec.template.spec.containers[b].image app",
        "    moves by itself: an image without a fixed tag",
        "! HelmRelease monitoring/prometheus: moves by itself, as before",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_lines_fit_the_width(width: int) -> None:
    many = [claim(f"namespace-{number}/claim-with-a-long-name") for number in range(30)]
    gone = owner("gone", *many)
    before = inventory(owner("p", asked_for(gone), deployment("a/b", "x:1")), gone)
    text = shown(before, inventory(owner("p", deployment("a/b", "x:2"))), width)
    assert max(map(len, text.splitlines())) <= width
    assert "and 20 more" in text


def test_many_changes_are_cut() -> None:
    before, after = (
        inventory(owner("p", deployment("a/a"))),
        inventory(owner("p", deployment("a/a"), *[deployment(f"a/d{number}") for number in range(30)])),
    )
    (section,) = sections_of({"dev": judge(before, after, 20)}, {})
    lines = list(text_of(section, 80, most=10))
    assert len(lines) == 11
    assert lines[-1] == "20 more changes are not shown."
    assert isinstance(section, ReportSection)
