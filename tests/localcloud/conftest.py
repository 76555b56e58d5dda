"""A small function app, for a local cloud to run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localcloud.runtime.options import ROOT

APP = """
import os
import time
import azure.functions as func

app = func.FunctionApp()

@app.route("api/fleet", auth_level=func.AuthLevel.ANONYMOUS)
def fleet(req: func.HttpRequest) -> str:
    return os.environ["ROADSTEAD_FLEET"] + " " + os.environ["GITHUB_TOKEN"]

@app.route("api/crash", auth_level=func.AuthLevel.ANONYMOUS)
def crash(req: func.HttpRequest) -> str:
    os._exit(7)

@app.route("api/hang", auth_level=func.AuthLevel.ANONYMOUS)
def hang(req: func.HttpRequest) -> str:
    time.sleep(60)
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Return the folder of the app."""
    folder = tmp_path / "app"
    folder.mkdir()
    shutil.copy(ROOT / "host.json", folder)
    (folder / "function_app.py").write_text(APP)
    return folder
