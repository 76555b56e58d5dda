"""Which files a path of Flux reaches, and when their digest changes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.platform.builds.declared import declared
from shared.platform.pins import roots_of
from shared.platform.source.reach import reach_of
from tests.support.arm_bodies import desired
from tests.support.platform_trees import (
    applied,
    config_map,
    kustomization,
    namespace,
    pulled_of,
    release,
    tree_of,
)

pytestmark = pytest.mark.lives

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
ELSEWHERE = {"README.md": "x", "apps/a.yaml": namespace("a"), "clusters/a/cluster.yaml": "kind: Cluster\n"}
PATCH = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"
REFERENCES: Mapping[str, tuple[dict[str, object], str]] = {
    "a manifest": ({"resources": ["a.yaml"]}, namespace("a")),
    "a base": ({"bases": ["../base"]}, ""),
    "a strategic patch": ({"patchesStrategicMerge": ["a.yaml"]}, PATCH),
    "a patch": ({"patches": [{"path": "a.yaml"}]}, PATCH),
    "a JSON patch": ({"patchesJson6902": [{"path": "a.yaml", "target": {"kind": "Namespace"}}]}, "[]"),
    "a file of a ConfigMap": ({"configMapGenerator": [{"name": "a", "files": ["a.yaml"]}]}, "x: 1"),
    "a file by key": ({"configMapGenerator": [{"name": "a", "files": ["key=a.yaml"]}]}, "x: 1"),
    "variables of a Secret": ({"secretGenerator": [{"name": "a", "envs": ["a.yaml"]}]}, "x=1"),
    "variables by the old name": ({"secretGenerator": [{"name": "a", "env": "a.yaml"}]}, "x=1"),
    "values of a chart": ({"helmCharts": [{"name": "a", "valuesFile": "a.yaml"}]}, "x: 1"),
    "more values": ({"helmCharts": [{"name": "a", "additionalValuesFiles": ["a.yaml"]}]}, "x: 1"),
    "a configuration": ({"configurations": ["a.yaml"]}, "x: 1"),
    "a definition": ({"crds": ["a.yaml"]}, "x: 1"),
    "a schema": ({"openapi": {"path": "a.yaml"}}, "x: 1"),
    "a replacement": ({"replacements": [{"path": "a.yaml"}]}, "x: 1"),
    "a generator": ({"generators": ["a.yaml"]}, "kind: ConfigMapGenerator\nmetadata: {name: a}\n"),
    "a transformer": ({"transformers": ["a.yaml"]}, "kind: PrefixTransformer\nmetadata: {name: a}\n"),
    "a validator": ({"validators": ["a.yaml"]}, "kind: X\nmetadata: {name: a}\n"),
    "a field in another case": ({"Resources": ["a.yaml"]}, namespace("a")),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_file_that_a_kustomization_refers_to_is_reached(name: str) -> None:
    fields, content = REFERENCES[name]
    target = "platform/a.yaml" if content else "base/n.yaml"
    texts = {
        **ELSEWHERE,
        "platform/kustomization.yaml": kustomization(**fields),
        "platform/other.yaml": namespace("other"),
        target: content or namespace("a"),
    }
    if not content:
        texts["base/kustomization.yaml"] = kustomization(resources=["n.yaml"])
    found, _ = pulled_of(texts, "platform")
    assert target in found.files
    assert "platform/other.yaml" not in found.files
    assert "apps/a.yaml" not in found.files
    assert pulled_of({**texts, target: f"{texts[target]}\n# changed\n"}, "platform")[0].digest != found.digest


def test_a_base_concerns_all_that_include_it_and_an_overlay_its_own_alone() -> None:
    texts = {
        "platform/base/kustomization.yaml": kustomization(resources=["a.yaml"]),
        "platform/base/a.yaml": namespace("a"),
        **{
            f"platform/{name}/kustomization.yaml": kustomization(
                resources=["../base"], components=["../parts"], patches=[{"path": "patch.yaml"}]
            )
            for name in ("dev", "prod")
        },
        **{f"platform/{name}/patch.yaml": PATCH for name in ("dev", "prod")},
        "platform/parts/kustomization.yaml": kustomization(kind="Component", resources=["b.yaml"]),
        "platform/parts/b.yaml": namespace("b"),
    }
    before = {root: pulled_of(texts, root)[0].digest for root in ("platform/dev", "platform/prod")}
    for changed, concerned in (
        ("platform/base/a.yaml", {"platform/dev", "platform/prod"}),
        ("platform/parts/b.yaml", {"platform/dev", "platform/prod"}),
        ("platform/prod/patch.yaml", {"platform/prod"}),
    ):
        after = {**texts, changed: texts[changed] + "# changed\n"}
        different = {root for root in before if pulled_of(after, root)[0].digest != before[root]}
        assert different == concerned


def test_a_folder_without_a_kustomization_file_has_all_manifests_and_the_folders_that_have_one() -> None:
    texts = {
        **ELSEWHERE,
        "platform/a.yaml": namespace("a"),
        "platform/b.yml": namespace("b"),
        "platform/notes.txt": "x",
        "platform/deep/er/c.yaml": namespace("c"),
        "platform/listed/kustomization.yaml": kustomization(resources=["d.yaml"]),
        "platform/listed/d.yaml": namespace("d"),
        "platform/listed/left-out.yaml": namespace("e"),
        "platform/listed/below/left-out.yaml": namespace("f"),
        "platform/listed2/g.yaml": namespace("g"),
    }
    found, _ = pulled_of(texts, "platform")
    assert set(found.files) == {
        "platform/a.yaml",
        "platform/b.yml",
        "platform/deep/er/c.yaml",
        "platform/listed/kustomization.yaml",
        "platform/listed/d.yaml",
        "platform/listed2/g.yaml",
    }


def test_kustomizations_and_charts_of_the_same_source_are_followed() -> None:
    values = "      valuesFiles: [charts/web/production.yaml]\n"
    texts = {
        **ELSEWHERE,
        "platform/kustomization.yaml": kustomization(resources=["flux.yaml"]),
        "platform/flux.yaml": applied("a", "./layers/a")
        + "---\n"
        + applied("b", "./layers/b", source="team"),
        "layers/a/a.yaml": applied("c", "layers/c"),
        "layers/b/b.yaml": namespace("b"),
        "layers/c/c.yaml": release("web", "./charts/web", values),
        "charts/web/templates/a.yaml": "{{ x }}",
        "charts/web/production.yaml": "x: 1",
        "charts/other/values.yaml": "x: 1",
    }
    found, stages = pulled_of(texts, "platform")
    assert set(found.files) == {
        *("platform/kustomization.yaml", "platform/flux.yaml", "layers/a/a.yaml", "layers/c/c.yaml"),
        *("charts/web/templates/a.yaml", "charts/web/production.yaml"),
    }
    assert not found.unfollowed
    assert stages == 4


@pytest.mark.parametrize(
    "patch",
    [
        {"patch": "- {op: replace, path: /spec/path, value: ./layers/production}", "target": {"name": "a"}},
        {"patch": applied("a", "./layers/production")},
    ],
)
def test_a_patched_path_of_a_kustomization_is_followed(patch: dict[str, object]) -> None:
    texts = {
        "base/kustomization.yaml": kustomization(resources=["a.yaml"]),
        "base/a.yaml": applied("a", "./layers/development"),
        "production/kustomization.yaml": kustomization(resources=["../base"], patches=[patch]),
        "layers/production/a.yaml": namespace("a"),
    }
    assert "layers/production/a.yaml" in pulled_of(texts, "production")[0].files


def test_a_path_with_a_variable_reaches_all_that_it_may_be() -> None:
    texts = {
        "platform/a.yaml": applied("a", "./layers/${cluster_environment}/x"),
        "layers/dev/x/a.yaml": namespace("a"),
        "layers/prod/x/kustomization.yaml": kustomization(resources=["../../../shared"]),
        "shared/kustomization.yaml": kustomization(resources=["b.yaml"]),
        "shared/b.yaml": namespace("b"),
        "other/c.yaml": namespace("c"),
    }
    assert set(pulled_of(texts, "platform")[0].files) == {*texts} - {"other/c.yaml"}


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": ["https://github.com/example/base?ref=main"]},
        {"resources": ["github.com/example/base"]},
        {"components": ["git@github.com:example/base.git"]},
        {"configMapGenerator": [{"name": "a", "files": ["https://example.com/a"]}]},
    ],
)
def test_what_is_remote_counts_as_the_whole_tree_without_the_manifests_of_the_fleet(
    fields: dict[str, object],
) -> None:
    texts = {
        **ELSEWHERE,
        "fleet.yaml": "kind: Fleet\n",
        "classes/a.yaml": "kind: ClusterClass\n",
        "platform/kustomization.yaml": kustomization(**fields),
    }
    found, _ = pulled_of(texts, "platform")
    assert set(found.files) == {"README.md", "apps/a.yaml", "platform/kustomization.yaml"}
    assert len(found.unfollowed) == 1
    assert found.unfollowed[0].startswith("platform/kustomization.yaml:1 ")
    assert pulled_of({**texts, "fleet.yaml": "x"}, "platform")[0].digest == found.digest


def test_links_submodules_and_ignored_files_are_not_pulled() -> None:
    texts = {
        "platform/a.yaml": namespace("a"),
        "platform/tests/b.yaml": namespace("b"),
        "platform/.sourceignore": "tests/\n!tests/keep.yaml\n",
        "platform/tests/keep.yaml": namespace("c"),
        "platform/.github/d.yaml": namespace("d"),
    }
    found, _ = pulled_of(texts, "platform", links=["platform/link.yaml", "platform/module"])
    # A rule of the repository replaces the default ones, so .github is pulled then.
    assert set(found.files) == {"platform/a.yaml", "platform/tests/keep.yaml", "platform/.github/d.yaml"}
    del texts["platform/.sourceignore"]
    found, _ = pulled_of(texts, "platform")
    assert set(found.files) == {"platform/a.yaml", "platform/tests/b.yaml", "platform/tests/keep.yaml"}
    assert set(pulled_of(texts, "platform", ignore="/*\n!/platform\n/platform/tests")[0].files) == {
        "platform/a.yaml",
        "platform/.github/d.yaml",
    }


@pytest.mark.parametrize(
    ("entry", "links", "message"),
    [
        ("gone.yaml", (), "there is no platform/gone.yaml"),
        ("nmespace.yaml", (), "did you mean platform/namespace.yaml?"),
        ("link.yaml", ("platform/link.yaml",), "is a link or a submodule"),
        ("../../etc/passwd", (), "leads out of the repository"),
        ("/etc/passwd", (), "leads out of the repository"),
        ("photo.png", (), "is left out by an ignore rule"),
        ("bare", (), "platform/bare has no kustomization.yaml"),
        ("shouted", (), "platform/shouted/Kustomization.yaml is no kustomization file to kustomize"),
    ],
)
def test_a_reference_that_leads_nowhere_is_a_problem_at_its_place(
    entry: str, links: tuple[str, ...], message: str
) -> None:
    texts = {
        "platform/kustomization.yaml": f"resources:\n  - namespace.yaml\n  - {entry}\n",
        "platform/namespace.yaml": namespace("a"),
        "platform/photo.png": "x",
        "platform/bare/a.yaml": namespace("b"),
        "platform/shouted/Kustomization.yaml": kustomization(),
    }
    (problem,) = reach_of(tree_of(texts, links), "platform").problems
    assert (problem.file, problem.line, problem.field) == ("platform/kustomization.yaml", 3, "resources[1]")
    assert message in problem.message


def test_a_cycle_ends_and_a_hostile_tree_is_bounded() -> None:
    cycle = {
        "a/kustomization.yaml": kustomization(resources=["../b"]),
        "b/kustomization.yaml": kustomization(resources=["../a"]),
        "c/c.yaml": applied("c", "./c") + "---\n" + applied("a", "./a"),
    }
    assert set(pulled_of(cycle, "c")[0].files) == {*cycle}
    deep = {f"d{n}/kustomization.yaml": kustomization(resources=[f"../d{n + 1}"]) for n in range(500)}
    found, stages = pulled_of(deep, "d0")
    assert stages < 50
    assert found.unfollowed
    bomb = "a: &a [x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(24)
    )
    assert pulled_of({"a/kustomization.yaml": bomb, "b.md": "x"}, "a")[0].unfollowed


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
ENTRIES = st.builds(
    lambda up, path: "../" * up + path, st.integers(0, 2), PATHS | PATHS.map("{}.yaml".format)
)
TEXTS = st.one_of(
    st.builds(lambda entries: kustomization(resources=entries), st.lists(ENTRIES, max_size=3)),
    NAMES.map(namespace),
    st.builds(applied, NAMES, PATHS),
)
TREES = st.dictionaries(
    st.builds(
        lambda folder, name: f"{folder}/{name}",
        PATHS,
        st.sampled_from(["kustomization.yaml", "a.yaml", "b.yaml", "x.txt"]),
    ),
    TEXTS,
    max_size=10,
)


@relaxed
@given(TREES, PATHS, st.data())
def test_the_digest_changes_exactly_with_the_files_that_are_reached(
    texts: dict[str, str], root: str, data: st.DataObject
) -> None:
    found, _ = pulled_of(texts, root)
    if not texts:
        return
    path = data.draw(st.sampled_from(sorted(texts)))
    changed, _ = pulled_of({**texts, path: texts[path] + "\n# changed\n"}, root)
    assert (changed.digest != found.digest) == (path in found.files)


@relaxed
@given(TREES, st.lists(PATHS, max_size=3))
def test_any_contents_are_followed_within_bounds(texts: dict[str, str], roots: list[str]) -> None:
    found, stages = pulled_of(texts, *roots)
    assert set(found.files) <= {*texts}
    assert stages <= len(texts)
    assert found == pulled_of(texts, *reversed(roots))[0]


@relaxed
@given(st.text(max_size=200))
def test_any_text_of_a_kustomization_file_is_followed_or_not_but_never_an_error(text: str) -> None:
    pulled_of({"a/kustomization.yaml": text, "a/b.yaml": text}, "a")
    pulled_of({"a/b.yaml": text}, "a", ignore=text)


def test_thousands_of_files_take_a_fraction_of_a_second() -> None:
    texts = {f"platform/{n % 50}/{n}.yaml": config_map(f"c{n}") for n in range(3000)}
    found, _ = pulled_of(texts, "platform", "platform/1", "platform/2")
    assert len(found.files) == 3000


def test_the_roots_of_a_cluster_are_what_its_kustomizations_of_the_fleet_repository_apply() -> None:
    patch = "- {op: replace, path: /spec/path, value: ./x}"
    flux = {
        "repository": "https://github.com/example/fleet",
        "path": "./platform",
        "sources": [
            {"name": "team", "kind": "GitRepository", "url": "https://github.com/a/b", "branch": "main"}
        ],
        "kustomizations": [
            {"name": "infra", "path": "./platform/infra", "patches": [{"patch": patch}]},
            {"name": "team", "path": "./apps", "source": "team"},
        ],
    }
    cluster = desired(flux=flux)
    owners = declared(cluster)
    assert [str(owner.id) for owner in owners] == [
        "Kustomization flux-system/flux-system",
        "Kustomization flux-system/infra",
    ]
    assert roots_of(cluster.flux_as_stored) == ("platform", "platform/infra", "x")
    extension = declared(desired(flux=flux | {"install": "extension"}))
    assert [owner.id.name for owner in extension] == ["flux-system-flux-system", "flux-system-infra"]
