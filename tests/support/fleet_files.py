"""Fleet repositories for tests, as path -> content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import shared

EXAMPLE = Path(shared.__file__).parents[1] / "examples" / "fleet"

ALL_AT_ONCE = b"  rollout: {allAtOnce: true}\n"


def example() -> dict[str, bytes]:
    """Return the example fleet, file by file."""
    return dict(_example())


def with_platform(texts: Mapping[str, str]) -> dict[str, bytes]:
    """Return the example fleet, all of whose clusters apply ``platform``, with these files there."""
    files = {path: content for path, content in _example().items() if not path.startswith("platform/")}
    plain = {
        path: re.sub(rb"    flux:\n      path: ./platform/environments/[a-z]+\n", b"", content)
        for path, content in files.items()
    }
    plain["fleet.yaml"] = plain["fleet.yaml"].replace(b"path: ./platform/base", b"path: ./platform")
    return plain | {f"platform/{path}": text.encode() for path, text in texts.items()}


@cache
def _example() -> Mapping[str, bytes]:
    """Read the example fleet once: most tests begin with it, and none writes to its folder."""
    return {
        path.relative_to(EXAMPLE).as_posix(): path.read_bytes()
        for path in sorted(EXAMPLE.rglob("*"))
        if path.is_file()
    }


def cluster(name: str, *, count: int = 1, extra: str = "") -> bytes:
    """Return a small cluster manifest; ``extra`` is YAML indented below spec.

    AKS makes no group for the nodes of a cluster whose name is long.
    """
    extra += f"  nodeResourceGroup: {name}\n" if len(name) > 30 else ""
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata:
  name: {name}
spec:
  resourceGroup: rg-{name}
  location: eastus
  nodePools:
    - name: system
      count: {count}
{extra}""".encode()


def fleet(*names: str, budget: int = 1) -> dict[str, bytes]:
    """Return the example fleet with other clusters, no systems, and a platform of one folder for all."""
    own = ("clusters/", "systems/", "platform/")
    files = {path: content for path, content in example().items() if not path.startswith(own)}
    files["platform/namespaces.yaml"] = example()["platform/base/namespaces.yaml"]
    for path in [path for path in files if path.startswith("environments/")]:
        files[path] = files[path].partition(b"    flux:\n")[0]
    files["fleet.yaml"] = files["fleet.yaml"].partition(b"      kustomizations:\n")[0]
    files["fleet.yaml"] = re.sub(rb"path: \./platform/base.*", b"path: ./platform", files["fleet.yaml"])
    guards = f"count: {budget}        #".encode(), b"percent: 100"
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"count: 1            #", guards[0])
    files["fleet.yaml"] = files["fleet.yaml"].replace(b"percent: 50", guards[1])
    return files | {f"clusters/{name}/cluster.yaml": cluster(name) for name in names}


def in_one_group(*names: str) -> dict[str, bytes]:
    """Return a fleet whose clusters live in one group."""
    files = fleet(*names)
    for name in names:
        path = f"clusters/{name}/cluster.yaml"
        files[path] = files[path].replace(f"rg-{name}".encode(), b"rg-shared")
    return files


def all_at_once(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a fleet whose changes start all at once, and not one cluster first."""
    return files | {"fleet.yaml": files["fleet.yaml"].replace(b"spec:\n", b"spec:\n" + ALL_AT_ONCE, 1)}


def following_branch(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return a fleet whose clusters pull the branch by themselves."""
    follow = b"      branch: main\n      follow: branch\n"
    return files | {"fleet.yaml": files["fleet.yaml"].replace(b"      branch: main\n", follow, 1)}
