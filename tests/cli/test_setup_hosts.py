"""``roadstead setup gitlab`` and ``roadstead setup azure-devops``: the webhook, its secret, and who reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from werkzeug.wrappers import Request, Response

from cli.errors import ExitCode
from localcloud.common.certificates import Authority
from localcloud.common.http_server import HttpServer
from localcloud.github.wire.github_server import GitHubServer
from shared.app.intake.webhook import DeliveryRefusal
from shared.configuration.settings import App
from shared.standard_webhooks import standard_webhooks_key
from tests.support.az_stand_in import TENANT
from tests.support.host_deliveries import HOSTS
from tests.support.set_up_fleet import FLEET, LateClock, Run, SetUpFleet, app_name

NAMES = ("git-webhook-secret", "git-webhook-secret-previous", "git-password")
SECRETS = dict.fromkeys(NAMES, "none yet: run roadstead setup")
PROJECT = "/api/v4/projects/example%2Ffleet"
MAINTAINER, DEVELOPER = "token-of-a-maintainer", "token-of-the-apps"


@dataclass
class SmallHost:
    """What the command calls at the host itself; ``signs`` is whether GitLab takes signing tokens."""

    signs: bool = True
    directory: str = TENANT
    called: str = "example/fleet"
    hooks: list[dict[str, Any]] = field(default_factory=list)
    secrets: dict[int, dict[str, str]] = field(default_factory=dict)
    tested: list[int] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Answer a request."""
        request = Request(environ)
        return self.answer(request)(environ, start_response)

    def answer(self, request: Request) -> Response:
        """Return the answer of Azure DevOps to anybody, or of GitLab to somebody with a token."""
        if request.method == "HEAD":
            return Response(status=401, headers={"X-VSS-ResourceTenant": self.directory})
        token, path = request.headers.get("PRIVATE-TOKEN"), request.path
        self.listed.append(f"{request.method} {path}")
        if token not in (MAINTAINER, DEVELOPER):
            return Response(status=401)
        rest = path.removeprefix(PROJECT)
        if rest == path:
            return Response(status=404)
        if rest.startswith("/hooks") and token != MAINTAINER:
            return Response(status=403)
        project = {"path_with_namespace": self.called}
        made = self._hooks(request, rest) if rest.startswith("/hooks") else project
        return Response(json.dumps(made), content_type="application/json")

    def _hooks(self, request: Request, rest: str) -> Any:
        if request.method == "GET":
            return self.hooks
        if rest.endswith("/test/push_events"):
            self.tested.append(int(rest.split("/")[2]))
            return {"message": "201 Created"}
        given = dict(request.get_json())
        secrets = {name: given.pop(name) for name in ("token", "signing_token") if name in given}
        if request.method == "POST":
            hook: dict[str, Any] = {
                "id": len(self.hooks) + 1,
                "push_events": True,
                "merge_requests_events": False,
            }
            self.hooks.append(hook)
        else:
            (hook,) = (found for found in self.hooks if found["id"] == int(rest.split("/")[2]))
        number = int(hook["id"])
        self.secrets.setdefault(number, {}).update(secrets)
        hook.update({"alert_status": "executable", **given})
        if self.signs:
            hook["signing_token_present"] = "signing_token" in self.secrets[number]
        return hook


@contextmanager
def set_up_host(folder: Path, git_host: str, host: SmallHost) -> Iterator[SetUpFleet]:
    """Serve the host, and the webhook of the app as production reads it; deploy the fleet."""
    authority, holder = Authority(), list[SetUpFleet]()
    authority.write(folder / "ca.pem")

    @Request.application
    def webhook(request: Request) -> Response:
        running = holder[0].azure()["running"][app_name(App.CONTROL)]
        known = [running["GIT_WEBHOOK_SECRET"], running["GIT_WEBHOOK_SECRET_PREVIOUS"]]
        holder[0].on_webhook(known)
        body, place = request.get_data(), ("example/fleet", "main")
        reader = HOSTS[git_host].read
        read = reader(dict(request.headers), body, secrets=known, repository=place[0], branch=place[1])
        right = request.path == "/api/webhook"
        return Response(status=read.status if isinstance(read, DeliveryRefusal) else 200 if right else 404)

    with HttpServer(host) as served, HttpServer(webhook, tls=authority.server_context()) as app:
        path = "example/fleet.git" if git_host == "gitlab" else "contoso/example/_git/fleet"
        github = cast(GitHubServer, SimpleNamespace(url="https://api.github.com"))
        fleet = SetUpFleet(folder, github, app, LateClock())
        for settings in fleet.settings.values():
            settings |= {"GIT_HOST": git_host, "GIT_URL": f"{served.url}/{path}"}
        references = {
            name.upper().replace("-", "_"): f"@Microsoft.KeyVault(VaultName=kv;SecretName={name})"
            for name in SECRETS
        }
        fleet.settings[app_name(App.CONTROL)] |= references
        holder.append(fleet)
        fleet.deploy(secrets=list(SECRETS), secretValues=SECRETS)
        try:
            yield fleet
        finally:
            fleet.close()


pytestmark = pytest.mark.lives

EVENTS = ["git.pullrequest.created", "git.pullrequest.merged", "git.pullrequest.updated", "git.push"]


@pytest.fixture
def host() -> SmallHost:
    """The host, as it is called."""
    return SmallHost()


@pytest.fixture
def on_gitlab(tmp_path: Path, host: SmallHost, monkeypatch: pytest.MonkeyPatch) -> Iterator[SetUpFleet]:
    """A fleet that was deployed for GitLab."""
    monkeypatch.setenv("GITLAB_TOKEN", MAINTAINER)
    with set_up_host(tmp_path, "gitlab", host) as fleet:
        yield fleet


@pytest.fixture
def on_devops(tmp_path: Path, host: SmallHost) -> Iterator[SetUpFleet]:
    """A fleet that was deployed for Azure DevOps."""
    with set_up_host(tmp_path, "azure-devops", host) as fleet:
        yield fleet


def done(run: Run) -> str:
    assert run.end() == 0, run.out + run.err
    return run.out


def failed(run: Run) -> str:
    assert run.end() == ExitCode.FAILED, run.out + run.err
    return run.err


def admit(fleet: SetUpFleet, license_type: str = "express") -> None:
    """Add the identities of the apps to the organization."""
    state = fleet.azure()
    state["devops"]["members"] = [
        {
            "member": {"originId": f"principal of id-roadstead-{FLEET}-{app}"},
            "accessLevel": {"accountLicenseType": license_type},
        }
        for app in App
    ]
    fleet.state.write_text(json.dumps(state))


def devops(fleet: SetUpFleet) -> list[dict[str, Any]]:
    return sorted(fleet.azure()["devops"]["subscriptions"], key=lambda found: found["eventType"])


def test_gitlab_signs_with_a_token_that_the_app_has_before_a_push_is_sent(
    on_gitlab: SetUpFleet, host: SmallHost
) -> None:
    assert "GitLab signs the webhooks of example/fleet" in done(on_gitlab.run("setup", "gitlab", FLEET))
    (hook,) = host.hooks
    assert (hook["push_events"], hook["merge_requests_events"]) == (True, True)
    assert hook["url"].endswith("/api/webhook")
    secret = host.secrets[1]["signing_token"]
    assert len(standard_webhooks_key(secret)) == 32
    assert on_gitlab.running(App.CONTROL, "GIT_WEBHOOK_SECRET") == secret


def test_a_second_run_changes_nothing_and_a_rotation_changes_the_secret(
    on_gitlab: SetUpFleet, host: SmallHost
) -> None:
    done(on_gitlab.run("setup", "gitlab", FLEET))
    before, secret = on_gitlab.azure(), host.secrets[1]["signing_token"]
    assert "Done before" in done(on_gitlab.run("setup", "gitlab", FLEET))
    assert (on_gitlab.azure(), host.secrets[1]["signing_token"]) == (before, secret)
    accepted: list[list[str]] = []
    on_gitlab.on_webhook = accepted.append
    done(on_gitlab.run("setup", "gitlab", FLEET, "--rotate-webhook-secret"))
    new = host.secrets[1]["signing_token"]
    assert new != secret
    assert len(host.hooks) == 1
    assert all(new in known for known in accepted)
    assert secret not in on_gitlab.azure()["secrets"].values()


def test_a_gitlab_that_does_not_sign_yet_sends_a_secret_token(on_gitlab: SetUpFleet, host: SmallHost) -> None:
    host.signs = False
    assert "sends a secret token with" in done(on_gitlab.run("setup", "gitlab", FLEET))
    assert on_gitlab.running(App.CONTROL, "GIT_WEBHOOK_SECRET") == host.secrets[1]["token"]


def test_a_webhook_that_gitlab_has_disabled_is_tested(on_gitlab: SetUpFleet, host: SmallHost) -> None:
    done(on_gitlab.run("setup", "gitlab", FLEET))
    host.hooks[0]["alert_status"] = "disabled"
    assert "GitLab has disabled the webhook" in done(on_gitlab.run("setup", "gitlab", FLEET))
    assert host.tested == [1]


def test_the_token_of_the_apps_goes_into_the_vault_once_gitlab_takes_it(
    on_gitlab: SetUpFleet, host: SmallHost
) -> None:
    wrong = on_gitlab.run("setup", "gitlab", FLEET, "--token-file", "-", given="nonsense")
    assert "GitLab answers 401" in failed(wrong)
    assert on_gitlab.azure()["secrets"] == SECRETS
    done(on_gitlab.run("setup", "gitlab", FLEET, "--token-file", "-", given=f"{DEVELOPER}\n"))
    assert on_gitlab.azure()["secrets"]["git-password"] == DEVELOPER
    assert host.hooks


def test_a_set_up_says_who_is_in_the_way(
    on_gitlab: SetUpFleet, host: SmallHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.called = "example/renamed"
    assert "is called example/renamed now" in failed(on_gitlab.run("setup", "gitlab", FLEET))
    host.called = "example/fleet"
    monkeypatch.setenv("GITLAB_TOKEN", DEVELOPER)
    assert "the role Maintainer" in failed(on_gitlab.run("setup", "gitlab", FLEET))
    assert "deployed with gitHost gitlab" in failed(on_gitlab.run("setup", "azure-devops", FLEET))
    monkeypatch.delenv("GITLAB_TOKEN")
    run = on_gitlab.run("setup", "gitlab", FLEET)
    assert run.end() == ExitCode.USAGE
    assert "set GITLAB_TOKEN" in run.err


def test_no_secret_of_a_webhook_is_printed_or_on_a_command_line(
    on_gitlab: SetUpFleet, host: SmallHost
) -> None:
    run = on_gitlab.run("setup", "gitlab", FLEET, "--token-file", "-", given=DEVELOPER)
    done(run)
    for secret in (host.secrets[1]["signing_token"], DEVELOPER, MAINTAINER):
        assert secret not in run.out + run.err + on_gitlab.log()


def test_azure_devops_reports_what_is_read_and_the_rest_is_asked_of_a_person(
    on_devops: SetUpFleet,
) -> None:
    asked = failed(on_devops.run("setup", "azure-devops", FLEET))
    assert f"id-roadstead-{FLEET}-worker (object id principal of id-roadstead-{FLEET}-worker)" in asked
    assert "Basic" in asked
    found = devops(on_devops)
    assert [subscription["eventType"] for subscription in found] == EVENTS
    for subscription in found:
        assert subscription["publisherInputs"] == {"projectId": "6ce954b1", "repository": "278d5cd2"}
        assert subscription["consumerInputs"]["url"].endswith("/api/webhook")
    secret = on_devops.running(App.CONTROL, "GIT_WEBHOOK_SECRET")
    assert {subscription["consumerInputs"]["basicAuthPassword"] for subscription in found} == {secret}
    assert secret not in on_devops.log() + asked
    admit(on_devops, "stakeholder")
    assert "as Contributors" in failed(on_devops.run("setup", "azure-devops", FLEET))
    admit(on_devops)
    assert "has its service hooks" in done(on_devops.run("setup", "azure-devops", FLEET))
    assert devops(on_devops) == found


def test_a_subscription_that_is_disabled_is_said_and_written_again(on_devops: SetUpFleet) -> None:
    failed(on_devops.run("setup", "azure-devops", FLEET))
    admit(on_devops)
    state = on_devops.azure()
    state["devops"]["subscriptions"][0]["status"] = "disabledBySystem"
    on_devops.state.write_text(json.dumps(state))
    before = on_devops.running(App.CONTROL, "GIT_WEBHOOK_SECRET")
    assert "as disabledBySystem" in done(on_devops.run("setup", "azure-devops", FLEET))
    assert {found["status"] for found in devops(on_devops)} == {"enabled"}
    assert len(devops(on_devops)) == 4
    after = on_devops.running(App.CONTROL, "GIT_WEBHOOK_SECRET")
    assert before != after
    assert {found["consumerInputs"]["basicAuthPassword"] for found in devops(on_devops)} == {after}


@pytest.mark.parametrize(
    ("directory", "said"),
    [("", "no directory of Entra"), ("0" * 8, "no directory"), ("another", "is of the directory another")],
)
def test_an_organization_of_another_directory_is_refused_before_anything_is_written(
    on_devops: SetUpFleet, host: SmallHost, directory: str, said: str
) -> None:
    host.directory = directory
    assert said in failed(on_devops.run("setup", "azure-devops", FLEET))
    assert on_devops.azure()["secrets"] == SECRETS
