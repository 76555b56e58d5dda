"""What a service account may do: the RBAC of Kubernetes, for those who write under its name.

Source: kubernetes/kubernetes ``plugin/pkg/auth/authorizer/rbac``, ``pkg/registry/rbac/validation/rule.go``: a
binding in a namespace grants its role there, one of the whole cluster everywhere, and nothing is denied. A
request about a Namespace object is in that namespace (``apiserver/pkg/endpoints/request/requestinfo.go``).
The text of a refusal: ``apiserver/pkg/endpoints/handlers/responsewriters/errors.go``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localcloud.kubernetes.world.api_errors import StatusError
from localcloud.kubernetes.world.default_roles import DEFAULT_ROLES, ClusterRole, Rule
from localcloud.kubernetes.world.kinds import BUILT_IN, NAMESPACE, ResourceKind
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Deletion, Object, WriteMode

_ROLE, _BINDING, _CLUSTER_ROLE, _CLUSTER_BINDING = (
    next(kind for kind in BUILT_IN if kind.kind == name)
    for name in ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
)
_GRANTING = (_ROLE, _BINDING, _CLUSTER_ROLE, _CLUSTER_BINDING)
_AT_ONCE = Deletion()


@dataclass(frozen=True)
class ServiceAccount:
    """An account by whose rights somebody writes; it need not exist for that."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """Its name as a user."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that it is in."""
        return (
            "system:serviceaccounts",
            f"system:serviceaccounts:{self.namespace}",
            "system:authenticated",
        )


class ServiceAccountWorld:
    """A world as a service account may use it; a method that it may not use raises ApiError (403)."""

    def __init__(self, world: KubernetesWorld, account: ServiceAccount) -> None:
        self._world, self._account = world, account
        self._read_at = 0
        self._rules: dict[str, Sequence[Rule]] = {}

    def kind(self, api_version: str, kind: str) -> ResourceKind | None:
        """Return a kind; everybody may discover them."""
        return self._world.kind(api_version, kind)

    def find(self, at: At) -> Object | None:
        """Return an object, or None."""
        self._require("get", at)
        return self._world.find(at)

    def apply(self, at: At, body: Any, write: WriteMode) -> Object:
        """Apply an object; one that does not exist takes the right to create it too."""
        self._require("patch", at)
        if self._world.find(at) is None:
            self._require("create", at)
        return self._world.apply(at, body, write)

    def delete(self, at: At, options: Deletion = _AT_ONCE) -> Object:
        """Delete an object."""
        self._require("delete", at)
        return self._world.delete(at, options)

    def _require(self, verb: str, at: At) -> None:
        namespace = at.name if at.kind == NAMESPACE else at.namespace
        if any(_covers(rule, verb, at) for rule in self._rules_in(namespace)):
            return
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        cannot = f'cannot {verb} resource "{at.kind.plural}" in API group "{at.kind.group}" {where}'
        text = f'{at.kind.resource} "{at.name}" is forbidden: User "{self._account.user}" {cannot}'
        raise StatusError(403, "Forbidden", text)

    def _rules_in(self, namespace: str) -> Sequence[Rule]:
        """Return the rules of the account in a namespace, read again after a write of one of them."""
        self._world.tick()
        newest = max(map(self._world.written, _GRANTING))
        if newest != self._read_at:
            self._read_at, self._rules = newest, {}
        if namespace not in self._rules:
            self._rules[namespace] = [*_rules(self._world, self._account, namespace)]
        return self._rules[namespace]


def _rules(world: KubernetesWorld, account: ServiceAccount, namespace: str) -> Iterator[Rule]:
    for binding in world.list(_CLUSTER_BINDING)[0]:
        if _binds(binding, account, ""):
            yield from _rules_of(world, binding["roleRef"], "")
    for binding in world.list(_BINDING, namespace)[0] if namespace else ():
        if _binds(binding, account, namespace):
            yield from _rules_of(world, binding["roleRef"], namespace)


def _binds(binding: Object, account: ServiceAccount, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        kind, name = subject["kind"], subject["name"]
        place = subject.get("namespace") or namespace
        if kind == "ServiceAccount" and (place, name) == (account.namespace, account.name):
            return True
        if (kind == "User" and name == account.user) or (kind == "Group" and name in account.groups):
            return True
    return False


def _rules_of(world: KubernetesWorld, ref: Mapping[str, str], namespace: str) -> Sequence[Rule]:
    if ref["kind"] == _ROLE.kind:
        role = world.find(At(_ROLE, ref["name"], namespace))
        return (role or {}).get("rules") or ()
    return list(_aggregated(ref["name"], _cluster_roles(world), frozenset()))


def _cluster_roles(world: KubernetesWorld) -> Mapping[str, ClusterRole]:
    """Return all cluster roles; a selector of an aggregation counts by its first label."""
    stored = {}
    for document in world.list(_CLUSTER_ROLE)[0]:
        selectors = (document.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
        label = next((key for selector in selectors for key in selector.get("matchLabels") or ()), "")
        metadata = document["metadata"]
        stored[metadata["name"]] = ClusterRole(
            document.get("rules") or (), metadata.get("labels") or {}, aggregates=label
        )
    return {**DEFAULT_ROLES, **stored}


def _aggregated(name: str, roles: Mapping[str, ClusterRole], seen: frozenset[str]) -> Iterator[Rule]:
    role = roles.get(name)
    if role is None or name in seen:
        return
    yield from role.rules
    if role.aggregates:
        for other, other_role in roles.items():
            if other_role.labels.get(role.aggregates) == "true":
                yield from _aggregated(other, roles, seen | {name})


def _covers(rule: Rule, verb: str, at: At) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("verbs"), verb)
        and _has(rule.get("apiGroups"), at.kind.group)
        and _has(rule.get("resources"), at.kind.plural)
        and (not names or at.name in names)
    )


def _has(values: Sequence[str] | None, value: str) -> bool:
    return "*" in (values or ()) or value in (values or ())
