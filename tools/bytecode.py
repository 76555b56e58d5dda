"""The bytecode of what an instance of the function app imports, so that none compiles it.

An app's folder is read-only in Azure: an instance cannot keep what it compiles, and a start from source costs
2.3 times as much of the processor, measured with Python 3.13.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_COMPILE = """
import sys
from importlib import import_module
from importlib.util import cache_from_source
from pathlib import Path
from pkgutil import walk_packages
from py_compile import PycInvalidationMode, compile
folder, target = Path.cwd(), Path(sys.argv[1])
sys.path[:0] = [str(folder), str(folder / sys.argv[2])]
import function_app
for package in ("handlers", "shared/app"):  # what the first calls of functions import
    for module in walk_packages([str(folder / package)], package.replace("/", ".") + "."):
        import_module(module.name)
files = {Path(found) for module in list(sys.modules.values()) if (found := getattr(module, "__file__", None))}
files |= {*folder.glob("shared/**/*.py")}  # adapters too, without the libraries of all of them
names = sorted(path.relative_to(folder) for path in files if path.suffix == ".py" and folder in path.parents)
for name in names:
    compile(
        str(folder / name),
        cfile=str(target / cache_from_source(name)),
        dfile=str(name),
        doraise=True,
        # A zip file keeps no exact times of its files, and nobody edits a file of a package.
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
"""


def interpreter(version: str) -> str:
    """Return the command of a Python of a version ("3.13"), "" where there is none."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    command = shutil.which(f"python{version}") or ""
    asked = [command, "-c", "pass"]  # a shim may stand for a version that is not there
    return (
        command if command and subprocess.run(asked, capture_output=True, check=False).returncode == 0 else ""
    )


def compile_start(
    folder: Path, libraries: Path, python: str, target: Path, settings: Mapping[str, str]
) -> bool:
    """Write the bytecode of each file that the functions of the app import, by its path below ``target``.

    ``libraries`` is below the folder of the app. Return whether the app could be imported there: the
    libraries of Linux cannot be on another system.
    """
    command = [python, "-c", _COMPILE, str(target), str(libraries)]
    environment = {**os.environ, **settings, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().rpartition("\n")[2], file=sys.stderr)
    return done.returncode == 0


def example_settings(root: Path) -> Mapping[str, str]:
    """Return settings with which an app starts: those of the example."""
    values: Mapping[str, str] = json.loads((root / "local.settings.example.json").read_text())["Values"]
    return values
