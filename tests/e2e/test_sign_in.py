"""People of the local directory sign in to a running local cloud: on the command line, and with a browser."""

from __future__ import annotations

import re
from html import unescape

import httpx

from localcloud.azure.world.access.directory import ACCOUNTS, API
from localcloud.runtime.guide import guide
from localcloud.runtime.options import Options
from tests.support import fleet_files
from tests.support.local_cloud_start import Start
from tests.support.roadstead_command import roadstead


def test_the_role_of_a_person_decides_on_the_command_line_and_in_the_browser(start: Start) -> None:
    operator = start(Options(create_seconds=1, extra={"POLL_SECONDS": "0.5"}))
    cloud = operator.cloud
    commit = operator.push(fleet_files.fleet("one"))
    operator.wait_for_status(commit, "success")

    def ask(name: str, *arguments: str) -> tuple[int, str]:
        account = next(account.id for account in ACCOUNTS if account.name == name)
        identity = {
            "IDENTITY_ENDPOINT": f"{cloud.urls.identity}/msi/token",
            "IDENTITY_HEADER": cloud.settings["IDENTITY_HEADER"],
            "AZURE_CLIENT_ID": account,
            "ROADSTEAD_SCOPE": f"{API}/.default",
            "ROADSTEAD_KEY": "",
        }
        done = roadstead(*arguments, cwd=None, ROADSTEAD_URL=cloud.urls.functions, **identity)
        return done.returncode, done.stdout + done.stderr

    assert ask("nobody", "status") == (
        1,
        "roadstead: this needs the role Reader; nobody@example.com has no role\n",
    )
    assert ask("reader", "status", "one")[0] == 0
    code, told = ask("reader", "replay", "one")
    assert (code, "this needs the role Operator" in told) == (1, True)
    assert "one has not failed" in ask("operator", "replay", "one", "--reason", "a test")[1]
    told = ask("reader", "audit")[1]
    assert "operator@example.com  replay one" in told
    assert "reason: a test" in told

    url = f"{cloud.urls.github}/repos/{cloud.settings['GITHUB_REPOSITORY']}/commits/{commit}/status"
    token = {"Authorization": f"token {cloud.settings['GITHUB_TOKEN']}"}
    link = httpx.get(url, headers=token, trust_env=False).json()["statuses"][0]["target_url"]
    with httpx.Client(follow_redirects=True, trust_env=False) as browser:
        asked = browser.get(link)
        assert (asked.url.path, "Sign in to the local cloud as" in asked.text) == ("/.auth/login/aad", True)
        back = {"person": "reader", "post_login_redirect_uri": asked.url.params["post_login_redirect_uri"]}
        page = browser.get(f"{cloud.urls.functions}/.auth/login/aad/callback", params=back)
        assert (page.status_code, str(page.url)) == (200, link)
        assert f"Plan of <code>{commit[:8]}</code>" in page.text
        guided = next(
            word for word in guide(cloud, cloud.state).split() if word == f"{cloud.urls.functions}/"
        )
        for begin in (guided, f"{cloud.urls.functions}/.auth/login/aad"):
            browser.cookies.clear()
            own = next(
                document
                for document in re.findall(r'href="([^"]+)"', browser.get(begin).text)
                if "reader" in document
            )
            assert browser.get(f"{cloud.urls.functions}{unescape(own)}").status_code == 200, begin
        assert browser.get(f"{cloud.urls.functions}/.auth/logout").status_code == 200
