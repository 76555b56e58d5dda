"""A real browser on the pages of the console, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from shared.frozen import dataclass, field
from tests.support.chromium import axe, chromium

Theme = Literal["light", "dark"]
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
"""The rules of axe: WCAG 2.2 AA (deque.com, "axe API", tags), and what its authors advise."""
SECONDS = 10


@contextmanager
def started() -> Iterator[Browser]:
    """Yield a browser; raise ToolError where there can be none."""
    installed = chromium()
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox; the pages are those of the app alone.
        browser = playwright.chromium.launch(
            executable_path=installed.program, env={**installed.environment}, chromium_sandbox=False
        )
        yield browser
        browser.close()


@dataclass(frozen=True)
class Tab:
    """A tab of a browser, with what the console of the developer tools has and what was asked elsewhere."""

    page: Page
    url: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, address: str) -> None:
        """Open a page of the console."""
        self.page.goto(f"{self.url}{address}")

    @property
    def address(self) -> str:
        """The page that is open, without the origin."""
        return self.page.url.removeprefix(self.url)

    @property
    def text(self) -> str:
        """What a person reads, with single spaces."""
        return " ".join(self.page.inner_text("body").split())

    def sign_in(self, role: str) -> None:
        """Sign in with the key of a role, on the form that is open."""
        self.page.get_by_label("Key", exact=True).fill(f"local-key-of-an-{role.lower()}")
        with self.page.expect_navigation():
            self.page.get_by_role("button", name="Sign in").click()

    def act(self, label: str, reason: str = "") -> None:
        """Open the form of an act, give the reason, and send it."""
        button = self.page.get_by_role("button", name=label, exact=True, include_hidden=True)
        form = self.page.locator("details.act").filter(has=button).first
        form.locator("summary").click()
        if reason:
            form.get_by_label("Reason").fill(reason)
        with self.page.expect_navigation():
            form.get_by_role("button", name=label, exact=True).click()

    def findings(self) -> list[str]:
        """Return what axe finds on the open page: where, and what is wrong."""
        if self.page.evaluate("typeof axe") == "undefined":
            self.page.evaluate(axe())
        only = {"type": "tag", "values": RULES}
        said: dict[str, Any] = self.page.evaluate(
            "only => axe.run(document, {runOnly: only, resultTypes: ['violations']})", only
        )
        return [
            f"{self.address}: {found['id']}: {node['html'][:200]}: {node['failureSummary']}"
            for found in said["violations"]
            for node in found["nodes"]
        ]


@contextmanager
def tab(
    browser: Browser,
    url: str,
    *,
    theme: Theme = "light",
    script: bool = True,
    width: int = 1280,
    height: int = 900,
    own_certificate: bool = False,
) -> Iterator[Tab]:
    """Yield a tab without any cookie; ``script``: whether the browser runs JavaScript.

    ``own_certificate``: the app has one of an authority that the browser does not know.
    """
    context: BrowserContext = browser.new_context(
        color_scheme=theme,
        java_script_enabled=script,
        viewport={"width": width, "height": height},
        locale="en-GB",
        timezone_id="Europe/Amsterdam",
        ignore_https_errors=own_certificate,
    )
    context.set_default_timeout(SECONDS * 1000)
    opened = Tab(context.new_page(), url)
    opened.page.on("console", lambda said: opened.errors.append(said.text) if said.type == "error" else None)
    opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
    opened.page.on(
        "request",
        lambda request: None if request.url.startswith(f"{url}/") else opened.elsewhere.append(request.url),
    )
    yield opened
    context.close()
