"""A person registers the GitHub App of a fleet in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.set_up_fleet import FLEET, REPOSITORY, set_up_fleet

PAGE = r"http://127\.0\.0\.1:\d+/\S+"


@pytest.mark.long
def test_a_person_registers_and_installs_the_app(browser: Browser, tmp_path: Path) -> None:
    with set_up_fleet(tmp_path) as fleet:
        run, page = fleet.run("setup", "github", FLEET, "--no-browser"), browser.new_page()
        page.goto(run.address(PAGE))
        assert "Register the GitHub App of your fleet" in page.inner_text("body")
        page.locator("button", has_text="example is an organization").click()
        page.wait_for_load_state()
        assert "contents: read" in page.inner_text("body")
        page.locator("[name=name]").fill("our-fleet")
        page.locator("button", has_text="Create GitHub App for example").click()
        page.wait_for_url("**/apps/our-fleet/installations/new")
        page.locator("button", has_text=REPOSITORY).click()
        expect(page.locator("body")).to_contain_text("was installed on example/fleet")
        page.close()
        assert run.end() == 0, run.err
        assert fleet.azure()["tags"]["github-app-id"]["github-app"] == "our-fleet"
