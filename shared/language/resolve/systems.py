"""Resolves Systems: which clusters a team's system is on, and what it is there.

An invalid System invalidates no cluster: where it was before, it stays at its last valid spec.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.cluster_systems import Systems, stored_system, without_invalid
from shared.language.desired import Desired
from shared.language.model.cluster.grants import MOST_OF_AN_IDENTITY
from shared.language.model.kinds import System
from shared.language.model.system import CLASS_LABEL, ENVIRONMENT_LABEL, SystemSpec
from shared.language.resolve.layers import unknown
from shared.language.resolve.manifest_file import Contents, load
from shared.language.resolve.problems import Problem, described, nearest, problem_at
from shared.language.resolve.repository_layout import CLASSES, ENVIRONMENTS, SYSTEMS, Files, shared_paths
from shared.language.resolve.rules.between_clusters import beyond
from shared.language.resolve.work import Work
from shared.language.yaml.nodes import Mark, Node
from shared.sentences import many, some_of

SHOWN = 5
"""How many systems of an identity are named."""


@dataclass(frozen=True)
class Tenant:
    """A System, and the clusters that its selector matches; ``node`` has the places of its values."""

    name: str
    spec: SystemSpec
    clusters: tuple[str, ...]
    node: Node | None = field(default=None, repr=False, compare=False)


def read_systems(
    files: Files,
    contents: Contents,
    clusters: Mapping[str, Desired],
    work: Work,
    recorded: Mapping[str, Systems],
) -> tuple[dict[str, Tenant], list[Problem]]:
    """Return the tenants by name, and all problems; ``recorded`` are the systems on each cluster."""
    paths, wrong = files.of(SYSTEMS)
    problems, tenants, known = list(wrong.values()), {}, frozenset(files.folders)
    taken, share = _TakenNamespaces(), work.share(len(shared_paths(files)))
    for name, path in paths.items():
        loaded = load(path, System, contents, work, share, name=name)
        problems += loaded.problems
        if loaded.manifest is None:
            continue
        work.spend(len(clusters))
        selected = tuple(_selected(loaded.manifest, clusters))
        tenant = Tenant(name, loaded.manifest.spec, selected, loaded.node)
        if not work.admits(taken.work(tenant), share):
            message = f"too many systems have these namespaces; a file may take {share:,} units of work here"
            problems.append(problem_at(loaded.node.mark, "spec.namespaces", message))
            continue
        own_problems = [
            *_unknown(loaded.node, tenant, known),
            *_unknown_layers(loaded.node, tenant, files),
            *_occupied(loaded.node, tenant, taken),
            *_out_of_reach(loaded.node, tenant, clusters),
            *_not_its_own(loaded.node, tenant, clusters),
            *_not_in_azure(loaded.node, tenant, clusters),
        ]
        problems += own_problems
        if not own_problems:
            tenants[name] = tenant
    crowded = _crowded(tenants.values(), clusters, recorded)
    rest = {name: tenant for name, tenant in tenants.items() if name not in crowded}
    return rest, [*problems, *crowded.values()]


def with_systems(
    files: Files,
    clusters: Mapping[str, Desired],
    tenants: Mapping[str, Tenant],
    recorded: Mapping[str, Systems],
) -> dict[str, Desired]:
    """Return the clusters with their systems; those of invalid manifests stay as they are ``recorded``."""
    paths, wrong = files.of(SYSTEMS)
    unread = {*paths, *wrong} - tenants.keys()
    invalid = None if "" in wrong or files.unreadable else unread
    wanted: dict[str, list[Json]] = {}
    for name, tenant in sorted(tenants.items()):
        forms: dict[str, Json] = {}
        for cluster in tenant.clusters:
            environment = clusters[cluster].environment
            if environment not in forms:
                forms[environment] = stored_system(name, tenant.spec, environment)
            wanted.setdefault(cluster, []).append(forms[environment])
    changed = dict(clusters)
    for name in clusters.keys() & (wanted.keys() | recorded.keys()):
        systems = without_invalid(wanted.get(name, ()), recorded.get(name, ()), invalid)
        changed[name] = clusters[name].with_systems(systems)
    return changed


def _selected(system: System, clusters: Mapping[str, Desired]) -> Iterator[str]:
    """Yield the clusters of a system; its labels select none in which Roadstead applies nothing itself."""
    selector = system.spec.clusters
    wanted, names = selector.match_labels, frozenset(selector.names)
    for name, cluster in clusters.items():
        matches = wanted and not cluster.has_extension and wanted.items() <= _labels(cluster).items()
        if name in names or matches:
            yield name


def _labels(cluster: Desired) -> dict[str, str]:
    """Return the labels that a selector matches; class and environment come from the cluster's file."""
    return {**cluster.labels, ENVIRONMENT_LABEL: cluster.environment, CLASS_LABEL: cluster.cluster_class}


def _unknown(node: Node, tenant: Tenant, known: Collection[str]) -> list[Problem]:
    unknown_names = (
        (node.find(("spec", "clusters", "names", number)).mark, (number, name))
        for number, name in enumerate(tenant.spec.clusters.names)
        if name not in known
    )

    def describe(mark: Mark, entry: tuple[int, str]) -> Problem:
        number, name = entry
        near = nearest(name, known)
        right = f"did you mean {near}?" if near else f"add clusters/{name}/cluster.yaml, or remove the name"
        return problem_at(mark, f"spec.clusters.names[{number}]", f"there is no cluster {name}; {right}")

    return described(unknown_names, describe)


def _unknown_layers(node: Node, tenant: Tenant, files: Files) -> Iterator[Problem]:
    """Yield a problem for each label that names an environment or a class that does not exist."""
    for label, kind, folder in (
        (ENVIRONMENT_LABEL, "environment", ENVIRONMENTS),
        (CLASS_LABEL, "class", CLASSES),
    ):
        paths, wrong = files.of(folder)
        name = tenant.spec.clusters.match_labels.get(label)
        if name is not None and name not in paths and name not in wrong:
            mark = node.find(("spec", "clusters", "matchLabels", label)).mark
            message = unknown(kind, name, paths)
            yield problem_at(mark, f"spec.clusters.matchLabels.{label}", message)
    paths, wrong = files.of(ENVIRONMENTS)
    for name in tenant.spec.source.environments:
        if name not in paths and name not in wrong:
            mark = node.find(("spec", "source", "environments", name)).mark
            field_name = f"spec.source.environments.{name}"
            yield problem_at(mark, field_name, unknown("environment", name, paths))


def _out_of_reach(node: Node, tenant: Tenant, clusters: Mapping[str, Desired]) -> Iterator[Problem]:
    """Yield a problem for each cluster that the system names where Roadstead applies nothing itself."""
    for number, name in enumerate(tenant.spec.clusters.names):
        if name in clusters and clusters[name].has_extension:
            mark = node.find(("spec", "clusters", "names", number)).mark
            message = f"the flux.install of {name} is extension: Roadstead applies no system there; remove it"
            yield problem_at(mark, f"spec.clusters.names[{number}]", message)


def _not_its_own(node: Node, tenant: Tenant, clusters: Mapping[str, Desired]) -> Iterator[Problem]:
    """Yield the problem of an identity that is that of the platform's Flux on a cluster of the system."""
    source = tenant.spec.source
    for environment, identity in (
        ("", source.workload_identity),
        *((name, environment.workload_identity) for name, environment in source.environments.items()),
    ):
        if identity is None:
            continue
        of_flux = (
            name for name in tenant.clusters if clusters[name].flux_identity == identity.client_id.lower()
        )
        cluster = next(of_flux, None)
        if cluster is not None:
            place = ("environments", environment) if environment else ()
            path = ("spec", "source", *place, "workloadIdentity", "clientId")
            why = f"is the identity of the platform's Flux on {cluster}; give the system one of its own"
            yield problem_at(node.find(path).mark, ".".join(path), why)


def _crowded(
    tenants: Iterable[Tenant], clusters: Mapping[str, Desired], recorded: Mapping[str, Systems]
) -> Mapping[str, Problem]:
    """Return the problem of each system whose identity takes more federated credentials than Azure allows.

    Each cluster takes one: a token has the issuer of its cluster. What is recorded comes first, so that
    neither a new system nor a new cluster displaces what works.
    """
    of_tenants = {tenant.name: tenant for tenant in tenants}
    holders = (
        (client, ((tenant.name, client) not in _acting(recorded.get(cluster, ())), tenant.name, (cluster,)))
        for tenant in of_tenants.values()
        for cluster in tenant.clusters
        if (identity := tenant.spec.source.identity_in(clusters[cluster].environment))
        for client in [identity.client_id.lower()]
    )
    found: dict[str, Problem] = {}
    for client, taken, others in beyond(holders, lambda _: MOST_OF_AN_IDENTITY):
        of_systems = Counter(name for _, name, _ in taken)
        whose = some_of(
            [f"{name} (on {many(count, 'cluster')})" for name, count in of_systems.items()], SHOWN
        )
        why = (
            f"the identity {client} takes {MOST_OF_AN_IDENTITY} federated credentials, one for each cluster "
            f"of a system, and git has {len(taken)}: {whose}; give each {MOST_OF_AN_IDENTITY} clusters "
            "an identity: in environments, or with a system for each part of the clusters"
        )
        for _, name, (cluster, *_) in others:
            node = of_tenants[name].node
            place = of_tenants[name].spec.source.place_in(clusters[str(cluster)].environment)
            path = ("spec", "source", *place, "workloadIdentity", "clientId")
            if node is not None:
                found.setdefault(name, problem_at(node.find(path).mark, ".".join(path), why))
    return found


def _acting(systems: Systems) -> set[tuple[str, str]]:
    """Return which recorded systems of a cluster act as an identity, each with its client id."""
    identities = ((system["name"], system["source"].get("workloadIdentity")) for system in systems)
    return {(name, str(identity["clientId"]).lower()) for name, identity in identities if identity}


def _not_in_azure(node: Node, tenant: Tenant, clusters: Mapping[str, Desired]) -> Iterator[Problem]:
    """Yield what Azure does not take of managed namespaces, and a cluster where it manages none."""
    if tenant.spec.managed_namespaces is None:
        return
    for place, why in tenant.spec.refused_by_azure():
        path = (
            f"spec.{'.'.join(map(str, place))}"
            if place[0] != "namespaces"
            else f"spec.namespaces[{place[1]}]"
        )
        yield problem_at(node.find(("spec", *place)).mark, path, why)
    outside = next((name for name in tenant.clusters if clusters[name].is_attached), None)
    if outside is not None:
        mark = node.find(("spec", "managedNamespaces")).mark
        why = f"{outside} has provider: existing, where Azure manages no namespace; select AKS clusters only"
        yield problem_at(mark, "spec.managedNamespaces", why)


class _TakenNamespaces:
    """Which systems have a namespace; for two systems, one cluster that both are on is looked for once."""

    def __init__(self) -> None:
        self._systems: dict[str, list[Tenant]] = {}
        self._common: dict[tuple[str, str], str] = {}

    def work(self, tenant: Tenant) -> int:
        """Return how many systems have to be compared with this one."""
        return sum(len(self._systems.get(name, ())) for name in tenant.spec.namespaces)

    def add(self, namespace: str, tenant: Tenant) -> tuple[str, str] | None:
        """Take a namespace; return the system that has it on one of the same clusters, and that cluster."""
        others = self._systems.setdefault(namespace, [])
        shared = ((other.name, self._on_both(tenant, other)) for other in others if other is not tenant)
        first = next((found for found in shared if found[1]), None)
        others.append(tenant)
        return first

    def _on_both(self, tenant: Tenant, other: Tenant) -> str:
        key = (tenant.name, other.name)
        if key not in self._common:
            others = frozenset(other.clusters)
            self._common[key] = next((cluster for cluster in tenant.clusters if cluster in others), "")
        return self._common[key]


def _occupied(node: Node, tenant: Tenant, taken: _TakenNamespaces) -> list[Problem]:
    """Return a problem for each namespace that belongs to another system on one of the same clusters."""
    found = ((number, name, taken.add(name, tenant)) for number, name in enumerate(tenant.spec.namespaces))
    places = (
        (node.find(("spec", "namespaces", number)).mark, (number, name, *other))
        for number, name, other in found
        if other is not None
    )
    return described(places, lambda mark, entry: _belongs_to_another(mark, *entry))


def _belongs_to_another(mark: Mark, number: int, namespace: str, system: str, cluster: str) -> Problem:
    message = f"{namespace} on {cluster} belongs to the system {system}; choose another namespace"
    return problem_at(mark, f"spec.namespaces[{number}]", message)
