"""``roadstead upgrade``: one app after the other, each when the one before has answered with the version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

from cli.azure_deployment import DeploymentFailed, apps_among, version_of
from cli.errors import ExitCode
from localcloud.memory.memory_cloud import MemoryCloud
from shared.version import VERSION
from tests.support import az_stand_in
from tests.support.pipeline_runs import ready
from tests.support.roadstead_command import roadstead

pytestmark = pytest.mark.lives

APPS = {"rs": "control", "rs-worker": "worker", "rs-deleter": "deleter"}
NEXT = "0.9.0"


@pytest.fixture
def cloud() -> MemoryCloud:
    return ready("one")


class Place:
    """A folder with the stand-in for the Azure CLI, and packages."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.state, self._url = folder, folder / "az.json", url
        program = folder / "bin" / "az"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {az_stand_in.__file__} "$@"\n')
        program.chmod(0o755)
        fleet = {"functionAppNames": {"value": ["another", *APPS]}}
        self.state.write_text(json.dumps({**az_stand_in.EMPTY, "fleet": fleet}))
        for version in (VERSION, NEXT):
            with zipfile.ZipFile(folder / f"{version}.zip", "w") as package:
                package.writestr("shared/version.py", f'VERSION = "{version}"\n')

    def upgrade(self, version: str, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        return roadstead(
            *("upgrade", f"{version}.zip", "--group", "rg", *more),
            cwd=self.folder,
            PATH=f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            AZ_STATE=str(self.state),
            ROADSTEAD_URL=self._url,
        )

    def published(self) -> list[str]:
        """Return the apps that got a package, in their order."""
        return [APPS[name] for name in json.loads(self.state.read_text())["code"]]


@pytest.fixture
def place(tmp_path: Path, url: str) -> Place:
    return Place(tmp_path, url)


@contextmanager
def apps(cloud: MemoryCloud, place: Place, *stuck: str) -> Iterator[None]:
    """Let the apps take their messages: those with the new package say its version, except stuck ones."""
    over = Event()

    def answer() -> None:
        while not over.wait(0.05):
            cloud.clock.advance(0.05)
            cloud.step()
            for row in cloud.state.examinations():
                if row.app in place.published() and row.app not in stuck and row.version != NEXT:
                    cloud.state.save_examination(replace(row, version=NEXT))

    thread = Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_the_apps_that_receive_come_before_the_one_that_sends(place: Place, cloud: MemoryCloud) -> None:
    with apps(cloud, place):
        done = place.upgrade(NEXT)
    assert done.returncode == 0, done.stderr
    assert place.published() == ["deleter", "worker", "control"]
    assert f"Now: control {VERSION}, worker {VERSION}, deleter {VERSION}. Then: {NEXT}." in done.stdout
    assert f"Back: roadstead upgrade roadstead-{VERSION}.zip --group rg" in done.stdout


def test_an_app_that_does_not_answer_with_the_version_stops_the_upgrade(
    place: Place, cloud: MemoryCloud
) -> None:
    with apps(cloud, place, "worker"):
        done = place.upgrade(NEXT, "--wait", "4s")
    assert done.returncode == ExitCode.FAILED
    assert place.published() == ["deleter", "worker"]
    assert f"worker runs {VERSION}; waiting for {NEXT}" in done.stdout
    assert "give it the former package to go back" in done.stderr


def test_the_same_version_again_is_answered_and_says_that_there_is_no_way_back(
    place: Place, cloud: MemoryCloud
) -> None:
    with apps(cloud, place, *APPS.values()):
        done = place.upgrade(VERSION)
    assert done.returncode == 0, done.stderr
    assert "keep the former package" in done.stdout


def test_a_file_that_is_no_package_changes_nothing(place: Place, tmp_path: Path) -> None:
    (tmp_path / "other.zip").write_bytes(b"no zip")
    done = place.upgrade("other")
    assert (done.returncode, place.published()) == (ExitCode.FAILED, [])
    assert "other.zip is no package of Roadstead" in done.stderr


@pytest.mark.parametrize("names", [[], ["rs"], ["rs", "rs-worker"], [*APPS, "b", "b-worker", "b-deleter"]])
def test_apps_that_are_not_those_of_one_fleet_are_refused(names: list[str]) -> None:
    with pytest.raises(DeploymentFailed, match="the three apps of one fleet are not to be found"):
        apps_among(names)


def test_the_version_of_a_package_is_the_one_that_its_app_says(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as package:
        package.write(Path(__file__).parents[2] / "shared" / "version.py", "shared/version.py")
    assert version_of(tmp_path / "a.zip") == VERSION
