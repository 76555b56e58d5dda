"""``roadstead setup github``: the App of a fleet, from the form to the vault, and its secrets later."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from github import Github

from cli.errors import ExitCode
from shared.adapters.github.client import github_auth
from shared.app.intake.github_webhook import _OPTIONAL, _READERS
from shared.configuration.settings import App
from shared.github_app import (
    EVENTS,
    LONGEST_NAME,
    OPTIONAL_EVENTS,
    PERMISSIONS,
    SECRETS,
    Feature,
    api_address,
    asked,
    manifest,
    web_address,
)
from tests.support.browser import Browser
from tests.support.set_up_fleet import FIRST, FLEET, REPOSITORY, Run, SetUpFleet, set_up_fleet

pytestmark = pytest.mark.lives

ROOT = Path(__file__).parent.parent.parent
PAGE, INSTALL = r"http://127\.0\.0\.1:\d+/\S+", r"http\S+/installations/new"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SetUpFleet]:
    """A fleet that was deployed, and whose GitHub App nobody has set up."""
    with set_up_fleet(tmp_path) as found:
        yield found


@pytest.fixture
def browser() -> Iterator[Browser]:
    """A browser that follows forms and redirects."""
    found = Browser()
    yield found
    found.close()


def begun(fleet: SetUpFleet, *options: str) -> Run:
    """Start the set-up."""
    return fleet.run("setup", "github", FLEET, "--no-browser", *options)


def registered(fleet: SetUpFleet, browser: Browser, *options: str) -> Run:
    """Start the set-up, and register the App in the browser."""
    run = begun(fleet, *options)
    browser.open(run.address(PAGE))
    browser.press("example is an organization")
    browser.press("Create GitHub App for example", **({"name": "another"} if options else {}))
    return run


def set_up(fleet: SetUpFleet, browser: Browser, *options: str) -> Run:
    """Set the App up to the end."""
    run = registered(fleet, browser, *options)
    browser.press(REPOSITORY)
    assert run.end() == 0, run.err
    return run


def test_a_person_registers_and_installs_the_app_and_the_fleet_has_it(
    fleet: SetUpFleet, browser: Browser
) -> None:
    run = set_up(fleet, browser)
    secrets = fleet.azure()["secrets"]
    assert set(secrets) == set(SECRETS)
    for app in App:
        names = ("GITHUB_APP_ID", "GITHUB_APP_PRIVATE_KEY", "GITHUB_APP_INSTALLATION_ID")
        app_id, key, installation = (fleet.running(app, name) for name in names)
        auth = github_auth(app_id=app_id, private_key=key, installation_id=installation)
        assert Github(auth=auth, base_url=fleet.github.url).get_repo(REPOSITORY).full_name == REPOSITORY
    assert fleet.running(App.CONTROL, "GITHUB_WEBHOOK_SECRET") == fleet.github.hooks.secret
    assert "Push a commit" in run.out
    assert "but " not in run.out, "the app took a webhook that GitHub's secret signed"


def test_no_secret_is_printed_logged_on_a_command_line_or_in_a_file(
    fleet: SetUpFleet, browser: Browser
) -> None:
    run = set_up(fleet, browser)
    secrets = fleet.azure()["secrets"]
    hidden = [secrets["github-app-private-key"].split("\n")[1], secrets["github-webhook-secret"]]
    for secret in hidden:
        assert secret not in run.out + run.err + fleet.log()
        for path in fleet.folder.rglob("*"):
            if path.is_file() and path != fleet.state and "/github/" not in str(path):
                assert secret.encode() not in path.read_bytes(), path


def test_a_second_deployment_takes_nothing_back(fleet: SetUpFleet, browser: Browser) -> None:
    set_up(fleet, browser)
    before = fleet.azure()
    fleet.deploy()
    assert fleet.azure() == before


def test_before_the_set_up_the_apps_have_what_signs_nothing(fleet: SetUpFleet) -> None:
    assert set(FIRST) == set(SECRETS)
    assert fleet.running(App.CONTROL, "GITHUB_WEBHOOK_SECRET") == "[newGuid()]"


def test_a_fleet_that_has_an_app_says_so_and_another_needs_a_word(
    fleet: SetUpFleet, browser: Browser
) -> None:
    set_up(fleet, browser)
    before = fleet.azure()["secrets"]
    again = begun(fleet)
    assert (again.end(), "has the App roadstead-example already" in again.err) == (ExitCode.FAILED, True)
    assert fleet.azure()["secrets"] == before
    set_up(fleet, browser, "--replace")
    assert fleet.azure()["tags"]["github-app-id"]["github-app"] == "another"


def test_an_answer_with_another_state_or_none_does_nothing(fleet: SetUpFleet, browser: Browser) -> None:
    run = begun(fleet)
    place = run.address(PAGE)
    created = f"{place.rsplit('/', 1)[0]}/created"
    for wrong in ({"code": "abc", "state": "x" * 43}, {"code": "abc"}, {}):
        browser.open(f"{created}?{urlencode(wrong)}")
        assert browser.status == 403
    browser.open(place)
    (state,) = parse_qs(urlsplit(re.findall(r'action="([^"]+)"', browser.text)[0]).query)["state"]
    browser.open(f"{created}?{urlencode({'state': state})}")
    assert browser.status == 400
    browser.open(place)
    browser.press("example is an organization")
    browser.press("Create GitHub App for example")
    browser.press(REPOSITORY)
    assert run.end() == 0, run.err


def test_a_page_of_somebody_else_reads_no_state(fleet: SetUpFleet) -> None:
    """A name that resolves to 127.0.0.1 has another Host."""
    run = begun(fleet)
    place = run.address(PAGE)
    wrong = httpx.get(place, headers={"Host": "evil.example.com"}, trust_env=False)
    other = httpx.get(f"{place.rsplit('/', 1)[0]}/", trust_env=False)
    assert (wrong.status_code, other.status_code) == (404, 404)
    assert "state" not in wrong.text + other.text


def test_an_answer_counts_once_and_a_code_too(fleet: SetUpFleet, browser: Browser) -> None:
    run = begun(fleet)
    browser.open(run.address(PAGE))
    browser.press("example is an organization")
    answers: list[str] = []
    browser.visiting = answers.append
    browser.press("Create GitHub App for example")
    (back,) = [url for url in answers if "/created?" in url]
    page = httpx.get(back, trust_env=False)
    assert page.status_code == 409
    assert "answered before" in page.text
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert httpx.post(f"{fleet.github.url}/app-manifests/{code}/conversions").status_code == 404
    browser.press(REPOSITORY)
    assert run.end() == 0, run.err


def test_a_code_that_has_expired_stores_nothing_and_says_what_to_do(
    fleet: SetUpFleet, browser: Browser
) -> None:
    run = begun(fleet)
    browser.open(run.address(PAGE))
    browser.press("example is an organization")

    def late(url: str) -> None:
        if "/created?" in url:
            fleet.clock.late = 3601

    browser.visiting = late
    browser.press("Create GitHub App for example")
    assert browser.status == 502
    assert "delete it on GitHub" in browser.text
    assert run.end() == ExitCode.FAILED
    assert "good once, and for an hour" in run.err
    assert fleet.azure()["tags"] == {}


def test_whoever_never_comes_back_is_told_that_nothing_was_stored(fleet: SetUpFleet) -> None:
    run = begun(fleet, "--timeout", "1s")
    assert run.end() == ExitCode.FAILED
    assert "nobody came back from GitHub" in run.err
    assert "Nothing was stored" in run.err
    assert fleet.azure()["tags"] == {}


def test_an_app_that_is_not_installed_keeps_its_key_and_is_gone_on_with(
    fleet: SetUpFleet, browser: Browser
) -> None:
    run = registered(fleet, browser, "--timeout", "3s")
    assert run.end() == ExitCode.FAILED
    assert "is not installed on example/fleet yet" in run.err
    key = fleet.azure()["secrets"]["github-app-private-key"]
    browser.press(REPOSITORY)
    again = fleet.run("setup", "github", FLEET, "--key-file", "-", given=key)
    assert again.end() == 0, again.err
    assert fleet.running(App.WORKER, "GITHUB_APP_INSTALLATION_ID") != "1"


def test_a_deployment_with_a_token_says_what_to_change(fleet: SetUpFleet) -> None:
    for settings in fleet.settings.values():
        settings.pop("GITHUB_APP_ID")
    run = begun(fleet)
    assert run.end() == ExitCode.FAILED
    assert "the app does not read github-app-id: add them to secrets" in run.err


def test_a_fleet_that_is_not_deployed_is_named(fleet: SetUpFleet) -> None:
    run = fleet.run("setup", "github", "nothing", "--no-browser")
    assert run.end() == ExitCode.FAILED
    assert "tag roadstead-fleet=nothing" in run.err
    assert "deploy the fleet first" in run.err


# What changes later


def test_a_webhook_secret_is_changed_and_both_are_accepted_until_github_has_it(
    fleet: SetUpFleet, browser: Browser
) -> None:
    set_up(fleet, browser)
    before = fleet.running(App.CONTROL, "GITHUB_WEBHOOK_SECRET")
    seen: list[tuple[str, set[str]]] = []
    fleet.on_webhook = lambda known: seen.append((fleet.github.hooks.secret, set(known)))
    run = fleet.run("setup", "github", FLEET, "--rotate-webhook-secret")
    assert run.end() == 0, run.err
    after = fleet.running(App.CONTROL, "GITHUB_WEBHOOK_SECRET")
    assert after == fleet.github.hooks.secret != before
    assert seen[-1] == (before, {before, after}), "the new one is taken before GitHub signs with it"
    assert before not in fleet.azure()["running"][next(iter(fleet.settings))].values()
    assert after not in run.out + run.err + fleet.log()


def test_without_the_right_to_read_the_key_the_command_names_the_role_and_changes_nothing(
    fleet: SetUpFleet, browser: Browser
) -> None:
    set_up(fleet, browser)
    before, fleet.may_read = fleet.azure()["secrets"], "no"
    run = fleet.run("setup", "github", FLEET, "--rotate-webhook-secret")
    assert run.end() == ExitCode.FAILED
    assert "Key Vault Secrets User" in run.err
    assert fleet.azure()["secrets"] == before
    key = before["github-app-private-key"]
    run = fleet.run("setup", "github", FLEET, "--rotate-webhook-secret", "--key-file", "-", given=key)
    assert run.end() == 0, run.err


def test_a_key_in_a_file_is_given_to_the_apps_and_the_file_is_removed(
    fleet: SetUpFleet, browser: Browser
) -> None:
    set_up(fleet, browser)
    file = fleet.folder / "new.pem"
    file.write_text(fleet.azure()["secrets"]["github-app-private-key"])
    run = fleet.run("setup", "github", FLEET, "--key-file", "new.pem")
    assert run.end() == 0, run.err
    assert not file.exists()
    assert "Removed new.pem" in run.out


def test_a_key_of_another_app_or_none_is_refused_and_stays_where_it_is(
    fleet: SetUpFleet, browser: Browser
) -> None:
    set_up(fleet, browser)
    before = fleet.azure()["secrets"]
    pair = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    other = pair.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    file = fleet.folder / "other.pem"
    for text, said in ((other, "GitHub does not take this key"), ("none", "not an RSA private key")):
        file.write_text(text)
        run = fleet.run("setup", "github", FLEET, "--key-file", "other.pem")
        assert (run.end(), said in run.err) == (ExitCode.FAILED, True)
        assert file.exists()
    assert fleet.azure()["secrets"] == before


# The App itself


def permission_table() -> Iterator[str]:
    """Yield the lines of the table of the guide."""
    yield "| permission | for | asked for |"
    yield "|---|---|---|"
    for permission in PERMISSIONS:
        when = f"with `--allow {permission.feature}`" if permission.feature else "always"
        yield f"| {permission.shown.lower()}: {permission.level} | {permission.reason} | {when} |"


def event_table() -> Iterator[str]:
    """Yield the lines of the table of the guide."""
    yield "| event | for |"
    yield "|---|---|"
    for event, reason in EVENTS.items():
        yield f"| `{event}` | {reason} |"
    for event, (reason, feature) in OPTIONAL_EVENTS.items():
        yield f"| `{event}` | {reason}, with `--allow {feature}` |"


def test_the_guide_has_each_permission_and_each_event_with_its_reason() -> None:
    guide = (ROOT / "docs" / "how-to" / "connect-github.md").read_text()
    for table in (permission_table(), event_table()):
        assert "\n".join(table) in guide


def test_the_app_hears_what_is_read_and_nothing_else() -> None:
    assert set(EVENTS) == set(_READERS)
    assert set(OPTIONAL_EVENTS) == set(_OPTIONAL)


def test_the_least_is_asked_for_and_each_feature_adds_one_permission() -> None:
    least = asked(())
    assert least["contents"] == "read"
    for feature in Feature:
        more = dict(asked([feature]).items() - least.items())
        assert len(more) == 1
    assert asked(tuple(Feature))["contents"] == "write"
    assert {permission.name for permission in PERMISSIONS} == set(asked(tuple(Feature)))


@pytest.mark.parametrize("name", ["a", "f" * 63, f"{'f' * 23}-rest"])
def test_a_manifest_has_a_name_that_github_takes(name: str) -> None:
    found = manifest(fleet=name, app="https://app", redirect="http://127.0.0.1:1/created", features=())
    assert len(found["name"]) <= LONGEST_NAME
    assert not found["name"].endswith("-")
    assert found["public"] is False
    json.dumps(found)


@pytest.mark.parametrize(
    ("api", "web"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://api.contoso.ghe.com", "https://contoso.ghe.com"),
        ("https://github.contoso.com/api/v3", "https://github.contoso.com"),
        ("http://127.0.0.1:8445", "http://127.0.0.1:8445"),
    ],
)
def test_the_pages_of_every_github_are_found_from_its_api(api: str, web: str) -> None:
    assert web_address(api) == web
    assert api_address(web) == api
