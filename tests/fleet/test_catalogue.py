"""A catalogue of invalid manifests, each with all of its messages: catalogue.txt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.test_desired import resolved

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
    kubernetesVersion: "1.33"
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


@dataclass(frozen=True)
class Row:
    """A mistake: lines of a file replaced by others, and what is told."""

    path: str
    out: tuple[str, ...]
    put: tuple[str, ...]
    told: tuple[str, ...]

    def text(self) -> str:
        good, put = GOOD[self.path], "".join(f"{line}\n" for line in self.put)
        if self.out == ("*",):
            return put
        out = "".join(f"{line}\n" for line in self.out)
        assert out in good, f"{out!r} is not in {self.path}"
        return good.replace(out, put, 1)


def catalogue() -> Iterator[Row]:
    """Read the catalogue."""
    text = (Path(__file__).parent / "catalogue.txt").read_text()
    for block in text.split("\n\n")[1:]:
        lines = [(line[0], line[1:]) for line in block.splitlines()]
        parts = {sign: tuple(rest for first, rest in lines if first == sign) for sign in "@-+>"}
        yield Row(parts["@"][0], parts["-"], parts["+"], parts[">"])


ROWS = list(catalogue())


def test_the_catalogue_is_long_and_the_valid_fleet_is_valid() -> None:
    assert len(ROWS) >= 120
    assert len({(row.path, row.out, row.put) for row in ROWS}) == len(ROWS)
    assert resolved({path: text.encode() for path, text in GOOD.items()}).problems == ()


@pytest.mark.parametrize("row", ROWS, ids=[f"{number}-{row.path}" for number, row in enumerate(ROWS)])
def test_an_invalid_manifest_gives_exactly_these_messages(row: Row) -> None:
    files = {path: text.encode() for path, text in (GOOD | {row.path: row.text()}).items()}
    assert tuple(str(problem) for problem in resolved(files).problems) == row.told
