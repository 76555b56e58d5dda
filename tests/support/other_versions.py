"""Other versions of the app, from the project's own files, and their packages."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from shared.version import VERSION

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
