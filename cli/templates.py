"""The files of a new fleet repository, and of a new cluster."""

from __future__ import annotations

from cli.schemas import FOLDER
from cli.text import scalar
from shared.language.resolve.repository_layout import cluster_path

SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
REPOSITORY = "https://github.com/OWNER/NAME"

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
      path: ./platform
      components: flux/gotk-components.yaml
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
"""
_PRODUCTION = """\
metadata:
  name: production
spec:
  production: true        # its clusters are protected from deletion
  defaults:
    tags:
      environment: production
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
_NAMESPACES = """\
# What Flux applies to every cluster: any Kubernetes manifests, in this folder and those below it.
apiVersion: v1
kind: Namespace
metadata:
  name: apps
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
| `platform/` | what Flux applies to every cluster |

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
        name=scalar(name), subscription=subscription or SUBSCRIPTION, repository=git or REPOSITORY
    )
    manifests = {
        "fleet.yaml": ("Fleet", fleet),
        "environments/development.yaml": ("Environment", _DEVELOPMENT),
        "environments/production.yaml": ("Environment", _PRODUCTION),
        "classes/standard.yaml": ("ClusterClass", _CLASS),
    }
    files = {path: head(kind, path) + body for path, (kind, body) in manifests.items()}
    return files | {"platform/namespaces.yaml": _NAMESPACES, "README.md": _README.format(name=name)}


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
