"""``python -m localcloud azure``: does by hand to a cluster what people do to it in Azure, or breaks it."""

from __future__ import annotations

import argparse
import json
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from localcloud.azure.wire.arm_controls import CONTROLS
from localcloud.runtime.state_folder import nearest_state

CODE = "code"
"""The field of ``fail`` that needs no name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Send a control to the local Azure of a running cloud; return 1 with the reason when it refuses."""
    found = parser()
    given = found.parse_args(arguments)
    bare = next((value for name, value in given.values if not name), None)
    if bare is not None and given.control != "fail":
        found.error(f"{bare!r} is not of the form FIELD=VALUE")
    try:
        urls = json.loads((given.state / "cloud.json").read_text())["urls"]
        trust = ssl.create_default_context(cafile=str(given.state / "ca.pem"))
        with httpx.Client(verify=trust) as client:
            address = f"{urls['arm']}/_local/clusters/{given.cluster}/{given.control}"
            reply = client.post(address, json={name or CODE: value for name, value in given.values})
    except (OSError, httpx.HTTPError) as error:
        print(f"no local cloud runs in {given.state}: {error}; start it with make up", file=sys.stderr)
        return 1
    if reply.is_success:
        return 0
    body: dict[str, Any] = reply.json()
    reason = body.get("message") or body["error"]["message"]
    print(f"the local Azure refuses {given.control} of {given.cluster}: {reason}", file=sys.stderr)
    return 1


def _value(text: str) -> tuple[str, str | int]:
    """Return a field and its value; the field of a word alone, as of a code with a sign in it, is ""."""
    name, _, value = text.partition("=")
    if name == text or not name.isidentifier():
        return "", text
    return name, int(value) if value.isdecimal() else value


def parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    found = argparse.ArgumentParser(prog="python -m localcloud azure", description=__doc__)
    found.add_argument("cluster", metavar="CLUSTER", help="the name of a cluster")
    found.add_argument("control", choices=CONTROLS, help="see docs/local-cloud.md")
    found.add_argument(
        "values", metavar="FIELD=VALUE", nargs="*", type=_value, help="its fields; CODE for fail"
    )
    found.add_argument(
        "--state", type=Path, default=nearest_state(), help="state folder, by default the nearest .localcloud"
    )
    return found
