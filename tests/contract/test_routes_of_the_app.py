"""The function app, started as its host starts it, sends to the addresses in its settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localcloud.common.certificates import Authority
from tests.support.receivers import https_inbox

ROOT = Path(__file__).parents[2]
SENDS = """
from shared.notifications.digest import OutgoingMessage
from shared.language.model.notification_kinds import RouteType, Severity
from shared.notifications.routes import Route
from shared.configuration.load_settings import load_settings
from shared.configuration.production import build_ports
route = Route("ops", RouteType.SLACK, "OPS")
message = OutgoingMessage("1", "example", "a test", Severity.INFO, "", (), ())
build_ports(load_settings()).services.routes.send(route, message)
"""


@pytest.mark.lives
def test_the_app_sends_to_the_address_in_its_settings(trusted: Authority) -> None:
    values = json.loads((ROOT / "local.settings.example.json").read_text())["Values"]
    with https_inbox(trusted) as inbox:
        environment = {**values, **os.environ, "NOTIFY_OPS": f"{inbox.url}/services/T0/B0/x"}
        subprocess.run([sys.executable, "-c", SENDS], check=True, timeout=60, cwd=ROOT, env=environment)
        ((path, _, body),) = inbox.got
    assert path == "/services/T0/B0/x"
    assert json.loads(body)["text"].startswith("a test")
