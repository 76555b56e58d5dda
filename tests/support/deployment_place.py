"""A folder from which a fleet is deployed, with a stand-in for the Azure CLI."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import az_stand_in
from tests.support.az_stand_in import SUBSCRIPTION
from tests.support.roadstead_command import roadstead
from tests.support.templates import REQUIRED, outputs

ROOT = Path(__file__).parents[2]
TARGET = "00000000-0000-0000-0000-000000000003"
SECRETS = ["github-token", "github-webhook-secret"]
REFUSED = {
    "code": "InvalidTemplateDeployment",
    "message": "The template deployment 'roadstead' is not valid.",
    "details": [
        {"code": "RequestDisallowedByPolicy", "message": "Resource 'kv' was disallowed by policy 'tags'."},
        {"code": "StorageAccountAlreadyTaken", "message": "The storage account named st1 is already taken."},
        {"code": "AuthorizationFailed", "message": "The client may not write roleAssignments."},
        {
            "code": "PreflightValidationCheckFailed",
            "message": "Preflight validation failed.",
            "details": [{"code": "SubscriptionIsOverQuotaForSku", "message": "Current Limit: 0"}],
        },
        {"code": "Odd", "message": "Something else."},
    ],
}


class Place:
    """A folder with a parameter file, a package, and the stand-in as ``az`` on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.printed = folder, folder / "state.json", outputs(REQUIRED)
        program = folder / "bin" / "az"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {az_stand_in.__file__} "$@"\n')
        program.chmod(0o755)
        (folder / "code.zip").write_bytes(b"code")
        self.give(dict.fromkeys(SECRETS, "x" * 30))

    @property
    def env(self) -> dict[str, str]:
        """Return the environment in which ``az`` is the stand-in."""
        printed = {name: {"value": value} for name, value in self.printed.items()}
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "AZ_STATE": str(self.state),
            "AZ_OUTPUTS": json.dumps(printed),
        }

    def give(self, values: dict[str, str]) -> None:
        """Write the parameter file; the stand-in reads it as JSON."""
        given = {
            "fleet": "one",
            "secrets": SECRETS,
            "secretValues": values,
            "targetSubscriptions": [SUBSCRIPTION, TARGET],
        }
        text = json.dumps({name: {"value": value} for name, value in given.items()})
        (self.folder / "fleet.bicepparam").write_text(text)

    def deploy(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run the command."""
        arguments = ("deploy", "fleet.bicepparam", "--location", "westeurope", "--package", "code.zip", *more)
        return roadstead(*arguments, cwd=self.folder, **self.env)

    def hook(self, name: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a hook of azd."""
        command = [sys.executable, str(ROOT / "infra" / "hooks" / f"{name}.py")]
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.env, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, **values: str) -> None:
        """Keep what azd was answered in an environment, as it does."""
        (self.folder / ".azure" / "mine").mkdir(parents=True)
        config = json.dumps({"infra": {"parameters": values}})
        (self.folder / ".azure" / "mine" / "config.json").write_text(config)

    def commands(self) -> list[str]:
        """Return the commands since the last time that wrote to Azure, or would."""
        log = Path(f"{self.state}.log")
        found = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        writing = ("provider register", "deployment sub create", "functionapp deploy ")
        return [command for command in found if command.startswith(writing)]

    def stored(self) -> Any:
        """Return what the subscription has."""
        return json.loads(self.state.read_text()) if self.state.exists() else None
