"""The port of kustomize, on the real program."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.adapters.kustomize import KustomizeProgram
from shared.adapters.kustomize import kustomize_program as program_of_the_app
from shared.platform.builds.build import BuildFailed, NoKustomize
from shared.platform.source.reach import reach_of
from tests.support.kustomize_programs import kustomize_program
from tests.support.platform_trees import config_map, kustomization, namespace, tree_of

pytestmark = pytest.mark.lives


def build(texts: dict[str, str], folder: str = "platform", seconds: float = 30) -> str:
    files = {path: text.encode() for path, text in texts.items()}
    return kustomize_program(seconds).build(files, folder).decode()


def test_a_folder_is_built_from_files_in_and_outside_of_it() -> None:
    texts = {
        "platform/kustomization.yaml": kustomization(resources=["../base"], namePrefix="a-"),
        "base/kustomization.yaml": kustomization(resources=["../shared/n.yaml", "c.yaml"]),
        "base/c.yaml": config_map("c"),
        "shared/n.yaml": namespace("n"),
    }
    built = build(texts)
    assert "kind: Namespace\n" in built
    assert "name: a-c\n" in built


def test_a_failing_build_says_why_with_paths_of_the_repository() -> None:
    with pytest.raises(BuildFailed) as error:
        build({"platform/kustomization.yaml": kustomization(resources=["gone.yaml"])})
    assert "platform/gone.yaml" in str(error.value)
    assert "/tmp" not in str(error.value)
    assert "kustomize-" not in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            {"kustomization.yaml": kustomization(resources=["a.yaml", "a.yaml"]), "a.yaml": namespace("aa")},
            "accumulating resources: merging resources from 'a.yaml': may not add resource with an already "
            "registered id: Namespace.v1.[noGrp]/aa.[noNs]",
        ),
        (
            {
                "kustomization.yaml": kustomization(resources=["b"]),
                "b/kustomization.yaml": kustomization(resources=["../../platform"]),
            },
            "accumulating resources: cycle detected: platform includes itself",
        ),
        (
            {
                "kustomization.yaml": kustomization(
                    configMapGenerator=[{"name": "c", "behavior": "merge", "literals": ["a=b"]}]
                )
            },
            'merging from generator: id resid.ResId{Gvk:resid.Gvk{Group:"", Version:"v1", Kind:"ConfigMap", '
            'isClusterScoped:false}, Name:"c", Namespace:""} does not exist; cannot merge or replace',
        ),
    ],
)
def test_what_kustomize_says_around_a_fault_is_left_out(texts: dict[str, str], message: str) -> None:
    with pytest.raises(BuildFailed) as error:
        build({f"platform/{name}": text for name, text in texts.items()})
    assert str(error.value) == message


def test_the_program_says_its_version() -> None:
    assert kustomize_program().version.startswith("kustomize v5.")


def test_a_program_that_is_not_there_is_another_error_than_a_failing_build(tmp_path: Path) -> None:
    with pytest.raises(NoKustomize):
        KustomizeProgram((str(tmp_path / "kustomize"), "build")).build({"a/a.yaml": b""}, "a")


@pytest.mark.parametrize("mode", [0o755, 0o644])
def test_the_program_of_the_package_runs_also_where_its_mode_is_lost(tmp_path: Path, mode: int) -> None:
    own = tmp_path / "bin" / "kustomize"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\necho built\n")
    own.chmod(mode)
    found = program_of_the_app(own=own)
    assert found is not None
    assert found.build({"a/a.yaml": b""}, "a") == b"built\n"


ENTRIES = st.sampled_from(["a.yaml", "b.yaml", "a", "../b", "../../b", "a/b"])
FILES = st.sampled_from(["kustomization.yaml", "Kustomization", "a.yaml", "b.yaml"])
FOLDERS = st.sampled_from(["p", "p/a", "p/a/b", "b"])
TEXTS = st.builds(
    lambda entries, files, patches: kustomization(
        resources=entries,
        configMapGenerator=[{"name": "g", "files": files}],
        patches=[{"path": path, "target": {"kind": "Namespace"}} for path in patches],
    ),
    st.lists(ENTRIES, max_size=3),
    st.lists(ENTRIES, max_size=1),
    st.lists(ENTRIES, max_size=1),
) | st.sampled_from([namespace("aa"), namespace("bb"), config_map("cc")])
TREES = st.dictionaries(st.builds("{}/{}".format, FOLDERS, FILES), TEXTS, min_size=1, max_size=8)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
def test_kustomize_reads_no_file_that_is_not_reached(texts: dict[str, str]) -> None:
    try:
        whole = build(texts, "p")
    except BuildFailed:
        return
    reached = reach_of(tree_of(texts), "p")
    assert not reached.problems
    assert build({path: texts[path] for path in reached.files}, "p") == whole


def program(tmp_path: Path, script: str) -> KustomizeProgram:
    path = tmp_path / "kustomize"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return KustomizeProgram((str(path), "build"), seconds=2)


def test_a_program_gets_nothing_of_the_machine(tmp_path: Path) -> None:
    os.environ["ROADSTEAD_TEST_SECRET"] = "secret"
    try:
        shown = program(tmp_path, "/usr/bin/env").build({"a/a.yaml": b""}, "a").decode()
    finally:
        del os.environ["ROADSTEAD_TEST_SECRET"]
    names = {line.partition("=")[0] for line in shown.splitlines()}
    assert "ROADSTEAD_TEST_SECRET" not in names
    assert {"HTTPS_PROXY", "PATH", "HOME"} <= names
    assert str(Path.home()) not in shown
    assert "PATH=/usr" not in shown


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("while :; do :; done", "longer than 2 seconds"),
        (
            "while :; do echo 0123456789012345678901234567890123456789012345678901234567890123; done",
            "takes|output",
        ),
    ],
)
def test_a_program_without_end_is_ended(tmp_path: Path, script: str, message: str) -> None:
    with pytest.raises(BuildFailed, match=message):
        program(tmp_path, script).build({"a/a.yaml": b""}, "a")


@pytest.mark.parametrize(
    "error",
    [
        'err="no match for \\"ConfigMap\\" in platform"',
        'err=<\n\tno match for "ConfigMap"\n\tin platform\n >',
    ],
)
def test_an_error_that_is_logged_is_told_without_its_time_and_process(tmp_path: Path, error: str) -> None:
    entry = f'E1129 02:52:35.335809   28625 run.go:72] "command failed" {error}'
    logging = program(tmp_path, f"/bin/cat >&2 <<'END'\n{entry}\nEND\nexit 1")
    with pytest.raises(BuildFailed) as failure:
        logging.build({"a/a.yaml": b""}, "a")
    assert str(failure.value) == 'no match for "ConfigMap" in platform'


def test_what_leads_out_of_the_files_is_not_read_even_where_the_caller_let_it_pass(tmp_path: Path) -> None:
    for resource in ("https://127.0.0.1:9/a.yaml", "https://github.com/example/base?ref=main"):
        with pytest.raises(BuildFailed):
            build({"platform/kustomization.yaml": kustomization(resources=[resource])})
    with pytest.raises(BuildFailed, match="no path of a repository"):
        build({"../a.yaml": "x"})
