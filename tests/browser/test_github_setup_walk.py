"""An Admin registers the GitHub App of a fleet on the page of its app, in a real browser."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import API
from localcloud.common.certificates import Authority
from localcloud.functions.easy_auth import AuthSettings
from shared.app.console.github_setup import CREATED, HOME
from shared.github_app import INSTALLATION, KEY, WEBHOOK
from tests.support.browsers import Tab, tab
from tests.support.registering import Registering, registering
from tests.support.served_api import served


def free_port() -> int:
    """Return a port at which nobody serves: the page has to know its own address."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def walk(opened: Tab, fleet: Registering) -> None:
    """Register, store, install and store again, as the page says."""
    page = opened.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Register the GitHub App of the fleet")
    assert opened.findings() == []
    page.get_by_role("checkbox", name=re.compile("proposals")).check()
    page.get_by_role("button", name="Change what it may do").click()
    expect(page.get_by_role("checkbox", name=re.compile("proposals"))).to_be_checked()
    page.get_by_role("button", name="is an organization").click()
    expect(page.locator("body")).to_contain_text("contents: write")
    page.locator("[name=name]").fill("our-fleet")
    page.get_by_role("button", name="Create GitHub App for").click()
    page.wait_for_url(f"**{CREATED}?*")
    assert fleet.secret(KEY) == "", "GitHub's answer alone does nothing"
    page.get_by_role("button", name="Store them").click()
    expect(page.get_by_role("status")).to_contain_text("The vault has the key of our-fleet")
    assert opened.address == HOME
    assert fleet.secret(WEBHOOK) == fleet.github.hooks.secret
    page.get_by_role("link", name="install it on").click()
    page.get_by_role("button", name=fleet.repository).click()
    expect(page.locator("body")).to_contain_text("was installed on")
    opened.open(HOME)
    page.get_by_role("button", name="It is installed").click()
    expect(page.get_by_role("status")).to_contain_text("The App is installed")
    assert fleet.secret(INSTALLATION)
    opened.open("/")
    page.locator("summary").click()
    page.get_by_role("link", name="Set up the GitHub App").click()
    expect(page.locator("main")).to_contain_text("Then push a commit.")
    assert opened.findings() == []
    assert opened.errors == []


@pytest.mark.parametrize("how", ["key", "entra"])
def test_an_admin_registers_and_installs_the_app_on_a_page(
    browser: Browser, identity: IdentityServer, tmp_path: Path, how: str
) -> None:
    """The browser comes back from another site, and sends no cookie of ours with that request."""
    port, auth = free_port(), AuthSettings(identity.authority, (API,)) if how == "entra" else None
    with (
        registering(tmp_path, f"https://127.0.0.1:{port}") as fleet,
        served(fleet.ports, auth, setup=fleet.setup, port=port, tls=Authority().server_context()) as url,
        tab(browser, url, own_certificate=True) as opened,
    ):
        opened.open(HOME)
        if auth:
            opened.page.get_by_role("link", name=re.compile("admin")).click()
        else:
            opened.sign_in("Admin")
        walk(opened, fleet)
