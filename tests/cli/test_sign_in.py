"""The command signs in through the real azure-identity, and knows the apps of several fleets by name."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from tests.support.pipeline_runs import failed
from tests.support.roadstead_command import roadstead
from tests.support.served_api import served

pytestmark = pytest.mark.lives

SCOPE = f"{API}/.default"
NO_KEY: dict[str, Any] = {"ROADSTEAD_KEY": ""}


@pytest.fixture
def cloud() -> MemoryCloud:
    return failed()[0]


@pytest.fixture
def app(identity: IdentityServer, cloud: MemoryCloud) -> Iterator[str]:
    """Serve an app in which nobody has a key: only identities of the local directory open it."""
    with served(cloud.ports, AuthSettings(identity.authority, (API,))) as address:
        yield address


def account(name: str) -> str:
    return next(known_account.id for known_account in ACCOUNTS if known_account.name == name)


def managed(identity: IdentityServer, name: str) -> dict[str, Any]:
    """Return the environment of a machine whose managed identity is an account of the local directory."""
    endpoint = {"IDENTITY_ENDPOINT": identity.endpoint, "IDENTITY_HEADER": "open-sesame"}
    return {**NO_KEY, **endpoint, "AZURE_CLIENT_ID": account(name), "ROADSTEAD_SCOPE": SCOPE}


def test_a_managed_identity_signs_in_and_its_role_decides(
    app: str, cloud: MemoryCloud, identity: IdentityServer
) -> None:
    listed = roadstead("status", ROADSTEAD_URL=app, **managed(identity, "reader"))
    assert (listed.returncode, "one" in listed.stdout) == (0, True), listed.stderr
    denied = roadstead("replay", "one", ROADSTEAD_URL=app, **managed(identity, "reader"))
    assert denied.returncode == 1
    assert "this needs the role Operator; reader@example.com has Reader" in denied.stderr
    replayed = roadstead("replay", "one", ROADSTEAD_URL=app, **managed(identity, "script"))
    assert replayed.returncode == 0, replayed.stderr
    assert cloud.state.acts(1)[0].by == f"app {account('script')}"


def test_nobody_is_told_how_to_sign_in(app: str) -> None:
    shown = roadstead("status", ROADSTEAD_URL=app, **NO_KEY)
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1)
    assert "sign in first: this needs the role Reader; choose a context with a scope" in shown.stderr


def test_a_refused_token_is_told_from_a_missing_one_with_the_context_of_its_scope(
    cloud: MemoryCloud, identity: IdentityServer, tmp_path: Path
) -> None:
    others = AuthSettings(identity.authority, ("api://another-app",))
    with served(cloud.ports, others) as address:
        file = contexts(
            tmp_path,
            f'[contexts.here]\nurl = "{address}"\nscope = "{SCOPE}"\nsign-in = "managed-identity"\n',
        )
        environment = managed(identity, "reader") | {"ROADSTEAD_SCOPE": ""}
        shown = roadstead("--context", "here", "status", **file, **environment)
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1)
    origin = f"the context here in {tmp_path / 'contexts.toml'}"
    assert f"{address} refused the token for the scope from {origin}" in shown.stderr
    assert "the scope must be the one of this app" in shown.stderr


@pytest.fixture
def az(tmp_path: Path, identity: IdentityServer) -> str:
    """Return a path with an az that is signed in as the approver, and writes what it was asked."""
    token, expires = identity.issue(
        API, next(known_account for known_account in ACCOUNTS if known_account.name == "approver")
    )
    answer = {"accessToken": token, "expires_on": expires, "expiresOn": "2100-01-01 00:00:00.000000"}
    program = tmp_path / "bin" / "az"
    program.parent.mkdir()
    asked = tmp_path / "asked"
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {asked}\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{program.parent}:/usr/bin:/bin"


def contexts(folder: Path, text: str) -> dict[str, Any]:
    file = folder / "contexts.toml"
    file.write_text(text)
    return {"ROADSTEAD_CONTEXTS": str(file)}


def test_a_context_has_the_address_and_az_the_token(app: str, az: str, tmp_path: Path) -> None:
    file = contexts(
        tmp_path,
        f'default = "here"\n[contexts.here]\nurl = "{app}"\nscope = "{SCOPE}"\n'
        '[contexts.there]\nurl = "https://there.example"\n',
    )
    shown = roadstead("plans", PATH=az, **file, **NO_KEY)
    assert shown.returncode == 0, shown.stderr
    assert f"--resource {API}" in (tmp_path / "asked").read_text()
    named = roadstead("--context", "context/here", "plans", PATH=az, **file, **NO_KEY)
    assert named.stdout == shown.stdout
    listed = roadstead("contexts", "-o", "wide", **file, ROADSTEAD_CONTEXT="there").stdout
    assert listed.split() == ["here", app, SCOPE, "*", "there", "https://there.example"]
    printed = roadstead("contexts", "-o", "wide", **file, ROADSTEAD_CONTEXT="context/there").stdout
    assert printed.split() == listed.split()
    assert roadstead("contexts", "-o", "name", **file).stdout.split() == ["context/here", "context/there"]


def test_a_key_in_the_environment_is_not_sent_to_a_context_that_signs_in(
    app: str, az: str, tmp_path: Path, cloud: MemoryCloud
) -> None:
    file = contexts(tmp_path, f'[contexts.here]\nurl = "{app}"\nscope = "{SCOPE}"\nsign-in = "az"\n')
    denied = roadstead("--context", "here", "replay", "one", PATH=az, **file)
    assert (denied.returncode, "approver@example.com has Approver" in denied.stderr) == (1, True)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (
            '[contexts.a]\nurl = "https://[a"\nscope = "x"',
            ["--context", "a"],
            "https://[a is not an address",
        ),
        (
            '[contexts.a]\nurl = "http://a.example"\nscope = "x"',
            ["--context", "a"],
            "does not begin with https://",
        ),
        (
            '[contexts.a]\nurl = "https://a.example"\nkey = "s"',
            ["--context", "a"],
            "context 'a' has key; the fields",
        ),
        ('[contexts.a]\nscope = "x"', ["--context", "a"], "context 'a' needs an `url`"),
        (
            '[contexts.a]\nurl = "https://a.example"\nsign-in = "x"',
            ["--context", "a"],
            "'x' is no way to sign in",
        ),
        (
            '[contexts.a]\nurl = "https://a.example"\nscope = "api://x y"\nsign-in = "az"',
            ["--context", "a"],
            "An invalid scope was provided",
        ),
        (
            '[contexts.a]\nurl = "https://a.example"\nscope = "x"\nsign-in = "az"\ntenant = "a b"',
            ["--context", "a"],
            "Invalid tenant ID provided",
        ),
        ("", ["--context", "b"], "there is no context 'b'"),
        ('current = "a"', [], "only `default` and [contexts.NAME] are known, not current"),
        ("= nonsense", [], "cannot be read"),
    ],
)
def test_a_wrong_context_is_a_usage_error(
    tmp_path: Path, text: str, arguments: list[str], message: str
) -> None:
    shown = roadstead(*arguments, "plans", **contexts(tmp_path, text))
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (2, "", 1), shown.stderr
    assert message in shown.stderr


def test_an_address_and_a_context_are_not_given_together(app: str) -> None:
    shown = roadstead("--context", "a", "plans", "--url", app)
    assert (shown.returncode, f"not both: {app} and a" in shown.stderr) == (2, True)


def test_without_az_the_error_says_what_to_do(app: str) -> None:
    shown = roadstead("plans", ROADSTEAD_URL=app, ROADSTEAD_SCOPE=SCOPE, PATH="/nonexistent", **NO_KEY)
    assert (shown.returncode, shown.stderr.count("\n")) == (1, 1), shown.stderr
    assert f"no token for {SCOPE}: Azure CLI not found on path; run az login" in shown.stderr
