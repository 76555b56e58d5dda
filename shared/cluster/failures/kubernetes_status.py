"""What an API server answers when it refuses a request, and the error that it is. Pure.

Values of the ``Status`` object decide (``pkg/apis/meta/v1/types.go`` of kubernetes/apimachinery). Only where
it has none, a wording does that the API server puts before the text of others. That text is cut and
flattened: whoever wrote the webhook chose it, and it may repeat values of the object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shared.cluster.failures.catalogue import ADMISSION, ANY, KUBERNETES, CatalogueEntry
from shared.cluster.failures.errors import NamespaceTerminating, ReconcileError, Retryable, from_http
from shared.frozen import dataclass
from shared.masking import cut
from shared.sentences import some_of

LONGEST = 600
"""So many characters of what others say in a refusal are shown."""
_NAME = r"[A-Za-z0-9._-]{1,253}"
_DENIED = re.compile(
    rf'admission webhook "(?P<webhook>{_NAME})" denied the request(?:: )?(?P<said>.*)', re.DOTALL
)
"""Source: kubernetes/apiserver ``pkg/admission/plugin/webhook/errors/statuserror.go``."""
_CONSTRAINT = re.compile(rf"^\[(?P<policy>{_NAME})\] ", re.MULTILINE)
"""The constraints of Gatekeeper: open-policy-agent/gatekeeper ``pkg/webhook/policy.go``."""
_OF_AZURE = "azurepolicy-"
"""With this, the names of the constraints of Azure Policy begin."""
_KYVERNO = "blocked due to the following policies"
_KYVERNO_POLICY = re.compile(rf"^(?P<policy>{_NAME}): *$", re.MULTILINE)
"""The policies of Kyverno, each on a line of its own before its rules."""
_ADMISSION_POLICY = re.compile(
    rf"ValidatingAdmissionPolicy '(?P<policy>{_NAME})'(?: with binding '(?P<binding>{_NAME})')?"
    r" denied request: (?P<said>.*)",
    re.DOTALL,
)
"""Source: kubernetes/apiserver ``pkg/admission/plugin/policy/validating/dispatcher.go``."""
_POD_SECURITY = re.compile(r'violates PodSecurity "(?P<policy>[a-z0-9.:-]{1,60})": (?P<said>.*)', re.DOTALL)
_FAILED_WEBHOOK = re.compile(
    rf'failed calling webhook "(?P<webhook>{_NAME})"(?:[:;] )?(?P<said>.*)', re.DOTALL
)
"""Source: kubernetes/apiserver ``pkg/util/webhook/error.go``."""
_NO_DRY_RUN = re.compile(rf'admission webhook "(?P<webhook>{_NAME})" does not support dry run')
_CONVERSION = re.compile(
    r"conversion webhook for (?P<kind>[\w./-]+, Kind=\w+) (?P<said>(?:failed|returned)\b.*)", re.DOTALL
)
"""Source: kubernetes/apiextensions-apiserver ``pkg/apiserver/conversion/webhook_converter.go``."""
_QUOTA = re.compile(rf"exceeded quota: (?P<quota>{_NAME}), (?P<said>.*)", re.DOTALL)
"""Source: kubernetes/apiserver ``pkg/admission/plugin/resourcequota/controller.go``."""
_ENDING = re.compile(rf"namespace (?P<namespace>{_NAME}) is being terminated")
"""Source: kubernetes/apiserver ``pkg/admission/plugin/namespace/lifecycle/admission.go``."""
TERMINATING = "NamespaceTerminating"


@dataclass(frozen=True)
class StatusCause:
    """A cause in the details of a ``Status``; "" for what it does not have."""

    reason: str = ""
    message: str = ""
    field: str = ""


@dataclass(frozen=True)
class ApiRefusal:
    """The answer to a request that was refused: its HTTP status, and the values of its ``Status`` object.

    ``message`` is the text of the body where it is no such object. ``retry_after`` is in seconds, None
    where the API server asks for no wait.
    """

    status: int
    reason: str = ""
    message: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after: float | None = None
    request_id: str = ""

    @classmethod
    def of(
        cls,
        status: int,
        body: Mapping[str, Any],
        *,
        text: str = "",
        retry_after: float | None = None,
        request_id: str = "",
    ) -> ApiRefusal:
        """Read an answer, whatever form it has."""
        details = body.get("details")
        found = details if isinstance(details, Mapping) else {}
        listed = found.get("causes")
        causes = [cause for cause in listed if isinstance(cause, Mapping)] if isinstance(listed, list) else []
        seconds = found.get("retryAfterSeconds")
        if retry_after is None and isinstance(seconds, int) and seconds > 0:
            retry_after = float(seconds)
        return cls(
            status,
            _text(body, "reason"),
            _text(body, "message") or text,
            tuple(
                StatusCause(*(_text(cause, key) for key in ("reason", "message", "field")))
                for cause in causes
            ),
            retry_after,
            request_id,
        )

    @property
    def code(self) -> str:
        """The reason of the API server, or the HTTP status of an answer without one, as "HTTP 503"."""
        return self.reason or f"HTTP {self.status}"

    @property
    def entry(self) -> CatalogueEntry | None:
        """The entry for this refusal, None where the catalogue has none; causes that differ share none."""
        found = KUBERNETES.find(ANY, text=self.message)
        if found is not None:
            return found
        causes = {
            KUBERNETES.find(self.code, subcode=cause.reason, text=cause.message or self.message)
            for cause in self.causes
        }
        if len(causes) == 1:
            return causes.pop()
        return KUBERNETES.find(self.code, text="" if causes else self.message)


def _text(values: Mapping[str, Any], key: str) -> str:
    return str(values.get(key) or "")


def error_of(refusal: ApiRefusal, subject: str, *, secret: bool = False) -> ReconcileError:
    """Return the error of a refused request about a subject, such as "Deployment web in shop".

    For a Secret it has names, and nothing that others say: their text may repeat what is in it.
    """
    entry = refusal.entry
    message = f"{subject}: {_shown(refusal, entry, secret=secret)}"
    code, request_id, wait = refusal.code, refusal.request_id, refusal.retry_after
    if entry is None:
        return from_http(refusal.status, code, message, retry_after=wait, request_id=request_id)
    error = entry.kind(message, code=code, request_id=request_id)
    error.entry = entry.key
    if isinstance(error, Retryable):
        error.retry_after = wait
    if isinstance(error, NamespaceTerminating):
        error.namespace = _namespace(refusal)
    return error


def reported(message: str) -> CatalogueEntry | None:
    """Return the entry for a refusal by admission that another client reports, such as Flux, None for none.

    Rights are not among them: they are those of the other client.
    """
    return ADMISSION.find(ANY, text=message) or ADMISSION.find("Forbidden", text=message)


def is_denied(refusal: ApiRefusal) -> bool:
    """Return whether an admission policy refused the request, or a webhook that was asked is away."""
    return any(pattern.search(refusal.message) for pattern in (_DENIED, _ADMISSION_POLICY, _FAILED_WEBHOOK))


def _shown(refusal: ApiRefusal, entry: CatalogueEntry | None, *, secret: bool) -> str:
    """Return what an operator reads of a refusal: who refused it, and what that says."""
    who, said = _who(refusal)
    named = entry.key.partition("/")[2] if entry is not None else ""
    fallback = refusal.reason or named or f"HTTP {refusal.status}"
    shown = "" if secret else cut(" ".join(said.split()), LONGEST, "...")
    return ": ".join(filter(None, (who, shown))) or fallback


def _who(refusal: ApiRefusal) -> tuple[str, str]:
    """Return who refused the request, "" where it is the API server itself, and the text of it."""
    message = refusal.message
    for pattern, who in _WHO:
        found = pattern.search(message)
        if found is not None:
            named = found.groupdict()
            return who(named), named.get("said") or ""
    if any(cause.reason == TERMINATING for cause in refusal.causes):
        return f"the namespace {_namespace(refusal)} is being deleted", ""
    return "", message


def _denied(named: Mapping[str, str]) -> str:
    webhook, policies = f"the webhook {named['webhook']}", list(_policies(named["said"]))
    if not policies:
        return f"refused by {webhook}"
    named_policies = f"the {'policies' if len(policies) > 1 else 'policy'} {some_of(policies, 3)}"
    azure = " of Azure Policy" if any(policy.startswith(_OF_AZURE) for policy in policies) else ""
    return f"refused by {named_policies}{azure} ({webhook})"


def _policies(said: str) -> Iterator[str]:
    """Yield the policies that a webhook names, each once."""
    pattern = _KYVERNO_POLICY if _KYVERNO in said else _CONSTRAINT
    yield from dict.fromkeys(found["policy"] for found in pattern.finditer(said))


def _by_admission_policy(named: Mapping[str, str]) -> str:
    binding = f" (binding {named['binding']})" if named["binding"] else ""
    return f"refused by the ValidatingAdmissionPolicy {named['policy']}{binding}"


_WHO = (
    (_DENIED, _denied),
    (_ADMISSION_POLICY, _by_admission_policy),
    (_POD_SECURITY, lambda named: f"refused by the Pod Security level {named['policy']}"),
    (_FAILED_WEBHOOK, lambda named: f"the webhook {named['webhook']} does not answer"),
    (_NO_DRY_RUN, lambda named: f"the webhook {named['webhook']} does not support dry run"),
    (_CONVERSION, lambda named: f"the conversion webhook of {named['kind'].replace(', Kind=', ' ')} fails"),
    (_QUOTA, lambda named: f"the ResourceQuota {named['quota']} is used up"),
)
"""Who refuses, by the wording of the API server; in the order in which one may be within another."""


def _namespace(refusal: ApiRefusal) -> str:
    """Return the namespace that is being deleted, "" where no cause names it."""
    causes = (cause for cause in refusal.causes if cause.reason == TERMINATING)
    found = next(filter(None, (_ENDING.fullmatch(cause.message) for cause in causes)), None)
    return found["namespace"] if found else ""
