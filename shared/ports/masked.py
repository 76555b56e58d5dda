"""Ports without secrets: texts of services are masked when they come in, and all texts before they leave.

An error of a service is masked where its port raises it, before anything shortens it. What is stored or
published is masked where it leaves, as text that others may have written: a condition of Flux, the status of
a resource and a reason of an act come back to whoever wrote them. What decides or identifies, such as a
manifest, a name or a commit, is never changed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from shared.cluster.failures.errors import ReconcileError
from shared.kubernetes.kubeconfig import Kubeconfig
from shared.masking import Masker, use
from shared.ports import Kubernetes, Ports
from shared.ports.services import Services, Vaults, VaultSecret
from shared.resource_ids import ClusterId

NAMES = frozenset(
    {
        *("", "name", "uid", "cluster", "clusters", "commit", "digest", "etag", "step", "type", "phase"),
        *("recipe", "kind", "owner", "life", "installation", "installations", "overruled", "predecessors"),
        "former",
        *("planning", "in_flight", "deletion", "approve_again", "branch", "queue"),
        *("state", "context", "target", "target_url", "conclusion", "path"),
        *("action", "by_id", "subscription", "subscriptions", "resource", "ca", "unmanaged", "undecided"),
        *("check", "stage", "added"),
        *("key", "subject", "names", "environment", "location", "labels"),
        *("values", "commits", "declined", "parents"),
        *("replacing", "ready", "artifacts"),
    }
)
"""The fields that identify or decide something. Any other string may be what a service or a person wrote."""
LEFT = frozenset({"document", "plan", "endpoints"})
"""What git asks for, and is carried out."""
_PUBLISHING = ("state", "git_host", "routes")
_OTHERS = ("plans", "previews", "jobs", "changes", "deletes", "azure", "kubernetes")
_SERVICES = ("routes", "telemetry", "exports", "endpoints", "monitor", "registries", "vulnerabilities")
_PORTS = ("connect", "open", "other")
"""What returns a port."""
_BARE_TEXTS = ("write_comment", "open_issue", "comment_issue")


def masked(ports: Ports, mask: Masker) -> Ports:
    """Return the ports with every text masked; what is cut before it reaches them is masked from now on."""
    use(mask)
    wrapped = _wrapped(ports, ("state", "git_host", *_OTHERS), mask)
    wrapped["vaults"] = _Vaults(ports.vaults, mask)
    wrapped["kubernetes"] = _MaskedKubernetes(ports.kubernetes, mask)
    services = _wrapped(ports.services, _SERVICES, mask)
    probes = {name: _MaskedPort(probe, mask, texts=False) for name, probe in ports.services.probes.items()}
    return replace(ports, **wrapped, services=replace(ports.services, **services, probes=probes))


def _wrapped(ports: Ports | Services, names: Sequence[str], mask: Masker) -> dict[str, Any]:
    return {name: _MaskedPort(getattr(ports, name), mask, texts=name in _PUBLISHING) for name in names}


class _Vaults:
    """The vaults: what they give out is masked from then on, before anything else can see it."""

    def __init__(self, inner: Vaults, mask: Masker) -> None:
        self._inner, self._mask = _MaskedPort(inner, mask, texts=False), mask

    def secret(self, vault: str, name: str) -> VaultSecret:
        """Return the newest version of a secret."""
        found: VaultSecret = self._inner.secret(vault, name)
        self._mask.learn(found.value)
        return found


class _MaskedKubernetes:
    """The clusters: the credential in a kubeconfig of a vault is masked by itself, too."""

    def __init__(self, inner: Kubernetes, mask: Masker) -> None:
        self._inner, self._mask = _MaskedPort(inner, mask, texts=False), mask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def open(self, cluster: ClusterId, kubeconfig: Kubeconfig) -> Any:
        """Return the API of a cluster that is not in Azure, with its errors masked."""
        for secret in filter(None, (kubeconfig.token, kubeconfig.key.decode(errors="replace"))):
            self._mask.learn(secret)
        return self._inner.open(cluster, kubeconfig)


class _MaskedPort:
    """A port whose errors are masked, and with ``texts`` also what it is given."""

    def __init__(self, inner: Any, mask: Masker, *, texts: bool) -> None:
        self._inner, self._mask, self._texts = inner, mask, texts

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._inner, name)
        except ReconcileError as error:
            self._mask_error(error)
            raise
        if not callable(found):
            return found
        method: Callable[..., Any] = found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._texts:
                # Comments and issues are the only bare texts that are published.
                own = "body" if name in _BARE_TEXTS else ""
                args = tuple(self._text(document, own) for document in args)
                kwargs = {key: self._text(document, own) for key, document in kwargs.items()}
            try:
                result = method(*args, **kwargs)
            except ReconcileError as error:
                self._mask_error(error)
                raise
            if name in _PORTS:
                return _MaskedPort(result, self._mask, texts=self._texts)
            return result

        return call

    def _mask_error(self, error: ReconcileError) -> None:
        error.args = tuple(self._mask(str(document)) for document in error.args)
        error.code, error.request_id = self._mask(error.code), self._mask(error.request_id)

    def _text(self, value: Any, name: str = "") -> Any:
        """Return a value with its texts masked; the same object where there is nothing to mask."""
        if isinstance(value, str):
            text = value if name in NAMES else self._mask.of_others(value)
            return value if text == value else text
        if isinstance(value, tuple | list):
            items = [self._text(item, name) for item in value]
            return value if all(map(operator.is_, items, value)) else type(value)(items)
        if not is_dataclass(value) or isinstance(value, type):
            return value
        changed = {}
        for field in fields(value):
            before = getattr(value, field.name)
            after = before if field.name in LEFT else self._text(before, field.name)
            if after is not before:
                changed[field.name] = after
        return replace(value, **changed) if changed else value
