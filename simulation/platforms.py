"""What Flux applies from the fleet repository: a few contents, so that each is built once in a process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

APPS = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps, namespace: flux-system}\n"
BUDGET = 2
"""How many objects a commit may delete on a cluster without an approval; ``MAPS`` has more."""


@dataclass(frozen=True)
class GuardedContents:
    """What some contents have, and a commit takes away with an approval only.

    It is one object of a cluster, and ``files`` have more where it takes those along. Names of files are
    those in the repository.
    """

    name: str
    api_version: str
    kind: str
    object_name: str
    files: Mapping[str, bytes]
    namespace: str = "flux-system"


_PLATFORM = "platform/"
_IN_FLUX = "namespace: flux-system"
_NAMESPACE = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
_CLAIM = f"""\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: orders, {_IN_FLUX}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"""
_SET = f"""\
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: queue, {_IN_FLUX}}}
spec:
  serviceName: queue
  selector: {{matchLabels: {{app: queue}}}}
  template:
    metadata: {{labels: {{app: queue}}}}
    spec: {{containers: [{{name: queue, image: "example/queue:v1"}}]}}
"""
_DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: orders.example.com}
spec:
  group: example.com
  names: {kind: Order, listKind: OrderList, plural: orders, singular: order}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
_SOURCE = "sourceRef: {kind: GitRepository, name: flux-system}"
_ACCOUNT = "serviceAccountName: kustomize-controller"
"""Systems lock Flux down: what names no account acts as ``default``, which may do nothing."""
_PATH = f"""\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: below, {_IN_FLUX}}}
spec:
  interval: 10m
  path: ./below
  prune: true
  wait: true
  {_ACCOUNT}
  {_SOURCE}
"""
_RELEASE = f"""\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: shop, {_IN_FLUX}}}
spec:
  interval: 10m
  {_ACCOUNT}
  chart: {{spec: {{chart: ./charts/shop, {_SOURCE}}}}}
"""


def _map(name: str) -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, {_IN_FLUX}}}\n".encode()


NAMESPACE = GuardedContents("namespace", "v1", "Namespace", "shop", {f"{_PLATFORM}shop.yaml": _NAMESPACE}, "")
CLAIM = GuardedContents(
    "claim", "v1", "PersistentVolumeClaim", "orders", {f"{_PLATFORM}claim.yaml": _CLAIM.encode()}
)
SET = GuardedContents("set", "apps/v1", "StatefulSet", "queue", {f"{_PLATFORM}set.yaml": _SET.encode()})
DEFINITION = GuardedContents(
    "definition",
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "orders.example.com",
    {f"{_PLATFORM}definition.yaml": _DEFINITION.encode()},
    "",
)
PATH = GuardedContents(
    "path",
    "kustomize.toolkit.fluxcd.io/v1",
    "Kustomization",
    "below",
    {f"{_PLATFORM}path.yaml": _PATH.encode(), "below/map.yaml": _map("below")},
)
RELEASE = GuardedContents(
    "release",
    "helm.toolkit.fluxcd.io/v2",
    "HelmRelease",
    "shop",
    {
        f"{_PLATFORM}release.yaml": _RELEASE.encode(),
        "charts/shop/Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n",
        "charts/shop/templates/map.yaml": _map("of-a-chart"),
    },
)
MAPS = GuardedContents(
    "maps",
    "v1",
    "ConfigMap",
    "map-0",
    {f"{_PLATFORM}map-{number}.yaml": _map(f"map-{number}") for number in range(BUDGET + 1)},
)
"""More objects than the budget allows, none of which is guarded by itself."""
GUARDED = (NAMESPACE, CLAIM, SET, DEFINITION, PATH, RELEASE, MAPS)
TRIAL = GuardedContents(
    "trial",
    "v1",
    "Namespace",
    "trial",
    {f"{_PLATFORM}trial.yaml": b"apiVersion: v1\nkind: Namespace\nmetadata: {name: trial}\n"},
    "",
)
WATCHED = (*GUARDED, TRIAL)

USUAL, CHANGED, WHOLE = "usual", "changed", "whole"
UNAPPLIED, UNBUILT, INVALID = "unapplied", "unbuilt", "invalid"
MORE = "more"
"""The whole, and what no other content has."""
EDITIONS = tuple(f"edition-{number}" for number in range(4))
"""Contents that are as good as the whole, so commits can follow each other and none goes back."""
LESS: Mapping[str, GuardedContents] = {f"without-{guarded.name}": guarded for guarded in GUARDED}
"""The contents that have all that is guarded but one, by their names."""
HAS: Mapping[str, tuple[GuardedContents, ...]] = {
    **dict.fromkeys((USUAL, CHANGED), ()),
    MORE: WATCHED,
    **dict.fromkeys((WHOLE, *EDITIONS, UNAPPLIED, UNBUILT, INVALID), GUARDED),
    **{name: tuple(other for other in GUARDED if other != guarded) for name, guarded in LESS.items()},
}
"""What is guarded of each content."""
REFUSED = frozenset({UNBUILT, INVALID})
"""Those that no plan may release: kustomize does not build them, or no API server takes them."""
BROKEN = REFUSED | {UNAPPLIED}
"""Those that no cluster can apply; what corrects them has all that is guarded as well."""
_LATE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late, namespace: absent}\n"
_BAD = b"apiVersion: v1\nkind: Namespace\nmetadata: {name: Apps_Bad}\n"
_LOST = b"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [apps.yaml, shop.yaml, lost.yaml]
"""
_OWN: Mapping[str, Mapping[str, bytes]] = {
    CHANGED: {"apps.yaml": APPS + b"data: {version: '2'}\n"},
    UNAPPLIED: {"late.yaml": _LATE},
    UNBUILT: {"kustomization.yaml": _LOST},
    INVALID: {"bad.yaml": _BAD},
    **{edition: {"apps.yaml": APPS + f"data: {{version: {edition}}}\n".encode()} for edition in EDITIONS},
}


def platform_files(name: str) -> dict[str, bytes]:
    """Return the files of the repository that Flux applies."""
    own = {"apps.yaml": APPS, **_OWN.get(name, {})}
    guarded = {path: content for guarded in HAS[name] for path, content in guarded.files.items()}
    return guarded | {f"{_PLATFORM}{path}": content for path, content in own.items()}


def artifact_files(name: str) -> dict[str, bytes]:
    """Return the files of an artifact of that content: it has no chart, because Flux takes none from it."""
    files = platform_files(name).items()
    own = {path: content for path, content in files if path not in RELEASE.files}
    return {
        path: content.replace(b"kind: GitRepository", b"kind: OCIRepository") for path, content in own.items()
    }


def corrected(name: str) -> str:
    """Return what a person commits who corrects it."""
    return WHOLE if name in BROKEN else name
