"""The package of a release, as Azure runs it: unpacked, in an empty Python, by Microsoft's worker."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from functools import partial
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.local_cloud_start import Start
from tests.support.locked_libraries import PROJECT, pins
from tools import libraries, package

ROOT = Path(__file__).parents[2]
PYTHON = package.runtime()
OWN = "{}.{}".format(*sys.version_info)
WORKER = ("azure-functions-runtime", "protobuf")
"""What Azure has without the package; the second is the library of the messages to the worker."""
SIZE = 110 * 2**20


def runs(python: str | Path) -> bool:
    """Return whether a name stands for a Python: a version manager's can be without that version."""
    return subprocess.run([python, "--version"], check=False, capture_output=True).returncode == 0


def python_of_azure() -> str:
    """Return the Python of the version in Azure, "" where there is none: it is not this one's either."""
    name = f"python{PYTHON}"
    managed = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}*/bin/{name}"))
    found = (str(python) for python in (shutil.which(name), *managed) if python and runs(python))
    return next(found, "")


def with_worker(found: str, folder: Path) -> str:
    """Return an empty environment of a Python that has the worker and nothing else."""
    subprocess.run([found, "-m", "venv", folder], check=True)
    declared = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
    wanted = [
        f"{requirement.name}{requirement.specifier}" for requirement in declared if requirement.name in WORKER
    ]
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return str(python)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_serves_a_signed_webhook_a_queue_message_and_a_timer(tmp_path: Path, start: Start) -> None:
    azure = python_of_azure()  # without one, the package is built for this Python, which runs it in its host
    version = PYTHON if azure else OWN
    installed, app = tmp_path / "libraries", tmp_path / "app"
    libraries.install(ROOT / "requirements.txt", version, installed)
    versions = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in map(PathDistribution, installed.glob("*.dist-info"))
    }
    assert versions == pins(version)
    assert package.write_package(tmp_path / "app.zip", installed, python=azure or sys.executable)
    with zipfile.ZipFile(tmp_path / "app.zip") as zipped:
        zipped.extractall(app)
    assert sum(path.stat().st_size for path in app.rglob("*") if path.is_file()) < SIZE

    options = Options(
        create_seconds=1,
        app=app,
        worker=with_worker(azure, tmp_path / "python") if azure else "",
        plan_schedule="*/20 * * * * *",
        extra={"POLL_SECONDS": "0.5"},
    )
    operator = start(options)
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(commit, "success", seconds=180)
    log = operator.cloud.state / "logs" / "functions.log"
    for function in ("github", "planner", "changer", "plan_missed_head"):
        operator.wait(partial(_has_run, log, function), f"{function} has run", seconds=60)
    assert "(Failed" not in log.read_text()


def _has_run(log: Path, function: str) -> bool:
    return f"Executed 'Functions.{function}' (Succeeded" in log.read_text()
