"""``make azure-cli`` installs azure-cli in an environment of its own, and names it in AZURE_CLI."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("AZURE_CLI") else ["test_azure_cli.py"]
