"""A generated fleet repository of any size: environments, classes, and one small manifest per cluster."""

from __future__ import annotations

from pathlib import Path

COMPONENTS = Path(__file__).parent.parent / "examples" / "fleet" / "flux" / "gotk-components.yaml"
ENVIRONMENTS = ("dev", "test", "stage", "prod-eu", "prod-us")
CLASSES = 20
OF_A_SUBSCRIPTION = 4000
"""Clusters in each subscription; Azure allows 5,000."""

FLEET = """\
apiVersion: roadstead.dev/v1alpha1
kind: Fleet
metadata:
  name: bench
spec:
  environments: [dev, test, stage, prod-eu, prod-us]
  guards:
    deleteBudget: {count: 5, percent: 10}
  defaults:
    subscriptionId: 00000000-0000-0000-0000-000000000001
    resourceGroup: rg-{name}
    kubernetesVersion: "1.36"
    networkProfile: {networkPlugin: azure, networkPluginMode: overlay, podCidr: 10.244.0.0/16}
    nodePools:
      - {name: system, mode: System, vmSize: Standard_D4s_v5, count: 3, availabilityZones: ["1", "2", "3"]}
    flux:
      repository: https://github.com/example/fleet
      path: ./platform/{environment}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
"""What Flux applies in each environment."""


def generate(clusters: int) -> dict[str, bytes]:
    """Return the files of a fleet with so many clusters."""
    files = {"fleet.yaml": FLEET, "flux/gotk-components.yaml": COMPONENTS.read_text()}
    for number, name in enumerate(ENVIRONMENTS):
        files[f"platform/{name}/shop.yaml"] = NAMESPACE
        production = "true" if name.startswith("prod") else "false"
        tags = f"{{environment: {name}, tier: t{number}}}"
        spec = f"spec:\n  production: {production}\n  defaults:\n    tags: {tags}\n"
        files[f"environments/{name}.yaml"] = _head("Environment", name) + spec
    for number in range(CLASSES):
        pool = f"    - {{name: apps, vmSize: Standard_D8s_v5, minCount: 2, maxCount: {5 + number}}}\n"
        files[f"classes/class-{number}.yaml"] = _head("ClusterClass", f"class-{number}") + (
            f"spec:\n  sku: {{tier: Standard}}\n  nodePools:\n{pool}"
        )
    for number in range(clusters):
        files |= dict([cluster_file(number)])
    return {path: text.encode() for path, text in files.items()}


def cluster_file(number: int, count: int = 3) -> tuple[str, str]:
    """Return the path and text of one cluster's manifest."""
    name = f"cluster-{number:05d}"
    spec = (
        f"spec:\n  class: class-{number % CLASSES}\n  environment: {ENVIRONMENTS[number % 5]}\n"
        f"  location: {('westeurope', 'eastus', 'westus2')[number % 3]}\n"
        f"  nodePools:\n    - {{name: system, count: {count}}}\n  tags: {{team: team-{number % 97}}}\n"
    )
    if number >= OF_A_SUBSCRIPTION:
        spec += f"  subscriptionId: 00000000-0000-0000-0000-{1 + number // OF_A_SUBSCRIPTION:012}\n"
    return f"clusters/{name}/cluster.yaml", _head("Cluster", name) + spec


def _head(kind: str, name: str) -> str:
    return f"apiVersion: roadstead.dev/v1alpha1\nkind: {kind}\nmetadata:\n  name: {name}\n"
