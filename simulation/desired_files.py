"""The files of a repository that express the desired state of a fleet; few Flux objects, on purpose."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import lru_cache

from shared.prices.monthly import ADDRESS
from shared.prices.price_file import Kind, Price, Prices, Unit, written
from simulation.desired_state import (
    ASKED_CLASS,
    ASKED_PLACE,
    ASKED_PRICE,
    CORRECTED,
    EXEMPT,
    IMAGE,
    PROPOSED,
    RECREATED,
    SYSTEM,
    USUAL_COMPONENTS,
    VERSION,
    WINDOW,
    DesiredCluster,
    Pool,
    RequestedFleet,
    SharedEnvironment,
    group_of,
)
from simulation.granted import SUBSCRIPTION, as_grants
from simulation.platforms import BUDGET, platform_files
from simulation.staging import as_yaml
from simulation.team_systems import COMPONENTS as OF_TENANTS
from simulation.vault_secrets import as_secrets

_EXEMPTION = (
    "{name: cost, fields: [tags.cost], action: ignore, owner: a, reason: an audit, expires: 2999-12-31}"
)

_HOST = "https://github.com/example/"


def files_of(desired: RequestedFleet, fleet: str, branch: str = "") -> dict[str, bytes]:
    """Return the files of a fleet, which is a ``branch`` of the first one's repository, or has its own."""
    files = {
        f"clusters/{name}/cluster.yaml": _cluster(
            cluster, desired.environment_of(name), desired.sources.get(name, "")
        )
        for name, cluster in desired.clusters.items()
    }
    files["fleet.yaml"] = _fleet(
        fleet,
        f"{_HOST}north, branch: {branch}" if branch else f"{_HOST}{fleet}",
        desired.budget,
        desired.invalid,
        desired.notified,
        as_yaml(desired.staging, desired.selectable, desired.final) + _of_environments(desired),
    )
    if desired.asked_at_once:
        files[f"classes/{ASKED_CLASS}.yaml"], files[f"environments/{ASKED_PLACE}.yaml"] = _ASKED
        files["prices.yaml"] = _PRICES
    for environment in desired.environments:
        files[f"environments/{environment.name}.yaml"] = _environment(environment)
        files[environment.components] = COMPONENTS + f"# {environment.components}\n".encode()
        if environment.channel:
            files[path_of(environment)] = _resolved(environment)
    files["README.md"] = str(desired.note).encode()
    teams = [system.files(fleet, desired.clusters) for system in desired.systems]
    files |= {path: content for team in teams for path, content in team.items()}
    return files | {USUAL_COMPONENTS: COMPONENTS, **platform_files(desired.platform)}


def _of_environments(desired: RequestedFleet) -> str:
    """Return the environments in fleet.yaml, who may ask for clusters, and the rule that promotes."""
    asked, names = desired.asked_at_once, [environment.name for environment in desired.environments]
    listed = [*names, *([ASKED_PLACE] if asked else [])]
    text = f"  environments: [{', '.join(listed)}]\n" if listed else ""
    if names and desired.soak is not None:
        source = desired.environments[0]
        followed = ["version"] * bool(source.version) + ["images"] * bool(source.image)
        what = ", ".join(followed or ["components"])
        rule = f"from: {names[0]}, to: {names[-1]}, what: [{what}], soak: {desired.soak}s"
        text += f"  promotions: [{{{rule}}}]\n"
    request = f"classes: [{ASKED_CLASS}], environments: [{ASKED_PLACE}], atOnce: {asked}, merge: auto"
    request += f", priceLimit: {{cluster: {desired.asked_limit}}}"
    return text + (f"  selfService: [{{{request}}}]\n" if asked else "")


@lru_cache(maxsize=512)
def _cluster(cluster: DesiredCluster, environment: SharedEnvironment, source: str) -> bytes:
    if cluster.is_as_asked:
        return cluster.request.encode()
    given = [f"adopt: {cluster.adopt}" if cluster.adopt else _rebuild(cluster.asked)]
    given.append(f"replaces: {cluster.replaces}" if cluster.replaces else "")
    written = ", ".join(f"roadstead.dev/{name}" for name in given if name)
    annotated = f", annotations: {{{written}}}" if written else ""
    follows = environment.version and cluster.version == environment.version
    own_version = "" if follows else f'  kubernetesVersion: "{cluster.version}"\n'
    text = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Cluster
metadata: {{name: {cluster.name}{annotated}}}
spec:
  {"locaton" if cluster.invalid else "location"}: eastus
  resourceGroup: {group_of(cluster.name)}
{own_version}  deletionProtection: {str(cluster.protected).lower()}
  tags: {{{_tags(cluster)}}}
  nodePools:
"""
    for pool in cluster.pools:
        labels = f", nodeLabels: {{tier: {pool.label}}}" if pool.label else ""
        kind = f"name: {pool.name}, mode: {pool.mode}, vmSize: {pool.size}"
        text += f"    - {{{kind}, count: {pool.count}{labels}{_versions(pool)}}}\n"
    if cluster.channel:
        text += f"  autoUpgradeProfile: {{upgradeChannel: {cluster.channel}}}\n"
    if cluster.window:
        text += f"  maintenanceWindows: [{{name: {WINDOW}, maintenanceWindow: {_window(cluster.window)}}}]\n"
    if cluster.image and cluster.image != environment.image:
        text += f'  minNodeImageVersion: "{cluster.image}"\n'
    if environment.name:
        text += f"  environment: {environment.name}\n"
    if source:
        tag = "tag: stable, " if source.startswith("oci:") else ""
        text += f"  flux: {{repository: {source}, {tag}follow: rollout}}\n"
    text += as_grants(cluster.name, cluster.grants) + as_secrets(cluster.secrets)
    if cluster.name in CORRECTED:
        more = f", rules: [{_EXEMPTION}]" if cluster.name in EXEMPT else ""
        more += ", missingCluster: recreate, fluxObjects: correct" if cluster.name in RECREATED else ""
        text += f"  drift: {{action: correct{more}}}\n"
    if cluster.name in PROPOSED:
        text += "  drift: {action: propose}\n"
    if cluster.sleeps:
        pools = any(pool.mode == "User" for pool in cluster.pools)
        text += f"  sleep: {cluster.sleeps if pools else cluster.sleeps.replace('pools', 'cluster')}\n"
    if cluster.lifetime:
        text += f"  lifetime: {cluster.lifetime}m\n"
        text += "  lifetimeEnd: delete\n" if cluster.ends_by_host else ""
    if cluster.suspended:
        text += f'  suspend: {{owner: somebody, reason: an audit, until: "{cluster.suspended}"}}\n'
    return text.encode()


_CLASS = f"""\
apiVersion: roadstead.dev/v1alpha1
kind: ClusterClass
metadata: {{name: {ASKED_CLASS}}}
spec:
  location: eastus
  resourceGroup: "rg-{{name}}"
  kubernetesVersion: "1.36"
  nodePools:
    - {{name: {SYSTEM.name}, mode: {SYSTEM.mode}, vmSize: {SYSTEM.size}, count: {SYSTEM.count}}}
"""
_PLACE = (
    f"apiVersion: roadstead.dev/v1alpha1\nkind: Environment\nmetadata: {{name: {ASKED_PLACE}}}\nspec: {{}}\n"
)
_ASKED = _CLASS.encode(), _PLACE.encode()
"""The class and the environment of what people ask for: as any other cluster of the model at first."""
_PARTS = (
    (Kind.TIER, "Standard"),
    (Kind.NODE, SYSTEM.size),
    (Kind.DISK, "P10 LRS"),
    (Kind.ADDRESS, ADDRESS),
)
_EACH = Decimal(ASKED_PRICE) / len(_PARTS)
_LISTED = tuple(Price("eastus", kind, name, _EACH, Unit.MONTH) for kind, name in _PARTS)
_PRICES = written(Prices(date(2026, 1, 1), "USD", "https://example.com/prices", _LISTED)).encode()
"""All that such a cluster consists of, each at the same price."""


def _environment(environment: SharedEnvironment) -> bytes:
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Environment
metadata: {{name: {environment.name}}}
spec:
{_channels(environment)}\
    flux:
      components: {environment.components}
""".encode()


def _channels(environment: SharedEnvironment) -> str:
    version = f"  kubernetes: {{channel: {environment.channel}}}\n" if environment.version else ""
    image = "  nodeImages: {channel: NodeImage}\n" if environment.image else ""
    off = "    autoUpgradeProfile: {nodeOSUpgradeChannel: None}\n" if image else ""
    long = "    supportPlan: AKSLongTermSupport\n    sku: {tier: Premium}\n"
    return f"{version}{image}  defaults:\n{off}{long if environment.channel == 'lts' else ''}"


def path_of(environment: SharedEnvironment) -> str:
    """Return the file with what promotions and channels give an environment."""
    return f"environments/{environment.name}.{'versions.' if environment.channel else ''}yaml"


def _resolved(environment: SharedEnvironment) -> bytes:
    version = f"  {VERSION}: '{environment.version}'\n" if environment.version else ""
    image = f"  {IMAGE}: '{environment.image}'\n" if environment.image else ""
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Versions
metadata: {{name: {environment.name}}}
spec:
{version}{image}""".encode()


def _versions(pool: Pool) -> str:
    own = f", orchestratorVersion: {pool.version}" if pool.version else ""
    back = pool.rollback
    asked = f", rollback: {{nodeImageVersion: {back.image}, lastUsed: '{back.last_used}'}}" if back else ""
    return own + asked


def _rebuild(number: int) -> str:
    return f'rebuild: "2025-12-01T{number // 60:02}:{number % 60:02}:00Z"' if number else ""


def _tags(cluster: DesiredCluster) -> str:
    tags = {"cost": cluster.tag} if cluster.tag else {}
    return ", ".join(f"{name}: {value}" for name, value in tags.items())


def _window(day: str) -> str:
    weekly = f"schedule: {{weekly: {{intervalWeeks: 1, dayOfWeek: {day}}}}}"
    return f'{{{weekly}, durationHours: 4, startTime: "01:00", utcOffset: "+00:00"}}'


@lru_cache(maxsize=64)
def _fleet(fleet: str, source: str, budget: int, invalid: bool, notified: bool, rollout: str) -> bytes:
    routes = "  notifications: [{name: all, type: slack, address: ALL, severity: info}]\n" if notified else ""
    return f"""\
apiVersion: roadstead.dev/v1alpha1
kind: Fleet
metadata: {{name: {fleet}}}
spec:
  guards: {{deleteBudget: {{count: {budget}, percent: 100, objects: {BUDGET}}}, namespaceBudget: 1000}}
{routes}{rollout}\
  {"defautls" if invalid else "defaults"}:
    subscriptionId: {SUBSCRIPTION}
    kubernetesVersion: "1.36"
    flux: {{repository: {source}, path: ./platform}}
""".encode()


def _definition(group: str, kind: str, version: str = "v1") -> str:
    plural = f"{kind.lower()}s".replace("repositorys", "repositories")
    return f"""\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.{group}}}
spec:
  group: {group}
  names: {{kind: {kind}, listKind: {kind}List, plural: {plural}, singular: {kind.lower()}}}
  scope: Namespaced
  versions:
    - name: {version}
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
      subresources: {{status: {{}}}}
"""


def _controller(name: str) -> str:
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: flux-system}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: manager, image: "example/{name}:v1"}}]}}
"""


COMPONENTS = (
    "---\n".join(
        (
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n",
            _definition("source.toolkit.fluxcd.io", "GitRepository"),
            _definition("source.toolkit.fluxcd.io", "OCIRepository"),
            _definition("source.toolkit.fluxcd.io", "HelmChart"),
            _definition("kustomize.toolkit.fluxcd.io", "Kustomization"),
            _definition("helm.toolkit.fluxcd.io", "HelmRelease", "v2"),
            _controller("source-controller"),
            _controller("kustomize-controller"),
            _controller("helm-controller"),
        )
    ).encode()
    + OF_TENANTS
)
"""The smallest set of Flux components that the local Flux accepts."""
