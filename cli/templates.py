"""The files of a new fleet repository, and of a new cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from cli.schemas import FOLDER
from cli.text import scalar
from shared.app.intake.issue_form import HEADINGS
from shared.language.model.base import NO_REPOSITORY, NO_SUBSCRIPTION
from shared.language.model.fleet_rules import SelfServiceRule
from shared.language.resolve.repository_layout import cluster_path

ENVIRONMENTS = ("development", "production")

_HEAD = """\
# yaml-language-server: $schema={up}{folder}/{kind}.json
apiVersion: roadstead.dev/v1alpha1
kind: {Kind}
"""
_FLEET = """\
metadata:
  name: {name}
spec:
  environments: [development, production]   # every file in environments/, in the order of changes
  guards:
    deleteBudget:
      count: 1            # a commit that removes more clusters needs approval
  defaults:               # for every cluster, unless its class, environment or own file sets another value
    subscriptionId: {subscription}
    resourceGroup: rg-{{name}}
    kubernetesVersion: "1.36"
    sku:
      tier: Standard
    identity:
      type: SystemAssigned
    networkProfile:
      networkPlugin: azure
      networkPluginMode: overlay
      networkDataplane: cilium
      networkPolicy: cilium
    nodePools:            # lists of named items merge by name
      - name: system
        mode: System
        vmSize: Standard_D4s_v5
        count: 3
        availabilityZones: ["1", "2", "3"]
    flux:
      repository: {repository}
      branch: main
      path: ./platform/base             # an environment has a folder of its own
      components: flux/gotk-components.yaml
      kustomizations:
        - name: flux-system             # it applies the folder of path
          wait: true                    # Ready means that all of it is healthy
"""
_DEVELOPMENT = """\
metadata:
  name: development
spec:
  defaults:
    sku:
      tier: Free
    tags:
      environment: development
    flux:
      path: ./platform/environments/development
"""
_PRODUCTION = """\
metadata:
  name: production
spec:
  production: true        # its clusters are protected from deletion
  defaults:
    tags:
      environment: production
    flux:
      path: ./platform/environments/production
"""
_CLASS = """\
metadata:
  name: standard
spec:
  nodePools:
    - name: apps
      vmSize: Standard_D4s_v5
      minCount: 2         # between these the cluster autoscaler decides
      maxCount: 5
"""
_BASE = """\
# What every cluster gets: Flux applies the files of this list.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - namespaces.yaml
"""
_OVERLAY = """\
# What the clusters of {environment} get: the base, and what is added here.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../base
"""
_NAMESPACES = """\
apiVersion: v1
kind: Namespace
metadata:
  name: apps
  labels:
    pod-security.kubernetes.io/enforce: baseline
"""
_README = """\
# The fleet {name}

Every merged commit on the main branch is the desired state of this fleet of AKS clusters.

| path | what it is |
|---|---|
| `fleet.yaml` | defaults for every cluster, the order of environments, the guards |
| `environments/<name>.yaml` | what the clusters of an environment share |
| `classes/<name>.yaml` | shapes of clusters to choose from |
| `clusters/<name>/cluster.yaml` | one AKS cluster; removing the folder deletes the cluster |
| `flux/gotk-components.yaml` | the Flux that is installed: written by `flux install --export` |
| `platform/base/` | what Flux applies to every cluster |
| `platform/environments/<name>/` | the base, and what the clusters of an environment have besides |

    roadstead new cluster NAME --class standard --environment development --location westeurope
    roadstead validate
    roadstead plan
"""
_STEPS = (
    "mkdir -p flux && flux install --export > flux/gotk-components.yaml",
    "roadstead new cluster NAME --class standard --environment development \\\n       --location westeurope",
    "roadstead validate, commit and push.",
)


def head(kind: str, path: str) -> str:
    """Return the first lines of a manifest; the path of its schema is relative to the manifest."""
    up = "../" * path.count("/")
    return _HEAD.format(up=up, folder=FOLDER, kind=kind.lower(), Kind=kind)


def repository(name: str, subscription: str, git: str) -> dict[str, str]:
    """Return the files of a fleet repository without clusters, except the schemas."""
    fleet = _FLEET.format(
        name=scalar(name), subscription=subscription or NO_SUBSCRIPTION, repository=git or NO_REPOSITORY
    )
    manifests = {
        "fleet.yaml": ("Fleet", fleet),
        "environments/development.yaml": ("Environment", _DEVELOPMENT),
        "environments/production.yaml": ("Environment", _PRODUCTION),
        "classes/standard.yaml": ("ClusterClass", _CLASS),
    }
    files = {path: head(kind, path) + body for path, (kind, body) in manifests.items()}
    platform = {"platform/base/kustomization.yaml": _BASE, "platform/base/namespaces.yaml": _NAMESPACES}
    for environment in ENVIRONMENTS:
        path = f"platform/environments/{environment}/kustomization.yaml"
        platform[path] = _OVERLAY.format(environment=environment)
    return files | platform | {"README.md": _README.format(name=name)}


def next_steps(folder: str, subscription: str, git: str) -> str:
    """Return what to do in the new repository; the last two arguments are "" if they are still to be set."""
    unset = [("subscriptionId", subscription), ("the repository that Flux reads", git)]
    names = " and ".join(name for name, value in unset if not value)
    steps = ([f"fleet.yaml: set {names}."] if names else []) + [*_STEPS]
    where = "" if folder == "." else f", in {folder}"
    return f"Next{where}:\n" + "".join(f"{number}. {step}\n" for number, step in enumerate(steps, 1))


def cluster(name: str, chosen: dict[str, str]) -> tuple[str, str]:
    """Return the path and text of a cluster's manifest; ``chosen`` are fields of its spec."""
    path = cluster_path(name)
    fields = "".join(f"  {key}: {scalar(value)}\n" for key, value in chosen.items() if value)
    return (
        path,
        f"{head('Cluster', path)}metadata:\n  name: {scalar(name)}\nspec:{' {}' * (not fields)}\n{fields}",
    )


REQUEST_FORM = ".github/ISSUE_TEMPLATE/roadstead-cluster.yaml"
"""Where GitHub looks for the form: docs.github.com, "Syntax for issue forms"."""


def request_form(rules: Sequence[SelfServiceRule]) -> str:
    """Return the form of an issue by which people of GitHub ask for a cluster, with what rules allow."""
    answers = {
        "class": sorted({name for rule in rules for name in rule.classes}),
        "environment": [*dict.fromkeys(name for rule in rules for name in rule.environments)],
    }
    places = sorted({name for rule in rules for name in rule.locations})
    told = {
        "name": "Lower-case letters, digits and hyphens.",
        "lifetime": f"Such as 8h; at most {', '.join(dict.fromkeys(rule.max_lifetime for rule in rules))}.",
        "location": f"One of {', '.join(places)}; nothing for the usual one."
        if places
        else "Leave it empty.",
    }
    form = {
        "name": "Cluster for a time",
        "description": "Ask for a cluster. Roadstead answers those whom selfService in fleet.yaml names.",
        "title": "A cluster, please",
        "body": [_question(name, heading, answers, told) for name, heading in HEADINGS.items()],
    }
    return (
        "# Written by roadstead new request-form; the headings are those that Roadstead reads.\n"
        + yaml.safe_dump(form, sort_keys=False, width=100)
    )


def _question(name: str, heading: str, answers: dict[str, list[str]], told: dict[str, str]) -> dict[str, Any]:
    kind = "dropdown" if name in answers else "textarea" if name == "reason" else "input"
    attributes: dict[str, Any] = {"label": heading}
    attributes |= {"description": told[name]} if name in told else {}
    attributes |= {"options": answers[name]} if name in answers else {}
    required = {"validations": {"required": True}} if name != "location" else {}
    return {"type": kind, "id": name, "attributes": attributes, **required}
