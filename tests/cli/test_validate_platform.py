"""``roadstead validate`` builds what Flux applies to each cluster from the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import fleet_files
from tests.support.platform_trees import applied, config_map, kustomization, namespace
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

EARLY = ("--on", "2026-01-01")


def repository(folder: Path, **texts: str) -> Path:
    """Return the example fleet of three clusters with these files of its platform."""
    return write(folder, fleet_files.with_platform(texts))


def output(fleet: Path, *arguments: str) -> tuple[int, list[str]]:
    done = roadstead("validate", *EARLY, *arguments, cwd=fleet)
    assert done.stderr == ""
    return done.returncode, [line for line in done.stdout.splitlines() if line]


def test_a_path_that_is_not_there_is_a_problem_with_the_folder_that_is_meant(tmp_path: Path) -> None:
    texts = {
        "kustomization.yaml": kustomization(resources=["monitoring.yaml"]),
        "monitoring.yaml": applied("monitoring", "./platform/layers/monitoring"),
        "layers/observability/namespace.yaml": namespace("monitoring"),
    }
    assert output(repository(tmp_path, **texts)) == (
        1,
        [
            "platform/monitoring.yaml:11:3 spec.path: there is no folder ./platform/layers/monitoring; "
            "did you mean ./platform/layers/observability?",
            "1 problem in 1 file; the manifest of every cluster is valid",
        ],
    )


@pytest.mark.parametrize("name", ["Kustomization.yaml", "kustomization.YAML"])
def test_a_kustomization_file_with_capital_letters_is_refused_with_the_right_name(
    tmp_path: Path, name: str
) -> None:
    texts = {name: kustomization(resources=["a.yaml"]), "a.yaml": namespace("a")}
    code, lines = output(repository(tmp_path, **texts))
    assert code == 1
    assert len(lines) == 2
    assert lines[0].startswith(f"platform/{name}:1:1: ")
    assert lines[0].endswith("rename it to kustomization.yaml")


def test_values_among_manifests_are_refused_at_their_file(tmp_path: Path) -> None:
    code, lines = output(repository(tmp_path, **{"values.yaml": "replicas: 3\n", "a.yaml": namespace("a")}))
    assert code == 1
    assert lines[0].startswith(
        "platform/values.yaml:1:1: no Kubernetes object: it lacks apiVersion, kind and"
    )
    assert "kustomization.yaml" in lines[0]


def test_a_refactoring_has_no_problem(tmp_path: Path) -> None:
    texts = {
        "kustomization.yaml": kustomization(resources=["gateway", "info.yaml", "namespace.yaml"]),
        "namespace.yaml": namespace("platform"),
        "gateway/kustomization.yaml": kustomization(resources=["a.yaml"]),
        "gateway/a.yaml": config_map("gateway", key="x"),
        "info.yaml": "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: platform, name: 'info'}\n",
    }
    assert output(repository(tmp_path, **texts)) == (0, ["no problems: 3 clusters, 1 system"])


def test_a_path_of_a_manifest_that_is_not_there_has_the_line_of_the_manifest(tmp_path: Path) -> None:
    fleet = repository(tmp_path, **{"a.yaml": namespace("a")})
    (fleet / "platform").rename(fleet / "plattform")
    code, lines = output(fleet)
    assert code == 1
    (problem,) = lines[:-1]
    assert problem.startswith("fleet.yaml:")
    assert problem.endswith("spec.flux.path: there is no folder ./platform; did you mean ./plattform?")


def test_a_path_of_which_only_the_beginning_is_there_is_a_problem(tmp_path: Path) -> None:
    fleet = write(tmp_path, fleet_files.example())
    (fleet / "platform" / "environments").rename(fleet / "platform" / "stages")
    code, lines = output(fleet)
    assert code == 1
    assert lines[0].startswith("environments/development.yaml:")
    assert "spec.flux.path: there is no folder ./platform/environments/development" in lines[0]
    assert lines[0].endswith("(on sargasso-aks)")


def test_what_fails_on_some_clusters_names_these(tmp_path: Path) -> None:
    facts = "  postBuild:\n    substituteFrom: [{kind: ConfigMap, name: cluster-facts}]\n"
    texts = {
        "kustomization.yaml": kustomization(resources=["root.yaml"]),
        "root.yaml": applied("root", "./platform/nested", more=facts),
        "nested/a.yaml": applied("a", "./platform/layers/${cluster_environment}", more=facts),
        "layers/production/a.yaml": namespace("a"),
    }
    code, lines = output(repository(tmp_path, **texts))
    assert code == 1
    assert lines[0].startswith(
        "platform/nested/a.yaml:11:3 spec.path: there is no folder ./platform/layers/dev"
    )
    assert lines[0].endswith(" (on sargasso-aks)")
    assert len(lines) == 2


def test_git_says_whether_a_path_is_one_of_this_repository(tmp_path: Path) -> None:
    fleet = repository(tmp_path)
    unknown = "the platform was not built: no folder that Flux applies is in this repository"
    assert output(fleet) == (0, ["no problems: 3 clusters, 1 system", unknown])
    (fleet / ".git").mkdir()
    config = fleet / ".git" / "config"
    config.write_text('[remote "origin"]\n\turl = git@github.com:somebody/fleet.git\n')
    code, lines = output(fleet)
    assert code == 1
    assert (
        "spec.flux.path: there is no folder ./platform; correct the path, or put the folder back" in lines[0]
    )
    config.write_text('[remote "origin"]\n\turl = https://github.com/example/clusters\n')
    assert output(fleet)[0] == 0


def test_without_a_program_the_platform_is_said_not_to_be_built(tmp_path: Path) -> None:
    fleet = repository(tmp_path, **{"values.yaml": "replicas: 3\n"})
    done = roadstead("validate", *EARLY, cwd=fleet, PATH=str(tmp_path))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "no problems: 3 clusters, 1 system",
        "the platform of 3 clusters was not built: install kustomize or kubectl to check it",
    ]


def test_scripts_get_the_problems_and_what_built_the_platform(tmp_path: Path) -> None:
    fleet = repository(tmp_path, **{"values.yaml": "replicas: 3\n"})
    view = json.loads(roadstead("validate", *EARLY, "-o", "json", cwd=fleet).stdout)
    assert view["valid"] is False
    assert [problem["file"] for problem in view["problems"]] == ["platform/values.yaml"]
    assert view["platform"]["builtWith"].startswith("kustomize v5.")
    assert view["invalidClusters"] == []
