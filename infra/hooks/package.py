"""Before azd packages: builds the package where it is missing, and unpacks it where azd takes it from.

With ``remoteBuild: false`` azd sends what a service has in ``dist`` as it is, so that Azure builds nothing.
``dist`` is a folder, which azd zips: a zip file is not taken for Python. azd packages services at one time,
and each service runs this: the first one does the work. Sources: ``createDeployableZip`` in project_utils.go,
``Package`` in framework_service_python.go, both of github.com/Azure/azure-dev, cli/azd/pkg/project.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli.azure_deployment import DeploymentFailed, newest_package, version_of
from tools.deployed import deployed

DIST = Path("dist")
TAKEN = DIST / "azd"
"""The folder that azure.yaml names."""


def main() -> None:
    """Unpack the package of ROADSTEAD_PACKAGE, or else of ``dist``, which is built if a file is newer."""
    DIST.mkdir(exist_ok=True)
    with _alone(DIST / "azd.lock"):
        given = os.environ.get("ROADSTEAD_PACKAGE")
        package = Path(given) if given else _built()
        version = version_of(package)
        digest, said = hashlib.sha256(package.read_bytes()).hexdigest(), DIST / "azd.sha256"
        if said.is_file() and said.read_text() == digest and TAKEN.is_dir():
            return
        said.unlink(missing_ok=True)
        shutil.rmtree(TAKEN, ignore_errors=True)
        _unpack(package, TAKEN)
        said.write_text(digest)
        print(f"azd publishes {package}, version {version}. It is built; Azure builds nothing.")


def _built() -> Path:
    """Return the package of ``dist``, newer than each file that it has."""
    found = newest_package(DIST)
    if found.is_file():
        made = found.stat().st_mtime
        if all(path.stat().st_mtime <= made for path in deployed(Path())):
            return found
    if not shutil.which("make"):
        raise DeploymentFailed(
            f"{found} is missing or older than the code, and there is no make: build it elsewhere, or name "
            "the zip file of a release: azd env set ROADSTEAD_PACKAGE PATH"
        )
    print("Build the package: some minutes at the first time.\n  make package", flush=True)
    if subprocess.run(["make", "package"], check=False).returncode:
        raise DeploymentFailed("make package failed: see above")
    return newest_package(DIST)


def _unpack(package: Path, folder: Path) -> None:
    """Unpack a zip file with the modes of its files: azd zips them again, and one is a program."""
    with zipfile.ZipFile(package) as opened:
        for entry in opened.infolist():
            path = Path(opened.extract(entry, folder))
            path.chmod(entry.external_attr >> 16 or 0o644)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock, which the system frees when the process ends."""
    with path.open("w") as lock:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        main()
    except DeploymentFailed as error:
        sys.exit(str(error))
