"""A person with a real browser on the pages of the console."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from localcloud.azure.wire.identity_server import IdentityServer
from localcloud.azure.world.access.directory import API
from localcloud.functions.easy_auth import AuthSettings
from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.console.recent import SECONDS
from shared.cluster.record_parts import Phase
from tests.support import fleet_files
from tests.support.browsers import Tab, tab
from tests.support.console_fleet import busy_fleet
from tests.support.hostile_texts import ATTACK, attack_pages
from tests.support.pipeline_runs import phases, push
from tests.support.served_api import served
from tests.support.staged_fleets import rollout_of

LONG = "W" * 300 + " " + "\u0645\u0631" * 60
"""A text without a place to break, and one from right to left."""
FIVE_SECONDS, MINUTE = 5_000, 60_000
"""After so many milliseconds a page is read again, and as many as a minute has."""
ANSWERED = "answered"
SAYS_SO = f"document.addEventListener('htmx:afterRequest', () => console.log('{ANSWERED}'))"
AWAY = "Object.defineProperty(document, 'hidden', {get: () => window.away === true})"
"""A browser without a window shows each tab, so a page hears from here that it is hidden."""


def pages_of(cloud: MemoryCloud) -> list[str]:
    """Return the address of a page of each kind, and of some that are not there."""
    commit = cloud.state.fleet().commit
    failed = next(name for name, phase in phases(cloud).items() if phase is Phase.FAILED)
    return [
        "/",
        "/clusters",
        "/clusters?phase=Failed&columns=nodes,class,subscription,compared,reason",
        f"/clusters/{failed}",
        "/clusters/shop-eus-1",
        "/clusters/nothing",
        "/plans",
        f"/plans/{commit}",
        "/rollouts",
        "/pulls/1",
        f"/rollouts/{commit}",
        "/versions?environment=production&to=1.37",
        "/systems",
        "/costs",
        "/requests",
        "/activity",
        "/nowhere",
    ]


def stand_still(page: Page) -> None:
    """Let the time of a page pass only as a walk says, however busy the machine is."""
    page.clock.pause_at(page.evaluate("Date.now() / 1000") + 1)


def read_by(page: Page, move: Callable[[int], None], milliseconds: int) -> int:
    """Move the time of a page that stands still; return the status of the one answer that it then gets."""
    with (
        page.expect_console_message(lambda said: said.text == ANSWERED),
        page.expect_response(page.url) as answer,
    ):
        move(milliseconds)
    page.clock.run_for(100)  # htmx shows it after some milliseconds
    return answer.value.status


def assert_quiet(opened: Tab) -> None:
    """Check that nothing failed or was against the policy, and that nothing was asked of another origin."""
    assert [text for text in opened.errors if "404" not in text and "400" not in text] == []
    assert opened.elsewhere == []


@pytest.mark.always
def test_no_page_fails_asks_elsewhere_or_keeps_anybody_from_using_it(
    browser: Browser, fleet: MemoryCloud
) -> None:
    with served(fleet.ports) as url, tab(browser, url) as opened:
        opened.open("/")
        assert opened.findings() == [], "the sign-in"
        opened.sign_in("Admin")
        for address in pages_of(fleet):
            opened.open(address)
            opened.page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
            assert opened.findings() == []
            opened.page.emulate_media(color_scheme="dark")
            assert opened.findings() == [], "dark"
            opened.page.emulate_media(color_scheme="light")
        assert_quiet(opened)


@pytest.mark.parametrize("width", [320, 2560])
def test_no_page_is_wider_than_the_window(browser: Browser, fleet: MemoryCloud, width: int) -> None:
    with served(fleet.ports) as url, tab(browser, url, width=width) as opened:
        opened.open("/")
        opened.sign_in("Admin")
        for address in pages_of(fleet):
            opened.open(address)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, address


@pytest.mark.parametrize("width", [320, 1280])
def test_no_text_of_the_fleet_makes_a_page_wider_than_the_window(
    browser: Browser, fleet: MemoryCloud, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack_pages(monkeypatch, ATTACK + LONG)
    with served(fleet.ports) as url, tab(browser, url, width=width) as opened:
        opened.open("/")
        opened.sign_in("Admin")
        for address in pages_of(fleet):
            opened.open(address)
            assert opened.page.evaluate("document.documentElement.scrollWidth") <= width, address
        assert_quiet(opened)


@pytest.mark.always
def test_an_approver_releases_a_delete_and_an_operator_pauses_and_resumes_a_rollout(browser: Browser) -> None:
    cloud = busy_fleet(1)
    commit = cloud.state.fleet().commit
    with served(cloud.ports) as url:
        with tab(browser, url) as opened:
            opened.open(f"/plans/{commit}")
            opened.sign_in("Approver")
            assert opened.address == f"/plans/{commit}", "it leads back"
            opened.page.get_by_label("Reason").fill("they have moved")
            opened.page.get_by_role("button", name="Approve all of these").click()
            expect(opened.page.get_by_role("status")).to_contain_text("Accepted: approve")
            cloud.run(900)
            assert not {"shop-neu-1", "shop-sea-1"} & {*phases(cloud)}
            assert_quiet(opened)
        with tab(browser, url) as opened:
            opened.open(f"/rollouts/{commit}")
            opened.sign_in("Operator")
            opened.act("Pause", "lunch")
            expect(opened.page.get_by_role("status")).to_contain_text("Accepted: rollout pause")
            cloud.run(60)
            opened.open(f"/rollouts/{commit}")
            assert rollout_of(cloud, commit).people.paused is not None
            assert "lunch" in opened.text
            opened.act("Resume")
            cloud.run(60)
            assert rollout_of(cloud, commit).people.paused is None
            assert_quiet(opened)


@pytest.mark.always
def test_a_page_follows_a_change_and_costs_nothing_while_nothing_changes(browser: Browser) -> None:
    cloud = MemoryCloud()
    push(cloud, fleet_files.fleet("one"))
    cloud.run(until=lambda: phases(cloud) == {"one": Phase.PROVISIONING})
    with served(cloud.ports) as url, tab(browser, url) as opened:
        opened.page.add_init_script(SAYS_SO)
        opened.page.clock.install()
        opened.open("/clusters/one")
        opened.sign_in("Reader")
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Provisioning")
        stand_still(opened.page)

        def read_again() -> int:
            return read_by(opened.page, opened.page.clock.fast_forward, FIVE_SECONDS)

        cloud.run()
        assert read_again() == 200
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Ready")
        assert [read_again(), read_again()] == [304, 304]
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Ready")
        files = fleet_files.fleet("one")
        files["clusters/one/cluster.yaml"] = fleet_files.cluster("one", count=2)
        push(cloud, files)
        cloud.run(until=lambda: phases(cloud) == {"one": Phase.UPDATING})
        cloud.clock.advance(SECONDS)
        assert read_again() == 200
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Updating")
        cloud.run()
        assert read_again() == 200
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Ready")
        assert_quiet(opened)
        opened.page.context.clear_cookies()
        assert read_again() == 401
        expect(opened.page.get_by_role("alert")).to_contain_text("Your session has ended")
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("one Ready")


def test_a_page_is_read_once_in_five_seconds_and_only_while_somebody_looks(
    browser: Browser, fleet: MemoryCloud
) -> None:
    with served(fleet.ports) as url, tab(browser, url) as opened:
        page, asked = opened.page, list[str]()
        page.add_init_script(f"{AWAY}; {SAYS_SO}")
        page.clock.install()
        opened.open("/clusters/shop-eus-1")
        opened.sign_in("Operator")
        stand_still(page)
        page.on("request", lambda request: asked.append(request.url))

        def hides(away: bool) -> None:
            page.evaluate(
                f"away = {str(away).lower()}; document.dispatchEvent(new Event('visibilitychange'))"
            )

        def is_read_within(milliseconds: int) -> int:
            return read_by(page, page.clock.run_for, milliseconds)

        assert [is_read_within(FIVE_SECONDS) for _ in range(5)][1:] == [304, 304, 304, 304]
        assert len(asked) == 5
        hides(True)
        page.clock.run_for(10 * MINUTE)
        expect(page.locator("#read")).to_contain_text(re.compile(r"Read 10 min ago\.$"))
        assert len(asked) == 5, "hidden"
        hides(False)
        assert is_read_within(1_000) == 304
        assert read_by(page, page.clock.fast_forward, 14 * MINUTE) == 304
        page.clock.fast_forward(2 * MINUTE)
        page.clock.run_for(10 * MINUTE)
        expect(page.locator("#read")).to_contain_text(
            "Read 12 min ago. Not read again until somebody is here"
        )
        assert len(asked) == 7, "idle"
        page.mouse.move(40, 40)
        assert is_read_within(1_000) == 304
        page.locator("details.act summary").first.click()
        page.clock.run_for(MINUTE)
        expect(page.locator("#read")).to_contain_text("Read 60 s ago. Not read again while a form is open")
        assert len(asked) == 8
        page.route("**/clusters/shop-eus-1", lambda route: route.abort())
        page.locator("details.act summary").first.click()
        page.clock.run_for(1_000)
        expect(page.get_by_role("alert")).to_contain_text("The app does not answer: what you see is from")
        page.unroute_all()
        assert is_read_within(FIVE_SECONDS) == 304
        expect(page.get_by_role("alert")).to_be_hidden()


def test_the_keyboard_alone_finds_a_failed_cluster_and_starts_its_job_again(browser: Browser) -> None:
    cloud = busy_fleet(1)
    with served(cloud.ports) as url, tab(browser, url) as opened:
        opened.open("/")
        opened.sign_in("Operator")
        press = opened.page.keyboard.press
        press("?")
        expect(opened.page.get_by_role("dialog")).to_be_visible()
        press("Escape")
        press("/")
        opened.page.keyboard.type("shop-weu")
        press("Enter")
        opened.page.wait_for_url("**/clusters?text=shop-weu")
        press("j")
        press("Enter")
        opened.page.wait_for_url("**/clusters/shop-weu-1")
        expect(opened.page.get_by_role("heading", level=1)).to_have_text("shop-weu-1 Failed")
        for _ in range(30):
            press("Tab")
            if opened.page.evaluate("document.activeElement.innerText").startswith("Replay"):
                break
        press("Enter")
        press("Tab")
        opened.page.keyboard.type("the quota is raised")
        press("Enter")
        expect(opened.page.get_by_role("status")).to_contain_text("Accepted: replay")
        cloud.run(900)
        assert phases(cloud)["shop-weu-1"] is Phase.READY
        assert_quiet(opened)


@pytest.mark.always
def test_all_works_without_javascript(browser: Browser) -> None:
    cloud = busy_fleet(1)
    with served(cloud.ports) as url, tab(browser, url, script=False) as opened:
        opened.open("/clusters/shop-weu-1")
        opened.sign_in("Operator")
        for address in pages_of(cloud):
            opened.open(address)
            assert opened.page.locator("main h1").count() == 1, address
        opened.open("/clusters")
        opened.page.get_by_label("Phase").select_option("Failed")
        opened.page.get_by_role("button", name="Filter").click()
        assert "1 of 8 clusters" in opened.text
        opened.page.get_by_label("Select shop-weu-1").check()
        opened.page.get_by_role("button", name="Compare with Azure").click()
        assert "Accepted: refresh" in opened.text
        opened.page.get_by_label("Select shop-weu-1").check()
        opened.page.get_by_role("button", name="Replay", exact=True).click()
        assert "Accepted: replay of 1 of 1 clusters" in opened.text
        opened.page.locator("details.who summary").click()
        opened.page.get_by_role("button", name="Sign out").click()
        assert opened.address == "/sign-in"
        opened.open("/clusters")
        assert opened.address.startswith("/sign-in?next=")


def test_a_page_says_that_its_session_has_ended_an_hour_after_the_sign_in(
    browser: Browser, fleet: MemoryCloud, identity: IdentityServer
) -> None:
    passed = [0.0]
    with (
        served(fleet.ports, AuthSettings(identity.authority, (API,)), lambda: passed[0]) as url,
        tab(browser, url) as opened,
    ):
        opened.page.clock.install()
        opened.open("/clusters/shop-weu-1")
        opened.page.get_by_role("link", name=re.compile("reader")).click()
        heading = opened.page.get_by_role("heading", level=1)
        for seconds, status in ((3599.0, (200, 304)), (3600.0, (401,))):
            passed[0] = seconds
            with opened.page.expect_response("**/clusters/shop-weu-1") as answer:
                opened.page.clock.fast_forward(FIVE_SECONDS)
            assert answer.value.status in status, seconds
        expect(opened.page.get_by_role("alert")).to_contain_text("Your session has ended")
        expect(heading).to_have_text("shop-weu-1 Failed")
        opened.page.get_by_role("link", name="Open the page again").click()
        opened.page.get_by_role("link", name=re.compile("operator")).click()
        assert opened.address == "/clusters/shop-weu-1"
        expect(opened.page.get_by_role("alert")).to_be_hidden()


MAY = {
    "reader": set[str](),
    "operator": {"Pause", "Retry"},
    "approver": {"Approve everywhere", "Skip"},
    "admin": {"Pause", "Retry", "Approve everywhere", "Skip"},
}


@pytest.mark.always
def test_each_role_signs_in_and_has_the_buttons_of_what_it_may_do(
    browser: Browser, fleet: MemoryCloud, identity: IdentityServer
) -> None:
    commit = fleet.state.fleet().commit
    with served(fleet.ports, AuthSettings(identity.authority, (API,))) as url:
        for role, may in MAY.items():
            with tab(browser, url) as opened:
                opened.open(f"/rollouts/{commit}")
                opened.page.get_by_role("link", name=re.compile(role)).click()
                assert opened.address == f"/rollouts/{commit}"
                labels = opened.page.locator("details.act summary").all_inner_texts()
                shown = {label.removesuffix(" …") for label in labels}
                assert shown & MAY["admin"] == may, role
                assert f"{role}@example.com" in opened.text
                assert_quiet(opened)
        with tab(browser, url) as opened:
            opened.open("/")
            opened.page.get_by_role("link", name="nobody").click()
            assert "nobody@example.com has no role" in opened.text
