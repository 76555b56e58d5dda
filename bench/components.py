"""What Flux's components cost on one cluster: ``python -m bench.components [FILE]``.

Installs a components file on an API server of the local cloud, through the production adapter, and then
checks it as every job does. The figures are requests over the wire, without those about the served kinds.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from localcloud.common.certificates import Authority
from localcloud.common.clock import system_clock
from localcloud.kubernetes.wire.kubernetes_servers import KubernetesPlane
from localcloud.runtime.options import ROOT
from shared.adapters.kubernetes import KubernetesConnections
from shared.app.worker.steps.flux.components import install, live_of
from shared.cluster.outcomes import Wait
from shared.kubernetes import flux_objects
from shared.resource_ids import ClusterId

EXAMPLE = ROOT / "examples" / "fleet" / "flux" / "gotk-components.yaml"
CLUSTER = ClusterId("00000000-0000-0000-0000-000000000001", "rg-bench", "bench")


def requests_of(content: bytes) -> tuple[Counter[str], Counter[str]]:
    """Return the requests of a first install and of a check of what it left, by their kind."""
    manifests = flux_objects.components(content)
    with KubernetesPlane(Authority(), accepts_token=lambda _: False) as plane:
        text = plane.start(CLUSTER, [])
        with closing(KubernetesConnections(lambda _: text, aad_token=None, clock=system_clock)) as opened:
            api, counted = opened.connect(CLUSTER), []
            for _ in range(2):
                before = len(plane.door(CLUSTER).requests)
                while isinstance(wait := install(manifests, live_of(manifests, api), api), Wait):
                    time.sleep(wait.seconds)
                counted.append(Counter(map(_kind, plane.door(CLUSTER).requests[before:])))
    first, check = (Counter({k: n for k, n in one.items() if k}) for one in counted)
    return first, check


def _kind(request: dict[str, str]) -> str:
    method, path = request["method"], request["path"]
    if method != "GET":
        return "dry run" if "dryRun" in request["query"] else "write"
    return "" if _is_discovery(path) else "list" if "limit=" in request["query"] else "read of one object"


def _is_discovery(path: str) -> bool:
    parts = path.strip("/").split("/")
    return len(parts) <= (2 if parts[0] == "api" else 3)


def main(content: bytes) -> None:
    """Print the requests."""
    first, check = requests_of(content)
    print(f"{len(flux_objects.components(content))} objects")
    print(f"first install  {dict(first)}")
    print(f"check          {dict(check)}")


if __name__ == "__main__":
    main((Path(sys.argv[1]) if sys.argv[1:] else EXAMPLE).read_bytes())
