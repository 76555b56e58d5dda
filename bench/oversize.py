"""How long a push waits next to an oversized cluster: ``python -m bench.oversize``.

Starts a local cloud, pushes a cluster that has more bytes with its classes than Roadstead stores, and a
second later pushes an honest change on top of it. Everything goes over the real wire protocols. The figures
are after how many seconds both commits had a status, and the honest change was accepted.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.fleet import generate
from bench.fork import COMPONENTS, HEAD, OPTIONS, seconds_until_status
from cli.fleet_api.client import Api
from localcloud.demo.checkout import Checkout
from localcloud.runtime.local_cloud import LocalCloud
from localcloud.runtime.options import ROOT

FILES = 3
"""A cluster and two classes: each is below the limit of a file, together they are above that of a record."""
VALUES, VALUE_BYTES = 230, 1_000
APART = 1.0
"""Seconds between the two pushes: GitHub has times in whole seconds, so a push that comes in the second in
which the branch was read for the one before may be an earlier one, and is read again for 42 seconds."""


def oversized() -> dict[str, bytes]:
    """Return a cluster whose classes and own file have more bytes together than a record may have."""
    files = {}
    for number in range(FILES):
        kind, name = ("Cluster", "huge") if number == 0 else ("ClusterClass", f"huge-{number}")
        above = f"  class: huge-{number + 1}\n" if number < FILES - 1 else ""
        own = "  environment: dev\n  location: westeurope\n" if number == 0 else ""
        values = "".join(f"      key{number}x{n}: {'a' * VALUE_BYTES}\n" for n in range(VALUES))
        path = "clusters/huge/cluster.yaml" if number == 0 else f"classes/{name}.yaml"
        text = HEAD.format(kind, name) + above + own + "  azure:\n    properties:\n" + values
        files[path] = text.encode()
    return files


def seconds_to_plan() -> tuple[float, float, str]:
    """Return after how many seconds an honest push had a status, and its cluster was accepted.

    The third figure is what the plan says of the oversized cluster.
    """
    with tempfile.TemporaryDirectory() as folder, LocalCloud(Path(folder) / "cloud", OPTIONS) as cloud:
        checkout = Checkout(cloud.remote, Path(folder) / "clone")
        components = {COMPONENTS: (ROOT / "examples" / "fleet" / COMPONENTS).read_bytes()}
        checkout.replace_all(generate(3) | components)
        seconds_until_status(cloud, checkout.push("a fleet"), "roadstead", time.monotonic())
        checkout.replace_all(generate(3) | components | oversized())
        checkout.push("an oversized cluster")
        time.sleep(APART)
        checkout.replace_all(generate(4) | components | oversized())
        honest, begun = checkout.push("an honest change"), time.monotonic()
        reported = seconds_until_status(cloud, honest, "roadstead", begun, failing=True)
        api = Api(cloud.urls.functions, cloud.settings["API_KEY_ADMIN"])
        while "cluster-00003" not in {found["name"] for found in api.get("clusters")["clusters"]}:
            time.sleep(0.05)
        accepted = time.monotonic() - begun
        items = api.get(f"plans/{honest}")["items"]
        api.close()
        (huge,) = (item for item in items if item["cluster"] == "huge")
        return reported, accepted, f"{huge['action']}: {huge['reason']}"


def main() -> None:
    """Measure, and print one line for each figure."""
    reported, accepted, huge = seconds_to_plan()
    size = sum(map(len, oversized().values()))
    print(f"the push next to a cluster of {size:,} bytes: accepted after {accepted:.1f} s")
    print(f"its commit status: after {reported:.1f} s")
    print(f"the oversized cluster: {huge}")


if __name__ == "__main__":
    main()
