"""The definitions of the kinds of the Flux Operator, out of its Go module, of which nothing is built.

The operator is built with a newer Go than the other programs, so it does not run in these tests. Its licence
is AGPL-3.0, so its files are read from Go's cache.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from typing import Any
from zipfile import ZipFile

import yaml

MODULE, VERSION = "github.com/controlplaneio-fluxcd/flux-operator", "v0.59.0"
SUM = "h1:jByuiWYtjSJxucGHuz68tV0DeVFz5CYrKQYfxAwE7lE="
"""The hash of the module's files, as in a go.sum."""
_FOLDER = "/config/crd/bases/"


def operator_definitions() -> list[dict[str, Any]]:
    """Return the definitions; Go downloads the module when it is missing."""
    with tempfile.TemporaryDirectory() as elsewhere:  # in no module of its own
        command = ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"]
        done = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout or "{}")  # has an error too where Go is too old to build it
    if found.get("Sum") != SUM:
        raise RuntimeError(f"{MODULE} {VERSION} was not downloaded: {found.get('Error') or done.stderr}")
    with ZipFile(found["Zip"]) as files:
        names = sorted(name for name in files.namelist() if _FOLDER in name and name.endswith(".yaml"))
        return [document for name in names for document in yaml.safe_load_all(files.read(name)) if document]
