"""What a release publishes, and the workflows that publish it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from shared.version import VERSION
from tests.support.locked_libraries import DECLARED, names, pins
from tools import package
from tools.deployed import deployed
from tools.kustomize import MODULE, NotBrought, bring
from tools.lock import locked

ROOT = Path(__file__).parent.parent
WORKFLOWS = {path.name: path.read_text() for path in sorted((ROOT / ".github" / "workflows").iterdir())}
RUNTIME = package.runtime()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the files of a release that has one library."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    package.write(folder, library(folder.parent / "libraries"))
    return folder


def library(folder: Path) -> Path:
    """Return a folder in which one library is installed."""
    (folder / "cronsim").mkdir(parents=True)
    (folder / "cronsim" / "__init__.py").write_text("VERSION = 1\n")
    return folder


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the bill of materials of a package without kustomize."""
    return json.loads(package.bill_of_materials(tmp_path_factory.mktemp("none") / "kustomize"))


def test_the_same_commit_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "dist"
    package.write(again, library(tmp_path / "libraries"))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        path.name: path.read_bytes() for path in again.iterdir()
    }
    sums = dict(line.split("  ")[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "SHA256SUMS"
    }


def test_the_package_has_what_the_core_tools_upload_and_the_libraries(folder: Path) -> None:
    with zipfile.ZipFile(folder / f"roadstead-{package.version()}.zip") as zipped:
        packed = {name: zipped.read(name) for name in zipped.namelist()}
    assert {"host.json", "function_app.py", "requirements.txt", "handlers/apps.py"} <= set(packed)
    ours = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in deployed(ROOT)}
    assert packed == ours | {".python_packages/lib/site-packages/cronsim/__init__.py": b"VERSION = 1\n"}


def test_the_bytecode_of_what_a_start_imports_is_in_the_package_and_the_same_each_time(
    tmp_path: Path,
) -> None:
    app, libraries = tmp_path / "app", library(tmp_path / "libraries")
    app.mkdir()
    (app / ".funcignore").write_text("local.settings*.json")
    (app / "local.settings.example.json").write_text('{"Values": {"NEEDED": "yes"}}')
    (app / "function_app.py").write_text("import os, cronsim\nassert os.environ['NEEDED'] == 'yes'\n")
    (app / "not_imported.py").write_text("")
    zips = (tmp_path / "first.zip", tmp_path / "second.zip")
    for path in zips:
        assert package.write_package(path, libraries, app, python=sys.executable)
    assert zips[0].read_bytes() == zips[1].read_bytes()
    with zipfile.ZipFile(zips[0]) as zipped:
        compiled = {name: zipped.read(name) for name in zipped.namelist() if name.endswith(".pyc")}
    tag = sys.implementation.cache_tag
    assert set(compiled) == {
        f"__pycache__/function_app.{tag}.pyc",
        f"{package.LIBRARIES}/cronsim/__pycache__/__init__.{tag}.pyc",
    }
    assert {code[4:8] for code in compiled.values()} == {b"\1\0\0\0"}  # PEP 552: a hash that nobody checks


IMPORTED = """
import pkgutil, sys
from importlib import import_module
import apprise, azure.identity, azure.keyvault.secrets, dulwich.client, github, kubernetes.client, paramiko
import azure.mgmt.containerservice, azure.mgmt.resource.resources, azure.monitor.opentelemetry.exporter
import gitlab, kubernetes.dynamic
for name in ("handlers", "shared"):
    for module in pkgutil.walk_packages([name], f"{name}."):
        import_module(module.name)
files = [getattr(found, "__file__", None) for found in list(sys.modules.values())]
print(*filter(None, files), sep="\\n")
"""
"""Imports what functions import, and prints the files."""


def test_the_package_leaves_out_nothing_that_the_app_imports() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    libraries = Path(sysconfig.get_path("purelib"))
    read = {Path(line) for line in done.stdout.splitlines()}
    found = {path.relative_to(libraries) for path in read if libraries in path.parents}
    assert len(found) > 1000
    left_out = {file.as_posix() for file in found if not package._runs(file)}
    assert {name for name in left_out if not name.startswith("invoke/")} == set()  # paramiko runs without it


def test_a_package_whose_app_cannot_be_imported_here_has_no_bytecode_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".funcignore").write_text("")
    (tmp_path / "local.settings.example.json").write_text('{"Values": {}}')
    (tmp_path / "function_app.py").write_text("import a_library_of_linux\n")
    target = tmp_path.parent / "app.zip"
    assert not package.write_package(target, tmp_path / "none", tmp_path, python=sys.executable)
    with zipfile.ZipFile(target) as zipped:
        assert not any(name.endswith(".pyc") for name in zipped.namelist())
    assert "a_library_of_linux" in capsys.readouterr().err


def test_the_bill_of_materials_satisfies_the_published_schema(folder: Path) -> None:
    text = (folder / f"roadstead-{package.version()}.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_the_bill_has_every_library_that_runs_with_its_version_and_hashes(bill: Any) -> None:
    assert {component["name"]: component["version"] for component in bill["components"]} == pins(RUNTIME)
    assert bill["metadata"]["component"]["version"] == package.version()
    lock = (ROOT / "requirements.txt").read_text()
    for component in bill["components"]:
        (files,) = component["externalReferences"]
        assert files["hashes"], component["name"]
        assert all(f"--hash=sha256:{found['content']}" in lock for found in files["hashes"])
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"


def test_the_bill_says_who_needs_whom(bill: Any) -> None:
    names_by_ref = {component["bom-ref"]: component["name"] for component in bill["components"]}
    needs = {
        dependency["ref"]: {names_by_ref[ref] for ref in dependency.get("dependsOn", ())}
        for dependency in bill["dependencies"]
    }
    assert needs["roadstead"] == names(DECLARED)
    reached, seen = set[str](), {"roadstead"}
    while seen - reached:
        ref = (seen - reached).pop()
        reached.add(ref)
        seen |= {other for other, name in names_by_ref.items() if name in needs[ref]}
    assert reached == {"roadstead", *names_by_ref}


# The kustomize of the package


def elf(machine: bytes = b"\x3e\x00", text: bytes = b"") -> bytes:
    """Return the beginning of a program for Linux, on amd64 unless it is for another machine."""
    return b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine + text


def test_a_given_kustomize_goes_into_the_package_as_a_program_and_into_the_bill(tmp_path: Path) -> None:
    given, target = tmp_path / "given", tmp_path / "app" / "bin" / "kustomize"
    given.write_bytes(elf(text=f"\0mod\t{MODULE}\tv5.9.3\th1:abc".encode()))
    bring(target, str(given))
    assert os.access(target, os.X_OK)
    assert package.said_of(target) == "The package has kustomize v5.9.3."
    (found,) = [
        component
        for component in json.loads(package.bill_of_materials(target))["components"]
        if component["name"] == "kustomize"
    ]
    assert found["purl"] == "pkg:golang/sigs.k8s.io/kustomize/kustomize/v5@v5.9.3"
    assert found["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(given.read_bytes()).hexdigest()}]
    (tmp_path / "app" / ".funcignore").write_text("")
    (tmp_path / "libraries").mkdir()
    package.write_package(tmp_path / "app.zip", tmp_path / "libraries", tmp_path / "app")
    with zipfile.ZipFile(tmp_path / "app.zip") as zipped:
        modes = {entry.filename: entry.external_attr >> 16 for entry in zipped.infolist()}
    assert modes == {".funcignore": 0o100644, "bin/kustomize": 0o100755}


@pytest.mark.parametrize("content", [None, b"#!/bin/sh\n", elf(b"\xb7\x00"), b""])
def test_a_kustomize_that_no_function_app_can_run_is_refused(tmp_path: Path, content: bytes | None) -> None:
    given, target = tmp_path / "given", tmp_path / "kustomize"
    if content is not None:
        given.write_bytes(content)
    with pytest.raises(NotBrought, match=f"KUSTOMIZE={given}"):
        bring(target, str(given))
    assert not target.exists()


def test_a_package_without_kustomize_says_so_and_what_follows(tmp_path: Path) -> None:
    said = package.said_of(tmp_path / "kustomize")
    assert said.startswith("The package has no kustomize:")
    assert "set KUSTOMIZE" in said


def test_the_runtime_is_a_version_that_the_lock_supports() -> None:
    assert RUNTIME
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert {lock.name for lock in locked(ROOT / "requirements.txt", here)} == set(pins(here))


# The workflows


def steps() -> list[tuple[str, dict[str, Any]]]:
    """Return every step of every job, with the name of its workflow and job."""
    found = []
    for file, text in WORKFLOWS.items():
        for job, value in yaml.safe_load(text)["jobs"].items():
            found += [
                (f"{file} {job}", step) for step in value.get("steps", [{"uses": value.get("uses", "")}])
            ]
    return found


def test_every_action_is_pinned_by_its_commit_and_names_its_version() -> None:
    used = re.findall(r"uses: (\S+)(.*)", "\n".join(WORKFLOWS.values()))
    assert len(used) > 5
    for action, comment in used:
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


def test_each_job_has_the_rights_that_it_needs_and_a_workflow_has_none() -> None:
    granted: dict[str, dict[str, str]] = {}
    for file, text in WORKFLOWS.items():
        workflow = yaml.safe_load(text)
        assert workflow["permissions"] == {}, file
        granted |= {f"{file} {job}": value["permissions"] for job, value in workflow["jobs"].items()}
    publishing = {"contents": "write", "id-token": "write", "attestations": "write"}
    assert granted == {
        "deep.yml deep": {"contents": "read"},
        "test.yml test": {"contents": "read"},
        "release.yml test": {"contents": "read"},
        "release.yml build": {"contents": "read"},
        "release.yml publish": publishing,
    }


def test_no_command_of_a_workflow_is_built_from_what_others_write() -> None:
    assert [step["run"] for _, step in steps() if "${{" in step.get("run", "")] == []
    for name, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, name
    assert not any("pull_request_target" in text for text in WORKFLOWS.values())


def test_the_job_that_may_write_runs_no_code_of_the_repository() -> None:
    publish = [step for name, step in steps() if name == "release.yml publish"]
    assert not any("checkout" in step.get("uses", "") for step in publish)
    assert [step["run"].split()[:3] for step in publish if "run" in step] == [["gh", "release", "create"]]


def test_a_release_is_tested_built_by_make_and_attested_before_it_is_published() -> None:
    jobs = yaml.safe_load(WORKFLOWS["release.yml"])["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/test.yml"
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == ("test", "build")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    made = re.findall(r"run: make ([a-z-]+)", "\n".join(WORKFLOWS.values()))
    assert sorted(made) == ["deep", "release", "test"]
    assert set(made) <= targets
    attest, publish = (
        next(number for number, (_, step) in enumerate(steps()) if what in str(step))
        for what in ("attest-build-provenance", "gh release create")
    )
    assert steps()[attest][1]["with"]["subject-path"] == "dist/*"
    assert attest < publish


def test_a_release_has_its_day_in_the_changelog(tmp_path: Path) -> None:
    (command,) = [step["run"] for _, step in steps() if "CHANGELOG.md" in step.get("run", "")]
    text = (ROOT / "CHANGELOG.md").read_text()
    dated = re.sub(rf"(?m)^## {re.escape(VERSION)} \(.*\)$", f"## {VERSION} (2026-12-01)", text)
    undated = dated.replace("(2026-12-01)", "(not released yet)")
    for content, status in ((dated, 0), (undated, 1)):
        (tmp_path / "CHANGELOG.md").write_text(content)
        ended = subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env={"GITHUB_REF_NAME": f"v{VERSION}"}, check=False
        )
        assert ended.returncode == status


def test_make_installs_what_is_deployed_by_its_hashes() -> None:
    assert "$(PIP) --require-hashes --requirement requirements.txt" in (ROOT / "Makefile").read_text()


def test_an_instance_says_the_version_of_the_package() -> None:
    assert package.version() == VERSION
