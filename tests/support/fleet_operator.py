"""An operator of a local cloud, over its real wire protocols."""

from __future__ import annotations

import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from cli.errors import NotFound
from cli.fleet_api.client import Api
from localcloud.common.plain_http import NO_TLS
from localcloud.demo.checkout import Checkout
from localcloud.runtime.local_cloud import LocalCloud


class Operator:
    """Pushes fleets to a cloud and reads the API; close after use."""

    def __init__(self, cloud: LocalCloud, folder: Path) -> None:
        self.cloud = cloud
        self.api = Api(cloud.urls.functions, cloud.settings["API_KEY_ADMIN"])
        self.github = httpx.Client(
            base_url=cloud.urls.github,
            headers={"Authorization": f"token {cloud.settings['GITHUB_TOKEN']}"},
            trust_env=False,
            verify=NO_TLS,
        )
        self.checkout = Checkout(cloud.remote, folder)

    def push(self, files: Mapping[str, bytes], message: str = "a change") -> str:
        """Make the repository contain exactly these files; return the commit."""
        self.checkout.replace_all(files)
        return self.checkout.push(message)

    @property
    def repository(self) -> str:
        """The path of the repository at GitHub."""
        return f"/repos/{self.cloud.settings['GITHUB_REPOSITORY']}"

    def phases(self) -> dict[str, str]:
        """Return each cluster's phase."""
        return {view["name"]: view["phase"] for view in self.api.get("clusters")["clusters"]}

    def status(self, commit: str) -> str:
        """Return the commit status as "state: description", "" when there is none."""
        statuses = self.github.get(f"{self.repository}/commits/{commit}/status").json()["statuses"]
        return f"{statuses[0]['state']}: {statuses[0]['description']}" if statuses else ""

    def wait_for_status(self, commit: str, state: str, *, seconds: float = 150) -> str:
        """Wait until the commit status has a state; return the status."""
        self.wait(lambda: self.status(commit).startswith(state), f"{commit[:8]} is {state}", seconds=seconds)
        return self.status(commit)

    def wait(self, holds: Callable[[], bool], what: str, *, seconds: float = 120, every: float = 0.5) -> None:
        """Wait until a condition holds, or fail with the state of the fleet.

        Most conditions ask the API, which takes a tenth of a processor when asked ten times as often.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.cloud.check()
            if holds():
                return
            time.sleep(every)
        raise AssertionError(f"not within {seconds:.0f} s: {what}; the fleet: {self.api.get('clusters')}")

    def plan(self, commit: str) -> dict[str, Any] | None:
        """Return the plan of a commit, None while there is none."""
        try:
            return self.api.get(f"plans/{commit}")
        except NotFound:
            return None

    def accepted(self) -> Counter[tuple[str, str]]:
        """Count the writes that ARM accepted, by kind and resource name; the app's own tags are none."""
        writes = (r for r in self.cloud.requests("arm") if r.get("accepted", "update-tags") != "update-tags")
        return Counter((r["accepted"], str(r["resource"]).rsplit("/", 1)[-1]) for r in writes)

    def faults(self, url: str, rules: list[dict[str, Any]]) -> None:
        """Set the fault script of a service."""
        trust = ssl.create_default_context(cafile=str(self.cloud.state / "ca.pem"))
        httpx.put(f"{url}/_local/faults", json=rules, verify=trust, trust_env=False).raise_for_status()

    def close(self) -> None:
        """Close the connections."""
        self.api.close()
        self.github.close()
