"""After azd has published the code: roadstead doctor, which changes nothing.

Its exit code is this one's; azd only warns of it, because the code is there. People who have no sign-in with
Entra, or no command, run it themselves.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import azure_deployment

INFRA = Path(__file__).resolve().parents[1]


def main() -> int:
    """Return 0 where nothing is wrong, or nothing was asked."""
    given = azure_deployment.given_to_azd(INFRA, os.environ)
    client = given.get("entraClientId")
    app = azure_deployment.address_in(os.environ.get("webhookUrl", ""))  # noqa: SIM112 - azd has the names of outputs
    doctor = ["roadstead", "doctor", "--azure", str(given.get("fleet") or "FLEET"), "--wait", "5m"]
    doctor += ["--subscription", os.environ.get("AZURE_SUBSCRIPTION_ID", "SUBSCRIPTION")]
    doctor += ["--url", app] if app else []
    if not (client and app and shutil.which("roadstead")):
        print(
            f"Check what was deployed, once you can sign in (docs/how-to/sign-in.md):\n  {shlex.join(doctor)}"
        )
        return 0
    print("Until the GitHub App is registered, GitHub is among what is found.", flush=True)
    environment = {**os.environ, "ROADSTEAD_SCOPE": f"api://{client}/.default"}
    return subprocess.run(doctor, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
