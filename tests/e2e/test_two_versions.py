"""A drill: two versions of the app at once under load, an upgrade and a way back in the middle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from localcloud.runtime.options import Options
from shared.configuration.settings import App
from shared.version import VERSION
from tests.support import az_stand_in, fleet_files
from tests.support.deployed_rights import actions
from tests.support.fleet_operator import Operator
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import OWN, ROADSTEAD
from tests.support.sample import DEEP

ROOT = Path(__file__).parent.parent.parent
PARTS = ("shared", "handlers", "localcloud", "function_app.py", "host.json")
WAITS = 3
"""Seconds after which a message that waits for a newer app comes again; a minute would make a drill long."""
_RAISED: Mapping[str, Mapping[str, str]] = {
    "shared/cluster/forms.py": {
        "FORM = 1\n": "FORM = 2\n",
        "UPGRADES: Upgrades = {}\n": "class _Upgrades(dict):\n"
        "    def __missing__(self, form):\n        return lambda stored: stored\n\n\n"
        "UPGRADES = _Upgrades()\n",
    },
    "shared/cluster/queues/messages.py": {
        "schema_version: Literal[1] = 1\n": "schema_version: Literal[2] = 2\n",
    },
}
"""What gives each record and each message the next version of its form."""


def make_version(folder: Path, version: str, *, newer_forms: bool) -> Path:
    """Write a version of the app with its local host to a folder, and return its package.

    With ``newer_forms`` each record and each message has a form that this version does not know.
    """
    for name in PARTS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, folder / name)
    _edit(folder / "shared/version.py", {f'VERSION = "{VERSION}"': f'VERSION = "{version}"'})
    _edit(folder / "shared/app/outbox.py", {"WAITING_SECONDS = 60\n": f"WAITING_SECONDS = {WAITS}\n"})
    for path, changes in _RAISED.items() if newer_forms else ():
        _edit(folder / path, changes)
    package = folder.with_suffix(".zip")
    with zipfile.ZipFile(package, "w") as written:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            written.write(file, file.relative_to(folder).as_posix())
    return package


def _edit(path: Path, changes: Mapping[str, str]) -> None:
    text = path.read_text()
    for before, after in changes.items():
        assert text.count(before) == 1, (path, before)
        text = text.replace(before, after)
    path.write_text(text)


NAMES = [f"cluster-{number:03}" for number in range(200 if DEEP else 20)]
SECONDS = 1200 if DEEP else 240
ROLES = {app.value: sorted(actions(app)) for app in App}
QUICK = {"POLL_SECONDS": "0.5", "LEASE_SECONDS": "10"}
OPTIONS = Options(
    create_seconds=2,
    plan_schedule="*/5 * * * * *",
    resend_schedule="*/5 * * * * *",
    roles=ROLES,
    extra=QUICK,
)
BOTH_SECONDS = 3.0
"""How long an app runs in both versions."""
NEXT = "99.0.0"
GROUP = "roadstead-fleet"
FUNCTION_APPS = {"app": "control", "app-worker": "worker", "app-deleter": "deleter"}


class Azure:
    """The Azure CLI as a stand-in, and what Azure does with a package afterwards: a rolling update."""

    def __init__(self, operator: Operator, folder: Path, packages: Mapping[str, Path]) -> None:
        self._operator, self._state, self._over = operator, folder / "az.json", Event()
        self._code = {
            hashlib.sha256(package.read_bytes()).hexdigest(): code for package, code in _codes(packages)
        }
        self.packages, self.order = packages, list[str]()
        program = folder / "bin" / "az"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {az_stand_in.__file__} "$@"\n')
        program.chmod(0o755)
        fleet = {"functionAppNames": {"value": [*FUNCTION_APPS]}}
        self._state.write_text(json.dumps(az_stand_in.EMPTY | {"fleet": fleet}))
        self._path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"

    def replace_hosts(self) -> None:
        """Give each app the code that was published last, until ``stop``."""
        runs: dict[str, str] = {}
        while not self._over.wait(0.2):
            for name, digest in json.loads(self._state.read_text())["code"].items():
                if runs.get(name) != digest:
                    app = FUNCTION_APPS[name]
                    self.order.append(app)
                    self._operator.cloud.publish(app, self._code[digest], lambda: time.sleep(BOTH_SECONDS))
                    runs[name] = digest

    def stop(self) -> None:
        """End ``replace_hosts``."""
        self._over.set()

    def upgrade(self, version: str) -> str:
        """Run the command with the package of a version; return what it prints."""
        cloud = self._operator.cloud
        given = {
            "PATH": self._path,
            "AZ_STATE": str(self._state),
            "ROADSTEAD_URL": cloud.urls.functions,
            "ROADSTEAD_KEY": cloud.settings["API_KEY_ADMIN"],
        }
        command = [str(ROADSTEAD), "upgrade", str(self.packages[version]), "--group", GROUP]
        environment = {**os.environ, **OWN, **given}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout


def _codes(packages: Mapping[str, Path]) -> Iterator[tuple[Path, Path]]:
    return ((package, package.with_suffix("")) for package in packages.values())


@contextmanager
def updating(azure: Azure) -> Iterator[None]:
    """Replace hosts in the background."""
    thread = Thread(target=azure.replace_hosts)
    thread.start()
    try:
        yield
    finally:
        azure.stop()
        thread.join()


def fleet(tag: str, *names: str) -> dict[str, bytes]:
    files = fleet_files.fleet(*names)
    return {**files, "fleet.yaml": files["fleet.yaml"] + fleet_files.ALL_AT_ONCE} | {
        f"clusters/{name}/cluster.yaml": fleet_files.cluster(name, extra=f"  tags: {{round: {tag}}}\n")
        for name in names
    }


@pytest.mark.deep
@pytest.mark.timeout(2 * SECONDS)
def test_two_versions_at_once_under_load_do_nothing_twice_and_lose_nothing(
    start: Start, tmp_path: Path
) -> None:
    """Up while clusters are created, back while they change, and up again while one is deleted."""
    packages = {
        VERSION: make_version(tmp_path / "former", VERSION, newer_forms=False),
        NEXT: make_version(tmp_path / "next", NEXT, newer_forms=True),
    }
    operator = start(OPTIONS)
    azure = Azure(operator, tmp_path, packages)
    with updating(azure), ThreadPoolExecutor() as background:
        operator.push(fleet("one", *NAMES))
        operator.wait(lambda: len(operator.accepted()) > len(NAMES) // 2, "clusters are being created")
        up = azure.upgrade(NEXT)
        assert azure.order == ["deleter", "worker", "control"]
        assert "Back: roadstead upgrade" in up

        operator.push(fleet("two", *NAMES))
        back = background.submit(azure.upgrade, VERSION)
        time.sleep(BOTH_SECONDS)
        operator.push(fleet("three", *NAMES))
        assert "records have a form of a newer version, and wait for that" in back.result()
        before = operator.accepted()
        time.sleep(BOTH_SECONDS)
        assert operator.accepted() == before, "the former version leaves alone what it cannot read"

        again = background.submit(azure.upgrade, NEXT)
        last = operator.push(fleet("four", *NAMES[1:]))
        again.result()
        status = operator.wait_for_status(last, "success", seconds=SECONDS)
        assert status.startswith(f"success: {len(NAMES)} of {len(NAMES)} clusters in sync")
        kept = operator.api.get("clusters?limit=500")["clusters"]
        assert {view["name"]: view["phase"] for view in kept} == dict.fromkeys(NAMES[1:], "Ready")
        done = operator.accepted()
        assert {name: done["create", name] for name in NAMES} == dict.fromkeys(NAMES, 1)
        assert {name: done["create-group", f"rg-{name}"] for name in NAMES} == dict.fromkeys(NAMES, 1)
        assert {name: done["delete", name] for name in NAMES} == {
            name: int(name == NAMES[0]) for name in NAMES
        }
        assert max(done["update", name] for name in NAMES) <= 3
        assert operator.api.get("dead-letters")["deadLetters"] == []
