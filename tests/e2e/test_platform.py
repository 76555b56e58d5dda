"""A change of what Flux applies, over the wire: refused, stopped in development, and taken back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from localcloud.common.clock import system_clock
from localcloud.common.programs import program
from localcloud.runtime.options import Options
from shared.kubernetes.flux_objects import SOURCE
from shared.language.pin import name_of_pin
from tests.support import fleet_files
from tests.support.arm_client import SUBSCRIPTION
from tests.support.fleet_operator import Operator
from tests.support.github_app import AS_APP
from tests.support.inside_clusters import kubernetes
from tests.support.local_cloud_start import Start
from tests.support.pull_request_author import Author
from tests.support.roadstead_command import roadstead, write

QUICK = Options(
    create_seconds=1,
    lock_seconds=5,
    resend_schedule="*/2 * * * * *",
    extra={"POLL_SECONDS": "0.5", "LEASE_SECONDS": "5", **AS_APP},
)
NAMES = {"dev-1": "development", "prod-1": "production"}
BASE = "platform/base/kustomization.yaml"
PLACE = "platform/base/bad.yaml:4:3"
BAD = b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: Apps_Bad\n"
UNREACHABLE = b"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: nowhere
  namespace: flux-system
spec:
  interval: 1m
  url: https://github.com/example/nowhere
"""
"""What everything before the merge takes, and no cluster ever has Ready."""
WEB = b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: web\n"


def scaffold(folder: Path) -> dict[str, bytes]:
    """Return what ``roadstead init`` and ``new cluster`` write, with a Flux that waits for half a minute."""
    given = ("--name", "example", "--subscription", SUBSCRIPTION)
    _done("init", str(folder), *given, "--repository", "https://github.com/example/fleet")
    write(folder, {"flux/gotk-components.yaml": fleet_files.example()["flux/gotk-components.yaml"]})
    for name, environment in NAMES.items():
        where = ("--class", "standard", "--environment", environment, "--location", "eastus")
        _done("new", "cluster", name, str(folder), *where)
    found = (path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
    waits = b"          wait: true "
    assert waits in files["fleet.yaml"]
    files["fleet.yaml"] = files["fleet.yaml"].replace(waits, b"          timeout: 30s\n" + waits)
    return files


def _done(*arguments: str) -> str:
    done = roadstead(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_file(files: dict[str, bytes], name: str, content: bytes) -> dict[str, bytes]:
    """Return the fleet with one more file in the base that every cluster gets."""
    listed = files[BASE] + f"  - {name}\n".encode()
    return files | {BASE: listed, f"platform/base/{name}": content}


def merged(operator: Operator, branch: str, files: dict[str, bytes]) -> str:
    """Merge a pull request with these files; return the merge commit."""
    author = Author(operator, branch)
    author.push(files)
    author.propose()
    return author.merge()


def pins(operator: Operator) -> dict[str, str]:
    """Return the commit that Flux pulls on each cluster, as its GitRepository says."""
    return {name: _pulled(operator, name) for name in NAMES}


def _pulled(operator: Operator, name: str) -> str:
    with kubernetes(operator, name) as api:
        live = api.get(SOURCE)
    assert live is not None
    return name_of_pin(live["spec"]["ref"]["branch"])


def why(operator: Operator, name: str) -> str:
    """Return what ``roadstead why`` says, on one line."""
    return " ".join(_done("why", name, "--url", operator.cloud.urls.functions).split())


@pytest.mark.long
def test_a_change_of_the_platform_is_refused_or_stops_in_development_and_its_revert_passes(
    start: Start, tmp_path: Path
) -> None:
    operator = start(QUICK)
    files = scaffold(tmp_path / "fleet")
    good = operator.push(files)
    operator.wait_for_status(good, "success")
    both = dict.fromkeys(NAMES, good)
    assert pins(operator) == both

    _refused(operator, with_file(files, "bad.yaml", BAD), tmp_path / "bad")
    assert pins(operator) == both, "no pin moves"
    status = operator.wait_for_status(merged(operator, "revert", files), "success")
    assert status == "success: 2 of 2 clusters in sync (2 unchanged)"

    fails = merged(operator, "fails", with_file(files, "nowhere.yaml", UNREACHABLE))
    operator.wait(lambda: "HealthCheckFailed" in operator.status(fails), "the status says why", seconds=120)
    assert "clusters in sync; dev-1: Flux: Kustomization flux-system: " in operator.status(fails)
    said = why(operator, "dev-1")
    assert "timeout waiting for: [GitRepository/flux-system/nowhere status: 'InProgress']" in said
    assert "suggested action Find out why the objects in the message are not healthy." in said
    assert "waits for group 1 of stage development: dev-1" in why(operator, "prod-1")
    assert pins(operator) == {"dev-1": fails, "prod-1": good}
    revert = merged(operator, "back", files)
    operator.wait_for_status(revert, "success")
    assert pins(operator) == {"dev-1": revert, "prod-1": good}, "production has those files all the time"
    assert operator.phases() == dict.fromkeys(NAMES, "Ready")

    change = merged(operator, "change", with_file(files, "web.yaml", WEB))
    operator.wait(lambda: pins(operator)["dev-1"] == change, "the pin of development has moved", every=0.1)
    operator.cloud.kill_functions()
    operator.cloud.start_functions()
    operator.wait_for_status(change, "success", seconds=120)
    assert pins(operator) == dict.fromkeys(NAMES, change)


def _refused(operator: Operator, bad: dict[str, bytes], folder: Path) -> None:
    """Check that everything before and after the merge says what is wrong, and where."""
    local = roadstead("validate", str(write(folder, bad)))
    assert (local.returncode, f"{PLACE} metadata.name: Namespace Apps_Bad" in local.stdout) == (1, True)
    author = Author(operator, "bad")
    proposed = author.push(bad)
    author.propose()
    assert "**2 refused**" in author.wait_for(PLACE.replace(":3", ":3`"))["body"]
    (check,) = author.checks(proposed)
    (note,) = check["annotations"]
    assert (check["conclusion"], note["path"], note["start_line"]) == ("failure", "platform/base/bad.yaml", 4)

    commit = author.merge()
    status = operator.wait_for_status(commit, "failure")
    assert status.startswith("failure: dev-1")
    assert "Flux keeps the commit that it has, because what it would apply is invalid" in status
    assert PLACE in status
    said = why(operator, "prod-1")
    assert "newest plan refused: Flux keeps the commit that it has" in said
    assert f"what it would apply is invalid: {PLACE} metadata.name" in said
    assert "suggested action Correct it, and push." in said


@pytest.mark.long
def test_a_pin_that_somebody_moves_while_the_app_is_down_is_shown_with_who_and_stays(
    start: Start, tmp_path: Path
) -> None:
    operator = start(QUICK)
    files = scaffold(tmp_path / "fleet")
    good = operator.push(files)
    operator.wait_for_status(good, "success")
    operator.cloud.kill_functions()
    wanted = operator.push(with_file(files, "web.yaml", WEB))
    branch = f"roadstead/pin/example/{wanted}"
    git = ["git", "-C", str(operator.checkout.folder), "push", "--quiet", "origin"]
    subprocess.run([*git, f"{wanted}:refs/heads/{branch}"], check=True, timeout=60)
    ref = json.dumps({"spec": {"ref": {"branch": branch}}})
    kubectl(operator, "patch", "gitrepository", "flux-system", "--type", "merge", "-p", ref)
    now = f"reconcile.fluxcd.io/requestedAt={system_clock():%s}"
    kubectl(
        operator, "annotate", "--overwrite", "gitrepository/flux-system", "kustomization/flux-system", now
    )
    operator.cloud.start_functions()
    listed = "get", "gitrepositories,kustomizations"
    operator.wait(lambda: f"Applied revision: {branch}" in kubectl(operator, *listed), "Flux has applied it")

    operator.api.refresh(["dev-1"])
    moved = "the GitRepository flux-system in flux-system: somebody changed what Roadstead applied: spec.ref"
    operator.wait(lambda: f"{moved} (kubectl-patch at 20" in why(operator, "dev-1"), "it is shown, with who")
    assert pins(operator) == {"dev-1": wanted, "prod-1": good}
    _done("sync", "--url", operator.cloud.urls.functions)
    operator.wait_for_status(wanted, "success", seconds=120)
    assert pins(operator) == dict.fromkeys(NAMES, wanted)
    operator.api.refresh(["dev-1"])
    operator.wait(lambda: "FluxHealthy" not in why(operator, "dev-1"), "nothing differs any more")


def kubectl(operator: Operator, *arguments: str) -> str:
    """Run kubectl in the namespace of Flux on the cluster of development."""
    where = "--kubeconfig", str(operator.cloud.state / "kubeconfigs" / "dev-1.yaml"), "-n", "flux-system"
    command = [program("kubectl") or "kubectl", *where, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
