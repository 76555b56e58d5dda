"""The inventory of a cluster: what each of its Kustomizations owns, built with the real kustomize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shared.platform.builds.build import Builds
from shared.platform.builds.inventories import Inventories
from shared.platform.inventory import Inventory, Owner
from tests.support.arm_bodies import desired
from tests.support.desired_clusters import changed
from tests.support.inventories import FLUX, inventory_of
from tests.support.kustomize_programs import kustomize_program
from tests.support.platform_trees import applied, config_map, kustomization, namespace, tree_of

pytestmark = pytest.mark.lives

FROM_FACTS = "  postBuild:\n    substituteFrom: [{kind: ConfigMap, name: cluster-facts}]\n"


def owner_of(inventory: Inventory, name: str = "flux-system") -> Owner:
    return next(owner for owner in inventory.owners.values() if owner.id.name == name)


def objects(owner: Owner) -> dict[str, str]:
    assert owner.unbuilt == ""
    return {str(name): built.file for name, built in owner.objects.items()}


def test_a_kustomization_owns_what_its_folder_builds_each_with_its_file() -> None:
    patch = "- {op: add, path: /data, value: {k: v}}"
    texts = {
        "platform/kustomization.yaml": kustomization(
            resources=["../base", "a.yaml"],
            namespace="prod",
            nameSuffix="-x",
            patches=[{"patch": patch, "target": {"name": "b"}}],
            configMapGenerator=[{"name": "generated", "literals": ["a=b"]}],
        ),
        "platform/a.yaml": namespace("a"),
        "base/kustomization.yaml": kustomization(resources=["b.yaml"]),
        "base/b.yaml": config_map("b"),
    }
    owner = owner_of(inventory_of(texts))
    found = objects(owner)
    assert [file for name, file in found.items() if "generated-x" in name] == ["platform/kustomization.yaml"]
    assert found["ConfigMap prod/b-x"] == "base/b.yaml"
    assert found["Namespace prod"] == "platform/a.yaml"  # kustomize renames the only one
    built = next(built for name, built in owner.objects.items() if name.name == "b-x")
    assert built.manifest["data"] == {"k": "v"}
    assert "annotations" not in built.manifest["metadata"]


def test_a_folder_without_a_kustomization_file_is_built_as_flux_lists_it() -> None:
    texts = {
        "platform/a.yaml": namespace("a") + "---\n" + namespace("b"),
        "platform/below/c.yml": config_map("c"),
        "platform/listed/kustomization.yml": kustomization(resources=["d.yaml"]),
        "platform/listed/d.yaml": namespace("d"),
        "platform/listed/e.yaml": namespace("e"),
        "platform/notes.md": "x",
    }
    assert objects(owner_of(inventory_of(texts))) == {
        "Namespace a": "platform/a.yaml",
        "Namespace b": "platform/a.yaml",
        "ConfigMap platform/c": "platform/below/c.yml",
        "Namespace d": "platform/listed/d.yaml",
    }


def test_documents_without_content_aliases_and_merged_keys_are_read_as_kustomize_reads_them() -> None:
    merged = "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: a}\ndata: {<<: {x: 'y'}}\n---\n# a\n---\n"
    texts = {"platform/a.yaml": merged, "platform/empty.yaml": "", "platform/comment.yaml": "# nothing\n"}
    (built,) = owner_of(inventory_of(texts)).objects.values()
    assert built.manifest["data"] == {"x": "y"}


def test_a_number_of_more_than_64_bits_is_what_flux_reads() -> None:
    numbers = {"decimal": "9" * 30, "hexadecimal": f"0x{'f' * 4000}", "least": str(-(2**63))}
    data = "".join(f"  {name}: {number}\n" for name, number in numbers.items())
    owner = owner_of(inventory_of({"platform/a.yaml": f"{config_map('a')}data:\n{data}"}))
    assert owner.unbuilt == ""
    (built,) = owner.objects.values()
    assert built.manifest["data"] == {
        "decimal": 1e30,
        "hexadecimal": numbers["hexadecimal"],
        "least": -(2**63),
    }


def test_the_kustomization_file_is_written_anew_as_flux_does_it() -> None:
    # To Flux, a number is a text where kustomize wants one. Without resources, objects say their origin.
    texts = {
        "platform/kustomization.yaml": kustomization(
            configMapGenerator=[
                {"name": "a", "literals": ["a=b"], "options": {"disableNameSuffixHash": True}}
            ],
            commonLabels={"number": 1},
        )
    }
    (built,) = owner_of(inventory_of(texts)).objects.values()
    assert built.manifest["metadata"]["labels"] == {"number": "1"}
    assert "config.kubernetes.io/origin" in built.manifest["metadata"]["annotations"]


def test_what_the_spec_of_a_kustomization_changes_is_in_its_objects() -> None:
    patch = config_map("c", k="patched").replace("\n", "\n      ")
    more = f"""\
  targetNamespace: team
  namePrefix: pre-
  components: [../part]
  patches:
  - patch: |
      {patch}
  commonMetadata: {{labels: {{team: a}}}}
"""
    texts = {
        "platform/k.yaml": applied("layer", "./layer", more=more),
        "layer/c.yaml": config_map("c", k="v"),
        "part/kustomization.yaml": kustomization(kind="Component", resources=["p.yaml"]),
        "part/p.yaml": config_map("p"),
    }
    owner = owner_of(inventory_of(texts), "layer")
    assert objects(owner) == {
        "ConfigMap team/pre-c": "layer/c.yaml",
        "ConfigMap team/pre-p": "part/p.yaml",
    }
    built = next(built for name, built in owner.objects.items() if name.name == "pre-c")
    assert built.manifest["data"] == {"k": "patched"}
    assert built.manifest["metadata"]["labels"] == {"team": "a"}


def test_nested_kustomizations_of_the_same_source_are_owners_too() -> None:
    texts = {
        "platform/k.yaml": applied("a", "./layers/a") + "---\n" + applied("b", "./layers/b", source="team"),
        "layers/a/k.yaml": applied("c", "./layers/c"),
        "layers/c/c.yaml": namespace("c"),
    }
    found = inventory_of(texts)
    assert [str(name) for name in found.owners] == [
        "Kustomization flux-system/flux-system",
        "Kustomization flux-system/a",
        "Kustomization flux-system/c",
    ]
    assert [owner.file for owner in found.owners.values()] == ["", "platform/k.yaml", "layers/a/k.yaml"]


def test_variables_come_from_facts_config_maps_of_the_platform_and_the_spec() -> None:
    more = """\
  postBuild:
    substitute: {inline: "1"}
    substituteFrom:
      - {kind: ConfigMap, name: cluster-facts}
      - {kind: ConfigMap, name: settings}
"""
    texts = {
        "platform/k.yaml": applied("a", "./a", more=more),
        "platform/settings.yaml": config_map("settings", zone="z1", inline="2").replace(
            "platform", "flux-system"
        ),
        "a/c.yaml": config_map(
            "c",
            n="${cluster_name}",
            t="${cluster_label_tier}",
            z="${zone}-${inline}",
            f="${cluster_fqdn}",
            d="${no:=x}",
        ),
        "a/plain.yaml": config_map("plain", n="${cluster_name}").replace(
            "  namespace", "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n  namespace"
        ),
    }
    owner = owner_of(inventory_of(texts), "a")
    data: dict[str, Any] = {name.name: built.manifest["data"] for name, built in owner.objects.items()}
    assert data["c"] == {"n": "one", "t": None, "z": "z1-1", "f": "${cluster_fqdn}", "d": "x"}
    assert data["plain"] == {"n": "${cluster_name}"}
    assert owner.missing == {"cluster_label_tier": ("a/c.yaml",)}
    assert owner.unknown == ("cluster_fqdn",)
    assert owner.variables == {"cluster_name": "one", "zone": "z1", "inline": "1"}
    recorded = owner_of(inventory_of(texts, facts={"cluster_fqdn": "a.example.com"}), "a")
    assert recorded.unknown == ()
    assert recorded.variables["cluster_fqdn"] == "a.example.com"


def test_a_path_that_only_the_cluster_knows_is_not_built_and_no_problem() -> None:
    texts = {
        "platform/k.yaml": applied("a", "./a", more=FROM_FACTS),
        "a/k.yaml": applied("b", "./b/${cluster_fqdn}"),
        "b/x/b.yaml": namespace("b"),
    }
    found = inventory_of(texts)
    owner = owner_of(found, "b")
    assert owner.unbuilt == "its path is known on the cluster alone: ./b/${cluster_fqdn}"
    assert found.unfollowed == ("a/k.yaml its path is known on the cluster alone: ./b/${cluster_fqdn}",)
    assert not owner.problems


def test_what_only_the_cluster_has_leaves_variables_as_they_are() -> None:
    more = "  postBuild:\n    substituteFrom: [{kind: Secret, name: elsewhere, optional: true}]\n"
    texts = {"platform/k.yaml": applied("a", "./a", more=more), "a/c.yaml": config_map("c", n="${token:-x}")}
    owner = owner_of(inventory_of(texts), "a")
    assert [built.manifest["data"] for built in owner.objects.values()] == [{"n": "${token:-x}"}]
    assert owner.unknown == ("token",)
    assert not owner.missing


@pytest.mark.parametrize(
    ("texts", "place", "message"),
    [
        ({"platform/K.yaml": applied("a", "./gone")}, "platform/K.yaml:11", "there is no folder ./gone"),
        (
            {"platform/a.yaml": namespace("a") + "metadata:\n  x: y\n"},
            "platform/a.yaml:5",
            "metadata is written twice",
        ),
        (
            {"platform/a.yaml": "replicas: 3\n"},
            "platform/a.yaml:1",
            "it lacks apiVersion, kind and metadata.name",
        ),
        (
            {"platform/a.yaml": "apiVersion: v1\nkind: Namespace\nmetdata: {name: a}\n"},
            "platform/a.yaml:1",
            "it lacks metadata.name",
        ),
        ({"platform/a.yaml": "a: [1\n"}, "platform/a.yaml:2", "is not valid YAML"),
        (
            {"platform/a.yaml": "a: 1\n<<<<<<< HEAD\nb: 2\n=======\nb: 3\n>>>>>>> topic\n"},
            "platform/a.yaml:2",
            "has merge-conflict markers; resolve the conflict",
        ),
        (
            {"platform/a.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"},
            "platform/a.yaml:1",
            "is a pointer of Git LFS",
        ),
        (
            {"platform/Kustomization.yaml": kustomization()},
            "platform/Kustomization.yaml:1",
            "rename it to kustomization.yaml",
        ),
        ({"platform/.gitkeep": ""}, ":1", "has no object: Flux would delete all"),
        ({"platform/kustomization.yaml": "resources: []\n"}, ":1", "has no object: Flux would delete all"),
        (
            {"platform/kustomization.yaml": "resource: [a.yaml]\n"},
            "platform/kustomization.yaml:1",
            "did you mean resources?",
        ),
        (
            {"platform/kustomization.yaml": "helmCharts: [{name: a}]\n"},
            "platform/kustomization.yaml:1",
            "Flux renders no charts of a kustomization file; write a HelmRelease",
        ),
        (
            {
                "platform/kustomization.yaml": kustomization(resources=["a/kustomization.yaml"]),
                "platform/a/kustomization.yaml": kustomization(),
            },
            "platform/a/kustomization.yaml:1",
            "is a file of kustomize and no object; list its folder platform/a instead",
        ),
        (
            {
                "platform/kustomization.yaml": "resources:\n- a.yaml\n- gone.yaml\n",
                "platform/a.yaml": namespace("a"),
            },
            "platform/kustomization.yaml:3",
            "there is no platform/gone.yaml",
        ),
        (
            {
                "platform/kustomization.yaml": kustomization(
                    resources=["a.yaml"], patches=[{"patch": "{", "target": {}}]
                ),
                "platform/a.yaml": namespace("a"),
            },
            "platform/kustomization.yaml:1",
            "kustomize cannot build this",
        ),
        (
            {
                "platform/k.yaml": applied("a", "./a", more=FROM_FACTS),
                "a/c.yaml": config_map("c", n="${a[0]}"),
            },
            "a/c.yaml:7",
            "Flux cannot read this; write $${a[0]} to keep it",
        ),
    ],
)
def test_what_cannot_be_built_is_a_problem_at_its_place(
    texts: dict[str, str], place: str, message: str
) -> None:
    inventory = inventory_of(texts)
    (problem,) = [problem for owner in inventory.owners.values() for problem in owner.problems]
    assert f"{problem.file}:{problem.line}" == place
    assert message in str(problem)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("./Layers/a", "there is no folder ./Layers/a; did you mean ./layers/a?"),
        ("./layers/A/", "there is no folder ./layers/A; did you mean ./layers/a?"),
        ("./layers/a/a.yaml", "./layers/a/a.yaml is a file, and Flux builds folders; write ./layers/a"),
        ("./layers/b", "there is no folder ./layers/b; did you mean ./layers/a?"),
    ],
)
def test_a_path_that_is_nearly_right_has_the_right_one_as_hint(path: str, message: str) -> None:
    """Report: fluxcd/flux2#4407: a disk without case takes both spellings."""
    texts = {"platform/k.yaml": applied("a", path), "layers/a/a.yaml": namespace("a")}
    (problem,) = owner_of(inventory_of(texts), "a").problems
    assert message in str(problem)


def test_a_file_of_a_generator_that_is_a_pointer_and_a_folder_that_is_ignored_are_problems() -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    generator = [{"name": "a", "files": ["big.bin"]}]
    texts = {
        "platform/kustomization.yaml": kustomization(configMapGenerator=generator),
        "platform/big.bin": pointer,
    }
    (problem,) = owner_of(inventory_of(texts)).problems
    assert str(problem).startswith("platform/big.bin:1:1: is a pointer of Git LFS")
    texts = {"platform/k.yaml": applied("a", "./a"), "a/a.yaml": namespace("a"), ".sourceignore": "/a\n"}
    (problem,) = owner_of(inventory_of(texts), "a").problems
    assert "all that is in ./a is left out by an ignore rule" in str(problem)


def test_a_link_in_a_folder_is_a_problem_and_what_is_remote_is_not_built() -> None:
    texts = {"platform/a.yaml": namespace("a")}
    assert "is a link" in str(owner_of(inventory_of(texts, links=["platform/b.yaml"])).problems[0])
    texts = {"platform/k.yaml": applied("a", "./layers/a"), "old/a/a.yaml": namespace("a")}
    (problem,) = owner_of(inventory_of(texts, links=["layers"]), "a").problems
    assert str(problem).startswith("platform/k.yaml:11:3 spec.path: layers is a link or a submodule")
    texts = {"platform/kustomization.yaml": kustomization(resources=["https://github.com/example/base"])}
    found = inventory_of(texts)
    assert "is remote" in owner_of(found).unbuilt
    assert not owner_of(found).problems
    assert found.unfollowed == ("platform/kustomization.yaml:1 https://github.com/example/base is remote",)


def test_clusters_share_an_inventory_unless_a_fact_that_is_used_differs() -> None:
    texts = {
        "platform/k.yaml": applied("a", "./a", more=FROM_FACTS),
        "a/c.yaml": config_map("c", e="${cluster_label_tier}"),
    }
    builds: list[str] = []

    def build(files: Mapping[str, bytes], folder: str) -> bytes:
        builds.append(folder)
        return kustomize_program().build(files, folder)

    every = Inventories(tree_of(texts), Builds(build))
    clusters = [
        changed(desired(flux=FLUX), name=f"c{n}", labels={"tier": "gold" if n % 2 else "silver"})
        for n in range(200)
    ]
    assert len({id(every.of(cluster)) for cluster in clusters}) == 2
    assert sorted(builds) == ["a", "platform"]


def test_an_object_in_two_versions_of_its_api_is_a_problem_of_the_second() -> None:
    scaler = (
        "apiVersion: autoscaling/{}\nkind: HorizontalPodAutoscaler\nmetadata: {{name: web, namespace: a}}\n"
    )
    texts = {"platform/a.yaml": scaler.format("v1"), "platform/b.yaml": scaler.format("v2")}
    (problem,) = owner_of(inventory_of(texts)).problems
    assert str(problem) == (
        "platform/b.yaml:1:1 apiVersion: HorizontalPodAutoscaler a/web is here twice, as autoscaling/v1 "
        "(platform/a.yaml) and autoscaling/v2; keep one, because a cluster has one of them"
    )
