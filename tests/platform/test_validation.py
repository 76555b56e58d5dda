"""What is wrong with the platform of a fleet is said once, with its place and the clusters that have it."""

from __future__ import annotations

from pathlib import Path

import yaml

from shared.language.desired import Desired
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.problems import SHOWN_OF_FILE
from shared.platform.inventory import ObjectId
from shared.platform.rules import Findings
from shared.platform.validation import findings, platforms
from tests.support.built_platforms import NAMESPACE, SOURCE, Platform, deployment
from tests.support.desired_clusters import changed, desired, fleet

BAD = "apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
COMPONENTS = "flux/gotk-components.yaml"
RIGHT = (Path(__file__).parents[2] / "examples/fleet" / COMPONENTS).read_text()


def of(version: str, name: str) -> Desired:
    cluster = desired(name)
    return changed(cluster, spec=cluster.stored["spec"] | {"kubernetesVersion": version})


def found(platform: Platform, *names: str, components: str = RIGHT) -> Findings:
    platform.files[COMPONENTS] = components
    inventory = platform.platform.inventory
    return findings(fleet(*map(desired, names)), dict.fromkeys(names, inventory), platform.read)


def test_a_fault_of_all_clusters_names_none_and_of_some_names_these() -> None:
    bad, good = Platform(BAD), Platform()
    bad.files[COMPONENTS] = RIGHT
    assert [str(problem).partition(": the name")[0] for problem in found(bad, "a", "b").problems] == [
        "platform/all.yaml:3:12 metadata.name: Namespace Apps_Bad"
    ]
    inventories = {"a": bad.platform.inventory, "b": good.platform.inventory}
    problems = findings(fleet(desired("a"), desired("b")), inventories, bad.read).problems
    assert [problem.message.endswith(" (on a)") for problem in problems] == [True]


def test_clusters_of_two_versions_are_looked_at_apart() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  hostnameOverride: a\n"
    platform = Platform(text + "  containers: [{name: a, image: b}]\n")
    platform.files[COMPONENTS] = RIGHT
    inventory = platform.platform.inventory
    clusters = [of("1.31", "old"), of("1.36", "new"), of("1.36.2", "newer")]
    every = fleet(*clusters)
    inventories = {cluster.name: inventory for cluster in clusters}
    assert [names for _, names in platforms(every, inventories, platform.read, {})] == [
        ["new", "newer"],
        ["old"],
    ]
    problems = findings(every, inventories, platform.read).problems
    assert [problem.message for problem in problems] == [
        "there is no such field in Kubernetes 1.31; it comes with 1.34 (on old)"
    ]


def test_ten_thousand_equal_clusters_are_looked_at_once() -> None:
    platform = Platform(BAD)
    names = [f"c{number}" for number in range(10_000)]
    cluster = desired("c0")
    every = DesiredFleet({name: changed(cluster, name=name) for name in names}, {}, ())
    inventories = dict.fromkeys(names, platform.platform.inventory)
    assert len(platforms(every, inventories, platform.read, {})) == 1


def test_a_note_is_no_problem() -> None:
    said = found(Platform("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"), "a")
    assert said.problems == ()
    assert [note.message.partition(",")[0] for note in said.notes] == ["ConfigMap a has no namespace"]


def test_notes_that_are_left_out_are_counted_as_notes() -> None:
    claims = [
        {"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(SHOWN_OF_FILE + 3)
    ]
    given = yaml.safe_load(deployment())
    given["spec"]["template"]["spec"]["volumes"] = claims
    notes = found(Platform(NAMESPACE, yaml.safe_dump(given)), "a").notes
    assert [note.message for note in notes if note.more] == [
        "... and 3 more notes in this file; correct those above first"
    ]


def test_components_that_are_none_are_a_problem_of_their_clusters() -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
    problems = found(Platform(), "a", "b", components=pointer).problems
    assert [str(problem).partition(", and")[0] for problem in problems] == [
        f"{COMPONENTS}:1:1: is a pointer of Git LFS"
    ]


def test_what_roadstead_applies_is_there_for_the_platform() -> None:
    (platform, _), *_ = platforms(
        fleet(desired("a")), {"a": Platform().platform.inventory}, Platform().read, {}
    )
    assert {
        ObjectId("source.toolkit.fluxcd.io", "GitRepository", "flux-system", "flux-system"),
        ObjectId("kustomize.toolkit.fluxcd.io", "Kustomization", "flux-system", "flux-system"),
        ObjectId("", "ConfigMap", "flux-system", "cluster-facts"),
        ObjectId("", "Secret", "flux-system", "flux-system"),
    } <= set(platform.provided)


def test_a_fault_of_the_manifest_of_a_cluster_has_its_place() -> None:
    missing = {"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-fact"}]}}
    problems = found(Platform(spec=missing), "a").problems
    assert [(problem.file, problem.field) for problem in problems] == [
        (
            "clusters/a/cluster.yaml",
            "spec.flux.kustomizations[flux-system].postBuild.substituteFrom[0].name",
        )
    ]


def test_a_system_of_a_team_does_not_hide_what_the_platform_lacks() -> None:
    names = ObjectId("kustomize.toolkit.fluxcd.io", "Kustomization", "team", "team")
    platform = Platform(provided=(SOURCE, names)).kustomize("a", spec={"dependsOn": [{"name": "b"}]})
    assert len(platform.problems) == 1
    others = ObjectId("kustomize.toolkit.fluxcd.io", "Kustomization", "flux-system", "of-another-source")
    elsewhere = Platform(provided=(SOURCE, others)).kustomize("a", spec={"dependsOn": [{"name": "b"}]})
    assert elsewhere.problems == []
    assert "there is no Kustomization flux-system/b" in elsewhere.notes[0]
