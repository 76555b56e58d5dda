"""What kustomize refuses is said with the file, the line and the object, which its own messages lack."""

from __future__ import annotations

import pytest

from tests.support.inventories import inventory_of
from tests.support.platform_trees import applied, config_map, kustomization, namespace

pytestmark = pytest.mark.lives

PATCH = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c%s}\ndata: {k: v}\n"
REMOVE = "- op: remove\n  path: /data/nothing\n"
TARGET = {"kind": "ConfigMap", "name": "c"}
PATCHED = (
    "  patches:\n    - target: {kind: ConfigMap}\n"
    "      patch: |\n        - op: remove\n          path: /data/nothing\n"
)
BASE = {"platform/base/kustomization.yaml": kustomization(resources=["c.yaml"])}
COMPONENT = {"platform/part/kustomization.yaml": kustomization(kind="Component", resources=["c.yaml"])}


@pytest.mark.parametrize(
    ("texts", "place", "message"),
    [
        pytest.param(
            {"platform/c.yaml": f"{config_map('c')}---\n{config_map('c')}"},
            "platform/c.yaml:10",
            "ConfigMap platform/c is here twice, first in platform/c.yaml:1; remove one of them",
            id="twice in one file",
        ),
        pytest.param(
            {"platform/a.yaml": namespace("a"), "platform/b/n.yaml": namespace("a")},
            "platform/b/n.yaml:4",
            "Namespace a is here twice, first in platform/a.yaml:1",
            id="twice in a folder without a kustomization file",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(resources=["base", "base/c.yaml"]),
                **BASE,
                "platform/base/c.yaml": config_map("c"),
            },
            "platform/base/c.yaml:4",
            "is taken twice, because two entries lead to this file",
            id="listed twice",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(
                    resources=["c.yaml"], patches=[{"path": "p.yaml"}]
                ),
                "platform/c.yaml": config_map("c"),
                "platform/p.yaml": PATCH % "",
            },
            "platform/p.yaml:3",
            "has its kind, name and namespace; it is in the namespace platform, so write that",
            id="a patch without the namespace",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(
                    resources=["c.yaml"], patches=[{"path": "p.yaml"}]
                ),
                "platform/c.yaml": config_map("c"),
                "platform/p.yaml": PATCH % "2, namespace: platform",
            },
            "platform/p.yaml:3",
            "this patch is for ConfigMap c2, and nothing built here has",
            id="a patch for nothing",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(
                    resources=["c.yaml"], patches=[{"path": "p.yaml", "target": TARGET}]
                ),
                "platform/c.yaml": config_map("c"),
                "platform/p.yaml": REMOVE,
            },
            "platform/p.yaml:2",
            "/data/nothing of what this patch is for is not there",
            id="a path that is not there",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(resources=["part"]),
                **COMPONENT,
                "platform/part/c.yaml": config_map("c"),
            },
            "platform/kustomization.yaml:1",
            "resources[0]: platform/part is a Component; list it in components, and not in resources",
            id="a component among the resources",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(components=["base"]),
                **BASE,
                "platform/base/c.yaml": config_map("c"),
            },
            "platform/kustomization.yaml:1",
            "components[0]: platform/base is no Component; list it in resources",
            id="a base among the components",
        ),
        pytest.param(
            {"platform/n.yaml": namespace("a"), **COMPONENT, "platform/part/c.yaml": config_map("c")},
            "platform/part/kustomization.yaml:1",
            "a folder without a kustomization file lists each folder in resources",
            id="a component in a folder without a kustomization file",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(resources=["${cluster_name}/c.yaml"]),
                "platform/one/c.yaml": config_map("c"),
            },
            "platform/kustomization.yaml:1",
            "${cluster_name}/c.yaml is taken letter for letter",
            id="a variable in a kustomization file, fluxcd/flux2#4289, #5000",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(resources=["c.yaml"]),
                "platform/kustomization.yml": kustomization(resources=["c.yaml"]),
                "platform/c.yaml": config_map("c"),
            },
            "platform/kustomization.yaml:1",
            "is one of several kustomization files of its folder",
            id="two kustomization files",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(
                    configMapGenerator=[{"name": "c", "behavior": "merge", "literals": ["a=b"]}]
                )
            },
            "platform/kustomization.yaml:1",
            "configMapGenerator[0]: nothing built here is a ConfigMap c that this generator could merge with",
            id="a generator for nothing",
        ),
        pytest.param(
            {
                "platform/kustomization.yaml": kustomization(
                    resources=["c.yaml"], replicas=[{"name": "web", "count": 2}]
                ),
                "platform/c.yaml": config_map("c"),
            },
            "platform/kustomization.yaml:1",
            "replicas[0]: nothing built here is a workload web",
            id="replicas for nothing",
        ),
        pytest.param(
            {
                "platform/a.yaml": applied("a", "./a", more=PATCHED),
                "a/c.yaml": config_map("c"),
            },
            "platform/a.yaml:15",
            "spec.patches: ",
            id="a patch of Flux's own object",
        ),
    ],
)
def test_a_build_that_fails_is_blamed_on_its_file(texts: dict[str, str], place: str, message: str) -> None:
    (problem,) = [problem for owner in inventory_of(texts).owners.values() for problem in owner.problems]
    assert f"{problem.file}:{problem.line}" == place
    assert message in str(problem)
