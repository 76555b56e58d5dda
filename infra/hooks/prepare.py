"""Before azd provisions: registers the resource providers, with the Azure CLI."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cli import azure_deployment


def main() -> None:
    """Register what is missing in the subscription of the environment and in the target subscriptions."""
    own = os.environ["AZURE_SUBSCRIPTION_ID"]
    targets = json.loads(os.environ.get("ROADSTEAD_TARGETS") or "[]") or [own]
    azure_deployment.register(azure_deployment.Az(), own, targets)


if __name__ == "__main__":
    try:
        main()
    except azure_deployment.DeploymentFailed as error:
        sys.exit(str(error))
