"""What a cluster may refuse beyond the checks of an object: policies, webhooks, quotas, sizes, load.

A test, or a person, gives the cluster a case by its name. Texts and codes are those of the API server and of
the webhook, by their source: kubernetes/apiserver ``pkg/admission`` and ``pkg/server/filters``,
kubernetes/apiextensions-apiserver ``pkg/apiserver/conversion``, kubernetes/kube-aggregator ``pkg/apiserver``,
open-policy-agent/gatekeeper ``pkg/webhook/policy.go``. Kyverno's text is that of public reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from localcloud.kubernetes.schema.definitions import FieldProblem, invalid
from localcloud.kubernetes.world.api_errors import StatusError, invalid_fields
from localcloud.kubernetes.world.object_store import At


@dataclass(frozen=True)
class RefusedWrites:
    """A case of ``CASES`` for the objects of a kind, "" for all, with this in their name."""

    case: str
    kind: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        if self.case not in CASES:
            raise ValueError(f"no case {self.case!r}; there are {', '.join(CASES)}")

    def refuses(self, at: At) -> bool:
        """Return whether a write or delete of an object is refused."""
        return self.kind in ("", at.kind.kind) and self.name in at.name

    def error(self, at: At) -> StatusError:
        """Return the refusal of a write or delete of an object."""
        return CASES[self.case](at)


def _denied(webhook: str, code: int, reason: str, said: str) -> StatusError:
    return StatusError(code, reason, f'admission webhook "{webhook}" denied the request: {said}')


def _gatekeeper(at: At) -> StatusError:
    said = f"[no-privilege] privileged containers are not allowed: {at.name}\n[owners] an owner is missing"
    return _denied("validation.gatekeeper.sh", 403, "Forbidden", said)


def _azure_policy(at: At) -> StatusError:
    said = f"[azurepolicy-k8sazurev3noprivilege-1f2e3d] Privileged container is not allowed: {at.name}"
    return _denied("validation.gatekeeper.sh", 403, "Forbidden", said)


def _kyverno(at: At) -> StatusError:
    subject = f"{at.kind.kind}/{at.namespace}/{at.name}"
    said = (
        f"\n\nresource {subject} was blocked due to the following policies \n\n"
        "require-labels:\n  check-labels: 'validation error: the label team is required'\n"
    )
    return _denied("validate.kyverno.svc-fail", 400, "", said)


def _admission_policy(at: At) -> StatusError:
    message = "ValidatingAdmissionPolicy 'replica-limit' with binding 'all' denied request: too many replicas"
    return _forbidden(at, message, code=422, reason="Invalid", causes=({"message": message},))


def _pod_security(at: At) -> StatusError:
    return _forbidden(at, 'violates PodSecurity "restricted:latest": runAsNonRoot != true')


def _managed_by_arm(at: At) -> StatusError:
    """As MicrosoftDocs/SupportArticles-docs extensions/troubleshoot-managed-namespaces.md shows it."""
    message = f"Updating/deleting namespace {at.name} labels is not allowed because it is managed by ARM."
    return _forbidden(at, f"{message} Please update this namespace through the ARM API.")


def _forbidden(
    at: At,
    message: str,
    *,
    code: int = 403,
    reason: str = "Forbidden",
    causes: tuple[Mapping[str, str], ...] = (),
) -> StatusError:
    details = {"name": at.name, "group": at.kind.group, "kind": at.kind.plural}
    text = f'{at.kind.resource} "{at.name}" is forbidden: {message}'
    return StatusError(code, reason, text, details=details | ({"causes": list(causes)} if causes else {}))


def _away(why: str) -> Callable[[At], StatusError]:
    call = "failed to call webhook: Post"
    url = '"https://policy.guard.svc:443/validate?timeout=10s"'
    return lambda _: _internal(f'failed calling webhook "guard.example.org": {call} {url}: {why}')


def _internal(message: str) -> StatusError:
    text = f"Internal error occurred: {message}"
    return StatusError(500, "InternalError", text, details={"causes": [{"message": message}]})


def _conversion(at: At) -> StatusError:
    kind = f"{at.kind.api_version}, Kind={at.kind.kind}"
    why = 'Post "https://convert.guard.svc:443/convert?timeout=30s": context deadline exceeded'
    return StatusError(500, "", f"conversion webhook for {kind} failed: {why}")


def _quota(at: At) -> StatusError:
    count = f"count/{at.kind.plural}"
    message = f"exceeded quota: team-quota, requested: {count}=1, used: {count}=3, limited: {count}=3"
    return _forbidden(at, message)


def _limit_range(at: At) -> StatusError:
    return _forbidden(at, "maximum memory usage per Container is 1Gi, but limit is 2Gi")


def _immutable(at: At) -> StatusError:
    problem = invalid("spec.selector", {"app": at.name}, "field is immutable")
    return invalid_fields(at.kind, at.name, [problem])


def _stored_version(at: At) -> StatusError:
    stays = (
        "was previously a storage version, and must remain in spec.versions until a storage migration ensures"
    )
    text = f"missing from spec.versions; v1 {stays} no data remains persisted in v1"
    return invalid_fields(at.kind, at.name, [invalid("status.storedVersions[0]", "v1", text)])


def _not_resized(at: At) -> StatusError:
    field, text = "spec.resources.requests.storage", "field can not be less than status.capacity"
    problem = FieldProblem(field, "FieldValueForbidden", f"Forbidden: {text}")
    return invalid_fields(at.kind, at.name, [problem])


def _too_long(at: At) -> StatusError:
    problem = FieldProblem("data", "FieldValueTooLong", "Too long: may not be more than 1048576 bytes")
    return invalid_fields(at.kind, at.name, [problem])


def _cannot(at: At) -> StatusError:
    what = f'resource "{at.kind.plural}" in API group "{at.kind.group}"'
    where = f'in the namespace "{at.namespace}"' if at.namespace else "at the cluster scope"
    return _forbidden(at, f'User "6f1e" cannot patch {what} {where}')


def _escalation(at: At) -> StatusError:
    rights = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'
    grants = "is attempting to grant RBAC permissions not currently held"
    return _forbidden(at, f'user "6f1e" (groups=["system:authenticated"]) {grants}:\n{rights}')


CASES: Mapping[str, Callable[[At], StatusError]] = {
    "gatekeeper": _gatekeeper,
    "azure-policy": _azure_policy,
    "kyverno": _kyverno,
    "aks": lambda _: _denied(
        "aks-node-validating-webhook.azmk8s.io", 403, "Forbidden", "the object belongs to AKS"
    ),
    "managed-by-arm": _managed_by_arm,
    "validating-admission-policy": _admission_policy,
    "pod-security": _pod_security,
    "webhook-without-endpoints": _away('no endpoints available for service "policy"'),
    "webhook-timeout": _away("context deadline exceeded"),
    "webhook-certificate": _away("tls: failed to verify certificate: x509: certificate has expired"),
    "conversion-webhook": _conversion,
    "webhook-without-dry-run": lambda _: StatusError(
        400, "BadRequest", 'admission webhook "guard.example.org" does not support dry run'
    ),
    "exceeded-quota": _quota,
    "quota-demands-limits": lambda at: _forbidden(
        at, "failed quota: team-quota: must specify limits.memory for: app"
    ),
    "quota-not-counted": lambda at: _forbidden(
        at, f"status unknown for quota: team-quota, resources: count/{at.kind.plural}"
    ),
    "limit-range": _limit_range,
    "immutable-field": _immutable,
    "stored-version": _stored_version,
    "claim-not-resized": _not_resized,
    "field-too-long": _too_long,
    "request-too-large": lambda _: StatusError(
        413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"
    ),
    "object-too-large": lambda _: StatusError(500, "", "etcdserver: request is too large"),
    "no-permission": _cannot,
    "privilege-escalation": _escalation,
    "forbidden": lambda at: _forbidden(at, "a plugin of the API server does not allow it"),
    "leader-changed": lambda _: _internal("etcdserver: leader changed"),
    "starts-up": lambda at: _forbidden(at, "not yet ready to handle request"),
    "flow-control": lambda _: StatusError(
        429, "", "Too many requests, please try again later.", plain=True, retry_after=1
    ),
    "aggregated-api-down": lambda _: StatusError(503, "", "service unavailable", plain=True),
}
"""What each case answers."""
