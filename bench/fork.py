"""How long a push waits next to a hostile pull request: ``python -m bench.fork [FILES] [ITEMS]``.

Starts a local cloud, opens a pull request from a fork with some files of thousands of list items with an
error each, and at once pushes an honest change to the tracked branch. Everything goes over the real wire
protocols. Then measures, in this process, the processor time of such a file and of a chain of 2,000 classes.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import httpx

from bench.fleet import generate
from localcloud.demo.checkout import Checkout
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT, Options
from shared.language.resolve.repository_layout import Files, blob_id
from shared.language.resolve.resolver import resolve

HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: {}\nmetadata:\n  name: {}\nspec:\n"
LONGEST = 900.0
"""Seconds to wait for a commit status."""
CHAIN = 2_000
FLEET_NAME, COMPONENTS = "bench", "flux/gotk-components.yaml"
OPTIONS = Options(create_seconds=1, extra={"ROADSTEAD_FLEET": FLEET_NAME})


def hostile(name: str, items: int) -> bytes:
    """Return a manifest with a list of items that lack every field but a name: one error for each."""
    pools = "".join(f"  - name: a{number:06}\n" for number in range(items))
    chosen = "  class: class-0\n  environment: dev\n  location: westeurope\n"
    return (HEAD.format("Cluster", name) + chosen + "  nodePools:\n" + pools).encode()


def chain(classes: int) -> dict[str, bytes]:
    """Return classes of which each inherits from the next, and a cluster of the first."""
    names = [f"c{number:05}" for number in range(classes)]
    files = {
        f"classes/{name}.yaml": (HEAD.format("ClusterClass", name) + f"  class: {parent}\n").encode()
        for name, parent in pairwise(names)
    }
    last = HEAD.format("ClusterClass", names[-1]).replace("spec:", "spec: {}").encode()
    cluster = (HEAD.format("Cluster", "one") + f"  class: {names[0]}\n").encode()
    return {**files, f"classes/{names[-1]}.yaml": last, "clusters/one/cluster.yaml": cluster}


def processor_seconds(files: Mapping[str, bytes]) -> float:
    """Return the processor time in which a fleet is resolved."""
    layout = Files({path: blob_id(content) for path, content in files.items()})
    begun = time.process_time()
    resolve(FLEET_NAME, layout, files)
    return time.process_time() - begun


def seconds_to_plan(files: int, items: int) -> tuple[float, float, float]:
    """Return after how many seconds a push had a status, and the pull request next to it a result.

    The third figure is of a push with the same hostile files and an honest change.
    """
    with tempfile.TemporaryDirectory() as folder, LocalCloud(Path(folder) / "cloud", OPTIONS) as cloud:
        checkout = Checkout(cloud.remote, Path(folder) / "clone")
        fork = Checkout(cloud.remote, Path(folder) / "fork", branch="fork")
        components = {COMPONENTS: (ROOT / "examples" / "fleet" / COMPONENTS).read_bytes()}
        fleet = generate(3) | components
        checkout.replace_all(fleet)
        seconds_until_status(cloud, checkout.push("a fleet"), "roadstead", time.monotonic())
        wrong = {f"clusters/x{n}/cluster.yaml": hostile(f"x{n}", items) for n in range(files)}
        fork.replace_all(fleet | wrong)
        proposed = fork.push("hostile")
        begun = time.monotonic()
        _github(cloud, "POST", "/pulls", {"head": "fork", "base": "main", "title": "x", "fork": True})
        checkout.replace_all(generate(4) | components)
        honest = seconds_until_status(cloud, checkout.push("an honest change"), "roadstead", begun)
        reported = seconds_until_status(cloud, proposed, "roadstead/plan", begun)
        checkout.replace_all(generate(5) | components | wrong)
        begun = time.monotonic()
        merged = checkout.push("the hostile files and another honest change")
        return honest, reported, seconds_until_status(cloud, merged, "roadstead", begun, failing=True)


def seconds_until_status(
    cloud: LocalCloud, commit: str, context: str, begun: float, *, failing: bool = False
) -> float:
    """Return after how many seconds a commit has a status of a context; infinity after the longest wait."""
    while (seconds := time.monotonic() - begun) < LONGEST:
        statuses = _github(cloud, "GET", f"/commits/{commit}/status").json()["statuses"]
        found = [status for status in statuses if status["context"] == context]
        if context == "roadstead" and not failing and found and found[0]["state"] == "failure":
            raise SystemExit(f"the push failed: {found[0]['description']}")
        if found:
            return seconds
        time.sleep(0.05)
    return float("inf")


def _github(cloud: LocalCloud, method: str, path: str, body: object = None) -> httpx.Response:
    url = f"{cloud.urls.github}/repos/{cloud.settings['GITHUB_REPOSITORY']}{path}"
    headers = {"Authorization": f"token {cloud.settings['GITHUB_TOKEN']}"}
    reply = httpx.request(method, url, headers=headers, json=body, trust_env=False, timeout=60)
    return reply.raise_for_status()


def main(files: int = 4, items: int = 9_000) -> None:
    """Measure, and print one line for each figure."""
    honest, fork, merged = seconds_to_plan(files, items)
    print(f"the push next to a fork with {files} files of {items} items: planned after {honest:.1f} s")
    print(f"the fork: reported after {fork:.1f} s")
    print(f"a push with its files and an honest change: planned after {merged:.1f} s")
    one = hostile("one", items)
    seconds = processor_seconds({**generate(1), "clusters/one/cluster.yaml": one})
    print(f"one of its files ({len(one)} bytes): {seconds:.2f} s of processor time")
    print(
        f"a chain of {CHAIN} classes: {processor_seconds(generate(1) | chain(CHAIN)):.2f} s of processor time"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
