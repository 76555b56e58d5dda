"""``python -m tools.restore FLEET``: puts exports into tables that lost them: docs/how-to/back-up.md.

The account is in TABLES_ENDPOINT and EXPORTS_URL, as in the settings of the app, or in a connection string.
Your sign-in at the Azure CLI needs the roles Storage Table Data Contributor and Storage Blob Data Reader.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from datetime import date

from shared.adapters.exports import BlobExports, exports_container
from shared.adapters.tables import storage_tables, table_service
from shared.adapters.transport import app_credential
from shared.app.recovery.housekeeping import restore
from shared.ports import State


def main(arguments: Sequence[str] | None = None) -> int:
    """Restore a fleet, and say how much was missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.restore", description=__doc__)
    parser.add_argument("fleet", metavar="FLEET")
    parser.add_argument(
        "--since", metavar="DAY", type=date.fromisoformat, default=date.min, help="the first day to restore"
    )
    given, credential = parser.parse_args(arguments), app_credential()
    with (
        table_service(
            connection_string=os.environ.get("TABLES_CONNECTION_STRING"),
            endpoint=os.environ.get("TABLES_ENDPOINT"),
            credential=credential,
        ) as service,
        exports_container(
            connection_string=os.environ.get("EXPORTS_CONNECTION_STRING"),
            url=os.environ.get("EXPORTS_URL"),
            credential=credential,
        ) as container,
    ):
        state = State(storage_tables(service), given.fleet)
        restored, there = restore(given.fleet, state, BlobExports(container), given.since)
    print(f"{restored} entities were restored; {there} were there, and stay as they are")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
