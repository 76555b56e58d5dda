"""``roadstead init`` and ``roadstead new cluster``: what they write is right, and nothing is overwritten."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from cli.templates import ENVIRONMENTS
from cli.worktree import open_worktree
from localcloud.flux.kustomize.kustomize_build import objects
from shared.language.model.base import NO_REPOSITORY, NO_SUBSCRIPTION
from tests.support import fleet_files
from tests.support.roadstead_command import roadstead, write

pytestmark = pytest.mark.lives

COMPONENTS = {"flux/gotk-components.yaml": b"kind: List\n"}
SUBSCRIPTION, REPOSITORY = "00000000-0000-0000-0000-000000000001", "https://github.com/example/fleet"
WROTE = "is still what roadstead init wrote"
UNFILLED = f"""\
fleet.yaml:12:5 spec.defaults.subscriptionId: {WROTE}, {NO_SUBSCRIPTION}; write the id of a subscription, \
which `az account show --query id` prints
fleet.yaml:31:7 spec.defaults.flux.repository: {WROTE}, {NO_REPOSITORY}; write the address of your repository

2 problems in 1 file
"""
GIVEN = ("--subscription", SUBSCRIPTION, "--repository", REPOSITORY)


def test_from_nothing_to_a_cluster_in_the_plan(tmp_path: Path) -> None:
    done = roadstead("init", "my-fleet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Created the fleet repository my-fleet.\nNext, in my-fleet:\n1. fleet.yaml: set sub"
    )
    assert max(map(len, done.stdout.splitlines())) <= 80
    fleet = tmp_path / "my-fleet"
    done = roadstead("validate", cwd=fleet)
    assert (done.returncode, done.stdout) == (1, UNFILLED)
    text = (fleet / "fleet.yaml").read_text()
    for placeholder, value in ((NO_SUBSCRIPTION, SUBSCRIPTION), (NO_REPOSITORY, REPOSITORY)):
        text = text.replace(placeholder, value)
    (fleet / "fleet.yaml").write_text(text)
    assert roadstead("validate", cwd=fleet).stdout == "no problems: 0 clusters, 0 systems\n"
    lacking = roadstead("new", "cluster", "alpha", "--class", "standard", "--location", "eastus", cwd=fleet)
    assert lacking.returncode == 1
    assert "flux install --export" in lacking.stdout
    write(fleet, COMPONENTS)
    options = ["--class", "standard", "--environment", "production", "--location", "eastus"]
    done = roadstead("new", "cluster", "007", *options, cwd=fleet)
    assert (done.returncode, done.stdout) == (0, "Wrote clusters/007/cluster.yaml.\n")
    assert roadstead("plan", "--empty", cwd=fleet).stdout.startswith("Compared with an empty fleet: 2 create")


def test_each_environment_of_a_new_fleet_has_its_own_folder_over_one_base(tmp_path: Path) -> None:
    roadstead("init", "new", *GIVEN, cwd=tmp_path)
    write(tmp_path / "new", COMPONENTS)
    for environment in ENVIRONMENTS:
        given = ["--class", "standard", "--environment", environment, "--location", "eastus"]
        roadstead("new", "cluster", f"{environment}-1", *given, cwd=tmp_path / "new")
    for folder in (tmp_path / "new", write(tmp_path / "example", fleet_files.example())):
        tree = open_worktree(folder)
        fleet = tree.resolve()
        assert fleet.problems == ()
        assert {cluster.environment for cluster in fleet.clusters.values()} == set(ENVIRONMENTS)
        for cluster in fleet.clusters.values():
            flux = cluster.document()["spec"]["flux"]
            assert flux["path"] == f"./platform/environments/{cluster.environment}"
            assert {entry["name"]: entry["wait"] for entry in flux["kustomizations"]} == {"flux-system": True}
            files = {path: tree.read(path) for path in tree.files.blobs}
            for path in (flux["path"], "./platform/base"):  # a cluster without an environment has the base
                assert [built["kind"] for built in objects(files, path)][:1] == ["Namespace"]


def test_the_step_that_writes_flux_works_in_a_new_repository_as_it_is_printed(tmp_path: Path) -> None:
    write(tmp_path, {"bin/flux": b"#!/bin/sh\necho kind: List\n"})
    (tmp_path / "bin" / "flux").chmod(0o755)
    printed = roadstead("init", "my-fleet", cwd=tmp_path).stdout
    (step,) = re.findall(r"^\d\. (.*flux install.*)$", printed, re.MULTILINE)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    fleet = tmp_path / "my-fleet"
    done = subprocess.run(["sh", "-c", step], cwd=fleet, env={"PATH": path}, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (fleet / "flux" / "gotk-components.yaml").read_bytes() == b"kind: List\n"


def test_the_fields_that_a_new_cluster_lacks_are_listed_at_once(tmp_path: Path) -> None:
    write(tmp_path, fleet_files.example())
    done = roadstead("new", "cluster", "alpha", "--class", "apps", cwd=tmp_path)
    assert done.returncode == 1
    assert "clusters/alpha/cluster.yaml:6:1 spec.location: is required; add it" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["alpha", "--class", "aps"], 1, "there is no class aps; did you mean apps?"),
        (
            ["alpha", "--environment", "prod"],
            1,
            "there is no environment prod; there are development, production",
        ),
        (["Alpha"], 2, "NAME must be 1 to 63 lowercase letters"),
        (["../alpha"], 2, "NAME must be"),
        (["alpha", "--location", "West Europe"], 2, "--location must be an Azure region"),
        (["atlantic-aks"], 1, "there is a cluster atlantic-aks already"),
        (["alpha", "nowhere"], 2, "there is no folder nowhere"),
    ],
)
def test_an_invalid_new_cluster_is_refused_and_nothing_is_written(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    before = set(write(tmp_path, fleet_files.example()).rglob("*"))
    done = roadstead("new", "cluster", *arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert message in done.stderr
    assert set(tmp_path.rglob("*")) == before


def test_a_folder_with_files_is_left_alone_and_a_fresh_clone_counts_as_empty(tmp_path: Path) -> None:
    write(tmp_path, {"used/README.md": b"mine", "clone/.git/HEAD": b"ref: refs/heads/main\n", "file": b""})
    for name in ("used", "file"):
        done = roadstead("init", name, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (tmp_path / "used" / "README.md").read_bytes() == b"mine"
    assert len(list((tmp_path / "used").iterdir())) == 1
    assert roadstead("init", "clone", cwd=tmp_path).returncode == 0


def test_the_options_of_init_are_written_into_the_fleet(tmp_path: Path) -> None:
    created = roadstead("init", "x", "--name", "prod", *GIVEN, cwd=tmp_path)
    assert (created.returncode, created.stderr) == (0, "")
    assert created.stdout.startswith(
        "Created the fleet repository prod in x.\nNext, in x:\n1. mkdir -p flux && flux"
    )
    text = (tmp_path / "x" / "fleet.yaml").read_text()
    assert all(value in text for value in ("name: prod", SUBSCRIPTION, REPOSITORY))
    bad = roadstead("init", "y", "--repository", "git@github.com:example/fleet", cwd=tmp_path)
    assert (bad.returncode, (tmp_path / "y").exists()) == (2, False)
