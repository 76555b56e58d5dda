"""What a flood of signed pushes costs: ``python -m bench.flood [PUSHES] [SECONDS]``.

Runs the local cloud with its real protocols, plans a small fleet, and delivers pushes with a valid signature,
each of another commit, at equal distances. In the middle a real push changes a cluster. The figures are the
calls to GitHub and the runs of the planner from the first push on, and after how many seconds the real one
was planned.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.fleet import cluster_file, generate
from cli.fleet_api.client import Api
from localcloud.demo.checkout import Checkout
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import Options

CLUSTERS = 2
SENDERS = 8
QUIET_SECONDS = 55.0
"""How long after the last push the branch may be read because of it."""


@dataclass(frozen=True)
class Flood:
    """The figures; ``answers`` counts the statuses of the webhook's answers."""

    answers: Mapping[int, int]
    slowest_answer: float
    calls: Mapping[str, int]
    planner_runs: int
    planned_seconds: float

    def __str__(self) -> str:
        reads = self.calls.get("git/ref", 0)
        return (
            f"webhook: {dict(self.answers)}, the slowest answer took {self.slowest_answer:.2f} s\n"
            f"planner: {self.planner_runs} runs\n"
            f"GitHub: {sum(self.calls.values())} calls, {reads} reads of the branch: {dict(self.calls)}\n"
            f"the real push was planned after {self.planned_seconds:.1f} s"
        )


def flood(cloud: LocalCloud, folder: Path, pushes: int, seconds: float) -> Flood:
    """Flood a running cloud, and return what it costs."""
    files, checkout, api = (
        generate(CLUSTERS),
        Checkout(cloud.remote, folder),
        Api(cloud.urls.functions, cloud.settings["API_KEY_ADMIN"]),
    )
    checkout.replace_all(files)
    _planned(api, checkout.push("the fleet"), time.monotonic())
    calls, runs = len(cloud.requests("github")), _planner_runs(cloud)
    answers: list[Future[tuple[int, float]]] = []
    begun = time.monotonic()
    with ThreadPoolExecutor(SENDERS + 1) as pool:
        for number in range(pushes):
            answers.append(pool.submit(_deliver, cloud, f"{number:040x}"))
            if number == pushes // 2:
                path, text = cluster_file(0, count=4)
                checkout.replace_all({**files, path: text.encode()})
                real = pool.submit(_planned, api, checkout.push("a real push"), time.monotonic())
            time.sleep(max(0.0, begun + (number + 1) * seconds / pushes - time.monotonic()))
    time.sleep(QUIET_SECONDS)
    api.close()
    results = [answer.result() for answer in answers]
    return Flood(
        Counter(status for status, _ in results),
        max(taken for _, taken in results),
        Counter(
            _kind(call["path"]) for call in cloud.requests("github")[calls:] if "/repos/" in call["path"]
        ),
        _planner_runs(cloud) - runs,
        real.result(),
    )


def _deliver(cloud: LocalCloud, commit: str) -> tuple[int, float]:
    """Deliver a push as GitHub would; return the status and the seconds of the answer."""
    repository = {"full_name": cloud.settings["GITHUB_REPOSITORY"], "pushed_at": int(time.time())}
    body = json.dumps({"ref": "refs/heads/main", "after": commit, "repository": repository}).encode()
    secret = cloud.settings["GITHUB_WEBHOOK_SECRET"].encode()
    headers = {
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest(),
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": commit,
    }
    begun, url = time.monotonic(), f"{cloud.urls.functions}/api/github"
    answer = httpx.post(url, content=body, headers=headers, trust_env=False, timeout=60)
    return answer.status_code, time.monotonic() - begun


def _planned(api: Api, commit: str, since: float) -> float:
    """Wait until a commit was planned; return after how many seconds."""
    while api.get("clusters")["commit"] != commit:
        time.sleep(0.2)
    return time.monotonic() - since


def _planner_runs(cloud: LocalCloud) -> int:
    return (cloud.state / "logs" / "functions.log").read_text().count("Executed 'Functions.planner'")


def _kind(path: str) -> str:
    """Return what a call of GitHub's API is about: "git/ref", "statuses" ..."""
    parts = path.split("/")[4:] or ["the repository itself"]
    return "/".join(parts[:2]) if parts[0] == "git" else parts[0]


def main(pushes: int, seconds: float) -> None:
    """Print the figures of a flood on a cloud of its own."""
    with tempfile.TemporaryDirectory() as folder:
        options = Options(create_seconds=2, plan_schedule="0 0 0 1 1 *")
        with LocalCloud(Path(folder, "cloud"), options) as cloud:
            print(f"{pushes} signed pushes in {seconds:g} s")
            print(flood(cloud, Path(folder, "clone"), pushes, seconds))


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["1000"])[0]), float((sys.argv[2:] or ["60"])[0]))
