"""After azd has deployed: says what a person does next."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import azure_deployment

if __name__ == "__main__":
    fleet = os.environ.get("ROADSTEAD_FLEET", "FLEET")
    print(azure_deployment.ending(os.environ["webhookUrl"], fleet))  # noqa: SIM112 - azd has the names of outputs
