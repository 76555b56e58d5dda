"""Which kinds the API servers of a cluster know, and what is wrong with an object of one.

A kind is Kubernetes' own (``published``), retired, or of a definition: of the platform, or of the components
of Flux. A kind of none of these may be on the cluster all the same, by a chart or an add-on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property

from shared.frozen import dataclass, field
from shared.json_tree import Json
from shared.language.resolve.problems import nearest
from shared.platform.schemas import published
from shared.platform.schemas.fields import NO_FIELD, Fault, Minor, faults_of, faults_of_kind

RETIRED: Mapping[tuple[str, str], tuple[str, str]] = {
    (api_version, kind): (since, instead)
    for api_version, since, kinds in (
        ("extensions/v1beta1", "1.16", {"apps/v1": "Deployment DaemonSet ReplicaSet"}),
        ("extensions/v1beta1", "1.16", {"networking.k8s.io/v1": "NetworkPolicy"}),
        ("extensions/v1beta1", "1.22", {"networking.k8s.io/v1": "Ingress"}),
        ("extensions/v1beta1", "1.16", {"": "PodSecurityPolicy"}),
        ("apps/v1beta1", "1.16", {"apps/v1": "Deployment StatefulSet ControllerRevision"}),
        (
            "apps/v1beta2",
            "1.16",
            {"apps/v1": "Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision"},
        ),
        (
            "admissionregistration.k8s.io/v1beta1",
            "1.22",
            {
                "admissionregistration.k8s.io/v1": "MutatingWebhookConfiguration "
                "ValidatingWebhookConfiguration"
            },
        ),
        (
            "apiextensions.k8s.io/v1beta1",
            "1.22",
            {"apiextensions.k8s.io/v1": "CustomResourceDefinition"},
        ),
        ("apiregistration.k8s.io/v1beta1", "1.22", {"apiregistration.k8s.io/v1": "APIService"}),
        (
            "certificates.k8s.io/v1beta1",
            "1.22",
            {"certificates.k8s.io/v1": "CertificateSigningRequest"},
        ),
        ("coordination.k8s.io/v1beta1", "1.22", {"coordination.k8s.io/v1": "Lease"}),
        ("networking.k8s.io/v1beta1", "1.22", {"networking.k8s.io/v1": "Ingress IngressClass"}),
        *(
            (
                f"rbac.authorization.k8s.io/{version}",
                "1.22",
                {"rbac.authorization.k8s.io/v1": "Role RoleBinding ClusterRole ClusterRoleBinding"},
            )
            for version in ("v1alpha1", "v1beta1")
        ),
        ("scheduling.k8s.io/v1beta1", "1.22", {"scheduling.k8s.io/v1": "PriorityClass"}),
        (
            "storage.k8s.io/v1beta1",
            "1.22",
            {"storage.k8s.io/v1": "CSIDriver CSINode StorageClass VolumeAttachment"},
        ),
        ("storage.k8s.io/v1beta1", "1.27", {"storage.k8s.io/v1": "CSIStorageCapacity"}),
        ("batch/v1beta1", "1.25", {"batch/v1": "CronJob"}),
        ("batch/v2alpha1", "1.21", {"batch/v1": "CronJob"}),
        ("discovery.k8s.io/v1beta1", "1.25", {"discovery.k8s.io/v1": "EndpointSlice"}),
        ("events.k8s.io/v1beta1", "1.25", {"events.k8s.io/v1": "Event"}),
        ("autoscaling/v2beta1", "1.25", {"autoscaling/v2": "HorizontalPodAutoscaler"}),
        ("autoscaling/v2beta2", "1.26", {"autoscaling/v2": "HorizontalPodAutoscaler"}),
        ("policy/v1beta1", "1.25", {"policy/v1": "PodDisruptionBudget"}),
        ("policy/v1beta1", "1.25", {"": "PodSecurityPolicy"}),
        ("node.k8s.io/v1beta1", "1.25", {"node.k8s.io/v1": "RuntimeClass"}),
        *(
            (
                f"flowcontrol.apiserver.k8s.io/{version}",
                since,
                {"flowcontrol.apiserver.k8s.io/v1": "FlowSchema PriorityLevelConfiguration"},
            )
            for version, since in (("v1beta1", "1.26"), ("v1beta2", "1.29"))
        ),
    )
    for instead, names in kinds.items()
    for kind in names.split()
}
"""What no version here serves: since when, and what replaces it, "" for nothing.

Source: kubernetes.io/docs/reference/using-api/deprecation-guide."""


class KindState(Enum):
    """What is known of a kind: it is defined, nothing serves it, Flux is without it, or nobody knows it."""

    DEFINED = "defined"
    REFUSED = "refused"
    NOT_INSTALLED = "not installed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class KnownKinds:
    """The kinds of clusters of one version; ``definitions`` are the specs of theirs, by group and kind.

    ``knows_flux``: the definitions of Flux are among them, so a kind of Flux that is not is not installed.
    Where they are not, as with the extension, and where one has no fields, those that Flux publishes count.
    """

    minor: Minor
    definitions: Mapping[tuple[str, str], Json] = field(default_factory=dict)
    knows_flux: bool = False

    @classmethod
    def of(cls, version: str, definitions: Iterable[Json]) -> KnownKinds:
        """Return the kinds of a version of Kubernetes, "" for an unknown one, with these definitions."""
        found: dict[tuple[str, str], Json] = {}
        for definition in definitions:
            spec = definition.get("spec")
            names = spec.get("names") if isinstance(spec, Mapping) else None
            if isinstance(spec, Mapping) and isinstance(names, Mapping):
                found[str(spec.get("group")), str(names.get("kind"))] = spec
        knows_flux = any(group.endswith("toolkit.fluxcd.io") for group, _ in found)
        return cls(published.minor_of(version), found, knows_flux)

    def is_namespaced(self, manifest: Json) -> bool:
        """Return whether an object is one of a namespace; False where nobody knows."""
        api_version, kind = _named(manifest)
        own = published.kinds().get((api_version, kind))
        if own is not None:
            return own.is_namespaced
        spec = self.definitions.get((_group(api_version), kind))
        return spec is not None and spec.get("scope") == "Namespaced"

    def right_api(self, group: str, kind: str) -> str:
        """Return where a kind is that a group of Kubernetes' own lacks, "" where it has it, or nobody has.

        Any other group may have a kind of the same name, such as ``serving.knative.dev`` its Service.
        """
        if group not in published.groups() or (group, kind) in self.definitions:
            return ""
        having = [
            api
            for (api, name), found in published.kinds().items()
            if name == kind and self.minor in found.versions
        ]
        is_there = any(_group(api) == group for api in having)
        return "" if is_there or not having else max(having, key=_maturity)

    def standing(self, manifest: Json) -> tuple[KindState, str]:
        """Return what is known of an object's kind, and what is wrong with it."""
        named = _named(manifest)
        if named not in self._standings:
            self._standings[named] = self._standing(*named)
        return self._standings[named]

    @cached_property
    def _standings(self) -> dict[tuple[str, str], tuple[KindState, str]]:
        return {}

    def _standing(self, api_version: str, kind: str) -> tuple[KindState, str]:
        group = _group(api_version)
        own = published.kinds().get((api_version, kind))
        if own is not None:
            wrong = "" if self.minor in own.versions else self._not_served(api_version, kind, own.versions)
            return (KindState.REFUSED, wrong) if wrong else (KindState.DEFINED, "")
        spec = self.definitions.get((group, kind))
        if spec is not None:
            return self._of_version(spec, api_version, kind)
        if not self.knows_flux and (api_version, kind) in published.flux_schemas():
            return KindState.DEFINED, ""
        if (api_version, kind) in RETIRED:
            since, instead = RETIRED[api_version, kind]
            use = (
                f"write {instead}, whose fields may differ"
                if instead
                else "Pod Security Admission replaces it"
            )
            return KindState.REFUSED, f"{api_version} {kind} is not served since Kubernetes {since}; {use}"
        return self._of_nobody(api_version, kind)

    def faults(self, manifest: Json) -> Iterator[Fault]:
        """Yield the fields of an object of a known kind that are wrong."""
        api_version, kind = _named(manifest)
        own = published.kinds().get((api_version, kind))
        if own is not None:
            yield from faults_of_kind(own.definition, self.minor, manifest)
            return
        yield from faults_of(self._schema(api_version, kind), manifest)

    def doubts(self, manifest: Json) -> Iterator[Fault]:
        """Yield the fields of an object of Flux that its published version lacks; a newer one may have it."""
        schema = published.closed_flux_schemas().get(_named(manifest))
        known = set(self.faults(manifest)) if schema else set()
        for path, message in faults_of(schema, manifest) if schema else ():
            if message.startswith(NO_FIELD) and (path, message) not in known:
                in_version = f"{NO_FIELD} in Flux {published.flux_version()}"
                yield path, in_version + message.removeprefix(NO_FIELD)

    def _schema(self, api_version: str, kind: str) -> Json:
        """Return the schema of a custom kind: the published one of Flux where a definition has no fields."""
        spec = self.definitions.get((_group(api_version), kind)) or {}
        version = api_version.rpartition("/")[2]
        own = next(
            (served.get("schema") for served in spec.get("versions") or () if served.get("name") == version),
            None,
        )
        schema: Json = (own or {}).get("openAPIV3Schema") or {}
        if not ((schema.get("properties") or {}).get("spec") or {}).get("properties"):
            return published.flux_schemas().get((api_version, kind), schema)
        return {} if spec.get("preserveUnknownFields") else schema

    def _not_served(self, api_version: str, kind: str, versions: tuple[Minor, ...]) -> str:
        here = f"{api_version} {kind}"
        if self.minor < versions[0]:
            return f"{here} is served from Kubernetes {_text(versions[0])} on, and not by {_text(self.minor)}"
        instead = self._served_instead(api_version, kind)
        following = next(minor for minor in published.minors() if minor > versions[-1])
        return f"{here} is not served since Kubernetes {_text(following)}{instead}"

    def _served_instead(self, api_version: str, kind: str) -> str:
        group = _group(api_version)
        served = [
            other
            for (other, other_kind), found in published.kinds().items()
            if other_kind == kind and _group(other) == group and self.minor in found.versions
        ]
        return f"; write {max(served, key=_maturity)}" if served else ""

    def _of_version(self, spec: Json, api_version: str, kind: str) -> tuple[KindState, str]:
        versions = [version for version in spec.get("versions") or () if isinstance(version, Mapping)]
        served = [str(version.get("name")) for version in versions if version.get("served")]
        group, _, version = api_version.rpartition("/")
        if version in served:
            return KindState.DEFINED, ""
        newest = f"{group}/{max(served, key=_maturity)}" if served else "another version"
        return (
            KindState.REFUSED,
            f"{api_version} {kind} is not served: its definition has no {version}; write {newest}",
        )

    def _of_nobody(self, api_version: str, kind: str) -> tuple[KindState, str]:
        group = _group(api_version)
        flux = [
            other
            for other, other_kind in published.flux_schemas()
            if other_kind == kind and _group(other) == group
        ]
        if flux and api_version not in flux:
            return KindState.NOT_INSTALLED, (
                f"Flux {published.flux_version()} serves no {api_version} {kind}, so it applies nothing of "
                f"its Kustomization; write {max(flux, key=_maturity)}, whose fields may differ"
            )
        if self.knows_flux and group.endswith("toolkit.fluxcd.io"):
            return KindState.NOT_INSTALLED, (
                f"the components of Flux here do not define {api_version} {kind}, so Flux applies nothing of "
                "its Kustomization, unless something else brings it; export them with the controller of this "
                "kind (flux install --components-extra), or correct the name"
            )
        same_kind = [other for other, other_kind in published.kinds() if other_kind == kind]
        served = [other for other in same_kind if self.minor in published.kinds()[other, kind].versions]
        groups = published.groups()
        if group in groups or "." not in group:
            if served:
                return (
                    KindState.REFUSED,
                    f"there is no {kind} in {api_version}; write {max(served, key=_maturity)}",
                )
            kinds = [other_kind for other, other_kind in published.kinds() if _group(other) == group]
            near = nearest(kind, sorted({*kinds, *(name for _, name in self.definitions)}))
            hint = f"; did you mean {near}?" if near else ""
            return KindState.REFUSED, f"Kubernetes has no kind {kind} in {api_version}{hint}"
        near_group = nearest(group, sorted(groups))
        meant = [other for other in served if near_group and _group(other) == near_group]
        if meant:
            return (
                KindState.REFUSED,
                f"there is no {kind} in {api_version}; write {max(meant, key=_maturity)}",
            )
        return KindState.UNKNOWN, ""


def _named(manifest: Json) -> tuple[str, str]:
    return str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or "")


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0] if "/" in api_version else ""


def _text(minor: Minor) -> str:
    return ".".join(map(str, minor))


def _maturity(api_version: str) -> tuple[bool, bool, str]:
    """Return what makes one version better than another: v2 before v1, that before v1beta1 and v1alpha1."""
    version = api_version.rpartition("/")[2]
    return "alpha" not in version, "beta" not in version, version
