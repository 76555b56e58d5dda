"""A fleet as ``roadstead init`` writes it, with 14 clusters of three environments."""

from __future__ import annotations

from cli import templates
from tests.support import fleet_files
from tests.support.arm_client import SUBSCRIPTION

ENVIRONMENTS = ("development", "staging", "production")
NAMES = {f"{ENVIRONMENTS[number % 3]}-{number:02}": ENVIRONMENTS[number % 3] for number in range(14)}
CLASS = "classes/standard.yaml"
NAMESPACES = "platform/base/namespaces.yaml"
MONITORING = "platform/base/monitoring.yaml"
RELEASE = """\
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata:
  name: prometheus
  namespace: flux-system
spec:
  interval: 1h
  url: https://prometheus-community.github.io/helm-charts
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: prometheus
  namespace: flux-system
spec:
  interval: 1h
  chart:
    spec:
      chart: kube-prometheus-stack
      version: 61.3.2
      sourceRef:
        kind: HelmRepository
        name: prometheus
"""
INGRESS = "---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: ingress\n"


def scaffolded() -> dict[str, bytes]:
    """Return its files; the components of Flux are those of the example."""
    texts = templates.repository("example", SUBSCRIPTION, "https://github.com/example/fleet")
    for path in [path for path in texts if "development" in path]:
        texts[path.replace("development", "staging")] = texts[path].replace("development", "staging")
    order = "environments: [development, production]", "environments: [development, staging, production]"
    texts["fleet.yaml"] = texts["fleet.yaml"].replace(*order)
    for name, environment in NAMES.items():
        chosen = {"class": "standard", "environment": environment, "location": "eastus"}
        path, text = templates.cluster(name, chosen)
        texts[path] = text
    files = {path: text.encode() for path, text in texts.items()}
    return files | {"flux/gotk-components.yaml": fleet_files.example()["flux/gotk-components.yaml"]}


def with_chart() -> dict[str, bytes]:
    """Return the fleet with a chart in its platform."""
    files, listed = scaffolded(), "platform/base/kustomization.yaml"
    return files | {MONITORING: RELEASE.encode(), listed: files[listed] + b"  - monitoring.yaml\n"}


def changed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the fleet with one other line of its class, and two other files of its platform."""
    return files | {
        CLASS: files[CLASS].replace(b"maxCount: 5", b"maxCount: 8"),
        MONITORING: files[MONITORING].replace(b"61.3.2", b"62.0.0"),
        NAMESPACES: files[NAMESPACES] + INGRESS.encode(),
    }
