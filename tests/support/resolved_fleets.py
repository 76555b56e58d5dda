"""Fleets resolved from files in memory, and the manifests that they begin with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from shared.language.resolve.desired_fleet import DesiredFleet
from shared.language.resolve.repository_layout import Files
from shared.language.resolve.resolver import resolve
from tests.support import fleet_files


def resolved(files: Mapping[str, bytes], other: frozenset[str] = frozenset()) -> DesiredFleet:
    return resolve("example", files_of(files, other), files)


def files_of(files: Mapping[str, bytes], other: frozenset[str] = frozenset()) -> Files:
    return Files({path: hashlib.sha256(content).hexdigest() for path, content in files.items()}, other)


def edited(old: str, new: str, path: str = "clusters/one/cluster.yaml") -> DesiredFleet:
    """Resolve a good one-cluster fleet with one text replaced."""
    files = fleet_files.fleet("one")
    text = files[path].decode()
    assert old in text, f"{old} is not in {path}"
    return resolved(files | {path: text.replace(old, new, 1).encode()})


HEAD = "apiVersion: roadstead.dev/v1alpha1\nkind: {}\nmetadata:\n  name: {}\n"


GOOD = {
    "fleet.yaml": HEAD.format("Fleet", "example")
    + """\
spec:
  environments: [dev, prod]
  guards:
    deleteBudget: {count: 1, percent: 50}
  notifications:
    - {name: ops, type: teams, address: TEAMS_URL}
  defaults:
    subscriptionId: 00000000-0000-0000-0000-000000000001
    resourceGroup: rg-{name}
    kubernetesVersion: "1.36"
    networkProfile:
      podCidr: 10.244.0.0/16
      serviceCidr: 10.0.0.0/16
      dnsServiceIP: 10.0.0.10
    nodePools:
      - name: system
        mode: System
        vmSize: Standard_D4s_v5
        count: 3
    flux:
      repository: https://github.com/example/fleet
      path: ./platform
""",
    "environments/dev.yaml": HEAD.format("Environment", "dev")
    + "spec:\n  defaults:\n    tags:\n      environment: dev\n",
    "environments/prod.yaml": HEAD.format("Environment", "prod") + "spec:\n  production: true\n",
    "classes/plain.yaml": HEAD.format("ClusterClass", "plain") + "spec:\n  sku:\n    tier: Standard\n",
    "classes/web.yaml": HEAD.format("ClusterClass", "web")
    + """\
spec:
  class: plain
  nodePools:
    - name: apps
      vmSize: Standard_D8s_v5
      minCount: 1
      maxCount: 5
""",
    "clusters/one/cluster.yaml": HEAD.format("Cluster", "one")
    + "spec:\n  class: web\n  environment: dev\n  location: westeurope\n  tags:\n    team: shop\n",
    "clusters/two/cluster.yaml": HEAD.format("Cluster", "two") + "spec:\n  location: westeurope\n",
    "systems/shop.yaml": HEAD.format("System", "shop")
    + """\
spec:
  owners: [shop@example.com]
  clusters:
    names: [one]
  namespaces: [shop]
  source:
    repository: https://github.com/example/shop
""",
    "flux/gotk-components.yaml": "",
}


ONE = "clusters/one/cluster.yaml"


def with_files(**changed: str) -> DesiredFleet:
    """Resolve the valid fleet with more files; a name is the path without .yaml and with __ for a slash."""
    files = GOOD | {path.replace("__", "/") + ".yaml": text for path, text in changed.items()}
    return resolved({path: text.encode() for path, text in files.items()})


def with_change(path: str, old: str, new: str) -> DesiredFleet:
    """Resolve the valid fleet with one string replaced."""
    assert old in GOOD[path]
    files = GOOD | {path: GOOD[path].replace(old, new, 1)}
    return resolved({name: text.encode() for name, text in files.items()})
