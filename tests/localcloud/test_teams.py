"""The local Teams takes what Teams takes, and refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests

from localcloud.common.certificates import Authority
from localcloud.flux.http_posts import HttpPosts
from localcloud.flux.notification_controller import ControllerEvent, card
from localcloud.runtime.up import show_notifications
from localcloud.teams.teams_server import MOST_BYTES, TeamsServer
from shared.adapters.notification_routes import teams_body
from shared.cluster.failures.errors import Unauthenticated, Unavailable
from shared.language.model.notification_kinds import RouteType
from tests.support.notification_routes import message, send
from tests.support.waiting import until

PATH = "/workflows/local/triggers/manual/paths/invoke"
SIGNATURE = "local-signature"
CARD: dict[str, Any] = json.loads(teams_body(message()))


@pytest.fixture
def teams(
    authority: tuple[Authority, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(authority[1]))
    address = f"https://127.0.0.1{PATH}?sig={SIGNATURE}"
    with TeamsServer(address, authority[0], shown=tmp_path / "shown.txt", log_file=None) as server:
        yield server


def post(teams: TeamsServer, body: bytes, *, path: str = PATH, signature: str = SIGNATURE) -> int:
    return requests.post(f"{teams.url}{path}?sig={signature}", data=body, timeout=30).status_code


def test_a_message_of_the_app_is_taken_and_shown_as_text(
    teams: TeamsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        send(RouteType.TEAMS, f"{teams.url}{PATH}?sig={SIGNATURE}")
    shown = tmp_path / "shown.txt"
    with shown.open("a") as out:
        out.write("a message that is not whole")
    seen = show_notifications(shown, 0)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("Notification in Teams:") == 2
    assert "  example: 2 clusters failed in westeurope: QuotaExceeded" in lines
    assert any("https://github.com/example/fleet/commit/" in line for line in lines)
    assert not any("not whole" in line for line in lines)
    assert show_notifications(shown, seen) == seen
    assert capsys.readouterr().out == ""


def test_an_alert_of_the_local_flux_is_taken_and_shown(
    teams: TeamsServer, tmp_path: Path, authority: tuple[Authority, Path]
) -> None:
    subject = {"kind": "Kustomization", "metadata": {"name": "shop", "namespace": "shop"}}
    event = ControllerEvent(
        subject, "error", "BuildFailed", "no such file", "kustomize-controller", {"revision": "main"}
    )
    with closing(HttpPosts(authority[1])) as posts:
        posts(f"{teams.url}{PATH}?sig={SIGNATURE}", {}, json.dumps(card(event)).encode())
        shown = tmp_path / "shown.txt"
        until(shown.is_file)
    assert shown.read_text().splitlines()[:3] == ["kustomization/shop.shop", "no such file", "revision: main"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (json.dumps(CARD).encode(), 202),
        (b"not JSON", 400),
        (b"[]", 400),
        (json.dumps({"text": "as Slack takes it"}).encode(), 400),
        (json.dumps(CARD | {"attachments": []}).encode(), 400),
        (json.dumps(CARD | {"attachments": [{"contentType": "text/html", "content": {}}]}).encode(), 400),
        (json.dumps(CARD | {"more": "x" * MOST_BYTES}).encode(), 413),
    ],
)
def test_what_is_no_message_with_cards_or_too_large_is_refused(
    teams: TeamsServer, body: bytes, status: int
) -> None:
    assert post(teams, body) == status


def test_another_signature_or_workflow_is_refused_and_faults_can_be_injected(teams: TeamsServer) -> None:
    body = json.dumps(CARD).encode()
    assert post(teams, body, signature="other") == post(teams, body, path="/workflows/other") == 401
    with pytest.raises(Unauthenticated):
        send(RouteType.TEAMS, f"{teams.url}{PATH}?sig=other")
    faults: Any = [{"match": "^POST ", "status": 503}]
    requests.put(f"{teams.url}/_local/faults", json=faults, timeout=30).raise_for_status()
    with pytest.raises(Unavailable):
        send(RouteType.TEAMS, f"{teams.url}{PATH}?sig={SIGNATURE}")
