"""The package of a release, as Azure runs it: unpacked, in an empty Python, by Microsoft's worker."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
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
WORKER = ("azure-functions-runtime", "protobuf")
"""What Azure has without the package; the second is the library of the messages to the worker."""
SIZE = 110 * 2**20


def runs(python: str | Path) -> bool:
    """Return whether a name stands for a Python: a version manager's can be without that version."""
    return subprocess.run([python, "--version"], check=False, capture_output=True).returncode == 0


def empty_python(folder: Path) -> Path:
    """Return a Python of the version in Azure that has the worker and nothing else."""
    name = f"python{PYTHON}"
    managed = sorted(Path.home().glob(f".pyenv/versions/{PYTHON}*/bin/{name}"))
    found = [python for python in (shutil.which(name), *managed) if python and runs(python)]
    if not found:
        pytest.skip(f"there is no Python {PYTHON}")
    subprocess.run([found[0], "-m", "venv", folder], check=True)
    declared = [Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]]
    wanted = [f"{each.name}{each.specifier}" for each in declared if each.name in WORKER]
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_serves_a_signed_webhook_a_queue_message_and_a_timer(tmp_path: Path, start: Start) -> None:
    python = empty_python(tmp_path / "python")
    installed, app = tmp_path / "libraries", tmp_path / "app"
    libraries.install(ROOT / "requirements.txt", PYTHON, installed)
    versions = {
        canonicalize_name(found.metadata["Name"]): found.version
        for found in map(PathDistribution, installed.glob("*.dist-info"))
    }
    assert versions == pins(PYTHON)
    package.write_package(tmp_path / "app.zip", installed)
    with zipfile.ZipFile(tmp_path / "app.zip") as zipped:
        zipped.extractall(app)
    assert sum(path.stat().st_size for path in app.rglob("*") if path.is_file()) < SIZE

    options = Options(
        create_seconds=1,
        app=app,
        worker=str(python),
        plan_schedule="*/20 * * * * *",
        extra={"POLL_SECONDS": "0.5"},
    )
    operator = start(options)
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(commit, "success", seconds=180)
    log = (operator.cloud.state / "logs" / "functions.log").read_text()
    for function in ("github", "planner", "changer", "plan_missed_head"):
        assert f"Executed 'Functions.{function}' (Succeeded" in log, function
    assert "(Failed" not in log
