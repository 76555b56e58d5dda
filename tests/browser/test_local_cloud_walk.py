"""People with a browser on a running local cloud: its own host, sign-in, queues and Azure, over sockets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.browsers import Tab, tab
from tests.support.fleet_operator import Operator
from tests.support.staged_fleets import APPROVED_STAGES
from tests.support.warm_processes import spawn

CLUSTERS = {"dev": "development", "shop": "production", "old": "production"}
SECONDS = 30_000
"""Milliseconds in which what a person waits for has to show."""
FIVE_SECONDS = 5_000
"""After so many milliseconds an open page is read again."""


def fleet(*names: str, release: str = "r1") -> dict[str, bytes]:
    """Return a fleet whose changes need an approval in production, and each of whose deletes does."""
    files = fleet_files.fleet(*names, budget=0)
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"spec:\n", b"spec:\n" + APPROVED_STAGES.encode(), 1)
    for name in names:
        own = (
            f"  environment: {CLUSTERS[name]}\n  deletionProtection: false\n  tags: {{release: {release}}}\n"
        )
        files[f"clusters/{name}/cluster.yaml"] = fleet_files.cluster(name, extra=own)
    return files


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    """Return the operator of a local cloud that runs."""
    options = Options(create_seconds=2, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
    with LocalCloud(tmp_path / "cloud", options, spawn=spawn) as cloud:
        found = Operator(cloud, tmp_path / "clone")
        yield found
        found.close()
        cloud.kill_functions()


@contextmanager
def signed_in(
    browser: Browser, operator: Operator, person: str, address: str = "/", *, script: bool = True
) -> Iterator[Tab]:
    """Open a page as one of the people of the local directory, who is led back to it."""
    with tab(browser, operator.cloud.urls.functions, script=script) as opened:
        opened.page.set_default_timeout(SECONDS)
        opened.page.clock.install()
        opened.open(address)
        opened.page.get_by_role("link", name=re.compile(person)).click()
        assert opened.address == address, "the sign-in leads back to the page"
        assert f"{person}@example.com" in opened.text
        yield opened
        assert opened.elsewhere == []


def follows(opened: Tab, shown: Locator, operator: Operator) -> None:
    """Wait until the page that is open shows something; nobody opens it again.

    Its clock runs ahead, so that it asks the app as soon as it would in five seconds.
    """

    def shows() -> bool:
        opened.page.clock.fast_forward(FIVE_SECONDS)
        return shown.is_visible()

    operator.wait(shows, str(shown), seconds=SECONDS / 1000)


def heading(opened: Tab, text: str) -> Locator:
    """Return the heading of the page that is open, as it has to say something."""
    return opened.page.get_by_role("heading", level=1).filter(has_text=text)


def opened_again(opened: Tab, text: str, operator: Operator) -> None:
    """Wait until a page says something, as somebody without JavaScript does: by opening it again."""

    def says() -> bool:
        opened.page.reload()
        return text in opened.text

    operator.wait(says, text, seconds=SECONDS / 1000)


def test_people_follow_a_creation_a_rollout_and_a_delete_on_the_local_cloud(
    browser: Browser, operator: Operator
) -> None:
    first = operator.push(fleet(*CLUSTERS))
    operator.wait(lambda: bool(operator.phases()), "the commit is planned")
    with signed_in(browser, operator, "reader", "/clusters/shop") as reader:
        follows(reader, heading(reader, "shop Ready"), operator)
        assert "Replay: needs the role Operator" in reader.text
    operator.wait_for_status(first, "success")

    second = operator.push(fleet("dev", "shop", release="r2"))
    plan, rollout = f"/plans/{second}", f"/rollouts/{second}"
    operator.wait(lambda: "shop" in str(operator.plan(second)), "the second commit is planned")
    with (
        signed_in(browser, operator, "operator", rollout) as acting,
        signed_in(browser, operator, "approver", plan, script=False) as approving,
    ):
        acting.act("Pause", "lunch")
        expect(acting.page.get_by_role("status")).to_contain_text("Accepted: rollout pause")
        opened_again(approving, "1 needs an approval old", operator)
        approving.page.get_by_label("Reason").fill("nobody uses it")
        approving.page.get_by_role("button", name="Approve all of these").click()
        assert "Accepted: approve" in approving.text
        follows(acting, acting.page.locator("main").filter(has_text="lunch"), operator)
        assert "Approve production: needs the role Approver" in acting.text
        acting.act("Resume")
        follows(acting, acting.page.locator("summary", has_text="Pause"), operator)
        approving.open(rollout)
        approving.act("Approve production", "development is well")
        assert "Accepted: rollout approve" in approving.text
        opened_again(approving, "Completed", operator)
    with signed_in(browser, operator, "admin", "/clusters/old") as deleting:
        follows(deleting, heading(deleting, "old Deleted"), operator)
        deleting.open("/activity")
        assert "nobody uses it" in deleting.text
    operator.wait_for_status(second, "success")
