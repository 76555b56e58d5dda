"""Whether Flux has reconciled its GitRepository and its Kustomization as they are now.

The rules are those of the controllers (fluxcd/source-controller ``internal/reconcile``, and
fluxcd/kustomize-controller ``internal/controller/kustomization_controller.go``):

- Each condition has an ``observedGeneration`` of its own. ``status.observedGeneration`` is raised only by a
  success, and kustomize-controller raises it for a suspended Kustomization too; it is not read here.
- At the end of every reconciliation, ``status.lastHandledReconcileAt`` becomes the value that the annotation
  ``reconcile.fluxcd.io/requestedAt`` had at its start.
- A Kustomization that failed keeps the ``lastAppliedRevision`` of its last success.
- Of a HelmRelease, ``Ready`` repeats ``Remediated`` once a failure was rolled back or uninstalled. What
  failed stays in ``Released`` or ``TestSuccess`` (giantswarm/backstage#2008).
- ``Stalled`` says that Flux does not try again by itself, also where ``Ready`` is unknown (fluxcd/pkg
  ``runtime/conditions``, kubernetes-sigs/cli-utils ``pkg/kstatus``).
"""

from __future__ import annotations

import re

from shared.frozen import dataclass
from shared.json_tree import Json
from shared.language.pin import DIGEST
from shared.masking import cut

REQUESTED_AT = "reconcile.fluxcd.io/requestedAt"
"""Annotation that asks Flux to reconcile an object now."""
_SHOWN = 300
"""How many characters of a message of Flux are shown."""
_OF_SECRET = re.compile(r"(Secret/\S+ (?:dry-run|apply) failed(?: \(\w+\))?).*", re.DOTALL)
"""What Flux reports of a refused Secret; what follows it can quote the Secret's data."""

_FORMER = re.compile(r".+/([0-9a-f]{40})")

WAITS_FOR_ANOTHER = "DependencyNotReady"
"""The reason of Ready while an object of Flux waits for those that its ``dependsOn`` names."""
_PASSING = (WAITS_FOR_ANOTHER, "SourceNotReady", "HealthCheckCanceled")
"""Reasons that usually pass in a moment: a HelmRelease has the second after each change of its chart and each
start of Flux (fluxcd/helm-controller#1252, #813), a Kustomization the third when a newer commit comes."""
_NO_ARTIFACT = "artifact not found"
"""What a Kustomization says instead of the second (kustomize-controller ``kustomization_controller.go``)."""
_TRIED_AGAIN = (*_PASSING, "ArtifactFailed")
"""Reasons with which Flux always tries again. A Kustomization may still be ``Stalled`` then, by what was:
that ends only where it is applied again (fluxcd/kustomize-controller ``internal/controller``)."""


@dataclass(frozen=True)
class Ready:
    """Flux has reconciled the object since the request; ``revision`` is what it fetched, or applied."""

    revision: str


@dataclass(frozen=True)
class Progressing:
    """Flux is at work, or has not seen the object yet."""

    message: str


@dataclass(frozen=True)
class Attempt:
    """What Flux tried to apply and could not: ``revision`` is "" where no new revision failed.

    ``applied`` is what it applied last, "" for nothing, and ``path`` where that has the manifests, "" for the
    root and where it is unknown.
    """

    revision: str = ""
    applied: str = ""
    path: str = ""


NO_ATTEMPT = Attempt()


@dataclass(frozen=True)
class FluxFailure:
    """Flux tried and failed: its own ``reason`` and ``message``. It tries again, unless it ``gave_up``."""

    reason: str
    message: str
    attempt: Attempt = NO_ATTEMPT
    gave_up: bool = False

    @property
    def passes(self) -> bool:
        """Whether it usually passes in a moment."""
        return self.reason in _PASSING or _NO_ARTIFACT in self.message


@dataclass(frozen=True)
class Suspended:
    """Somebody suspended the object, so Flux does nothing with it."""


Readiness = Ready | Progressing | FluxFailure | Suspended


def readiness(live: Json, request: str) -> Readiness:
    """Judge a Flux object; ``request`` is the value of the annotation that we set.

    A request of somebody else counts as well: it replaced ours, so it is newer.
    """
    if (live.get("spec") or {}).get("suspend"):
        return Suspended()
    status, metadata = live.get("status") or {}, live["metadata"]
    annotation = (metadata.get("annotations") or {}).get(REQUESTED_AT)
    handled = status.get("lastHandledReconcileAt")
    if not handled or handled not in (request, annotation):
        return Progressing("Flux has not seen the request to reconcile it yet")
    return reconciled(live)


def reconciled(live: Json) -> Readiness:
    """Judge a Flux object that nobody asked Flux to reconcile, and that is not suspended."""
    status, ready = live.get("status") or {}, ready_condition(live)
    if ready is None or ready.get("observedGeneration", 0) < live["metadata"].get("generation", 0):
        return Progressing("Flux has not reconciled its newest version yet")
    if ready.get("status") == "True":
        return Ready(_revision(status))
    stalled = _condition(live, "Stalled", "True")
    if ready.get("status") == "False" or stalled is not None:
        cause = _cause(live, ready, stalled)
        reason = str(cause.get("reason", ""))
        gave_up = stalled is not None and reason not in _TRIED_AGAIN
        return FluxFailure(reason, message_of(cause), attempt_of(live), gave_up)
    return Progressing(f"{ready.get('reason', '')}: {message_of(ready)}")


def _cause(live: Json, ready: Json, stalled: Json | None) -> Json:
    """Return the condition that says what failed: not how that was undone, nor that Flux gave up."""
    undone = _condition(live, "Remediated")
    is_undone = undone is not None and undone.get("reason") == ready.get("reason")
    if is_undone or ready.get("status") != "False":
        failed = [found for kind in _OF_RELEASES if (found := _condition(live, kind, "False"))]
        if failed:
            return max(failed, key=lambda condition: str(condition.get("lastTransitionTime") or ""))
    return ready if ready.get("status") == "False" or stalled is None else stalled


_OF_RELEASES = ("TestSuccess", "Released")


def _condition(live: Json, kind: str, status: str = "") -> Json | None:
    """Return a condition of the newest version of an object, and with this status; None for none."""
    for condition in (live.get("status") or {}).get("conditions") or ():
        is_new = condition.get("observedGeneration", 0) >= live["metadata"].get("generation", 0)
        if condition.get("type") == kind and is_new and status in ("", condition.get("status")):
            return dict(condition)
    return None


def attempt_of(live: Json) -> Attempt:
    """Return what an object that failed tried to apply."""
    status, spec = live.get("status") or {}, live.get("spec") or {}
    tried, applied = status.get("lastAttemptedRevision"), status.get("lastAppliedRevision")
    revision = str(tried) if tried and tried != applied else ""
    return Attempt(revision, str(applied or ""), str(spec.get("path") or ""))


def ready_condition(live: Json) -> Json | None:
    """Return the condition Ready of an object, None while it has none."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition.get("type") == "Ready"), None)


def message_of(condition: Json) -> str:
    """Return the message of a condition as it may be shown: short, and without the data of a Secret."""
    return cut(_OF_SECRET.sub(r"\1", str(condition.get("message", ""))).strip(), _SHOWN)


def _revision(status: Json) -> str:
    """Return what a GitRepository fetched, or a Kustomization applied last; "" for nothing."""
    return str((status.get("artifact") or {}).get("revision") or status.get("lastAppliedRevision") or "")


def last_applied(kustomization: Json | None) -> str:
    """Return what a Kustomization applied last, "" for nothing, and for one that does not exist."""
    return str(((kustomization or {}).get("status") or {}).get("lastAppliedRevision") or "")


def pulled_in(revision: str, wanted: str) -> str:
    """Return the commit of a revision, or where one is ``wanted``, the digest of "latest@sha256:..."."""
    return revision.rpartition("@")[2] if wanted.startswith(DIGEST) else commit_of(revision)


def commit_of(revision: str) -> str:
    """Return the commit of a revision such as "main@sha1:8f3c..."; "" for another kind of revision.

    The form is that of fluxcd/pkg ``git.Commit.String``; before Flux 2.0 it was "main/8f3c...", and Azure may
    still show that (``sourceSyncedCommitId`` in azure-rest-api-specs).
    """
    _, found, digest = revision.rpartition("@")
    algorithm, _, commit = digest.partition(":")
    if found and algorithm in ("sha1", "sha256"):
        return commit
    former = _FORMER.fullmatch(revision)
    return former[1] if former else ""


_CREDENTIALS = "set FLUX_GIT_PASSWORD to a token that may read the repository, and deploy"
_GIT_PROBLEMS = (
    (
        ("authentication required", "authorization failed", "invalid credentials", "bad credentials"),
        f"The git host refused the credentials: {_CREDENTIALS}.",
    ),
    (
        ("repository not found", "repository does not exist"),
        "Correct spec.flux.repository. Git hosts also answer so for a private repository without access: "
        f"{_CREDENTIALS}.",
    ),
    (
        ("remote ref", "reference not found", "branch"),
        "Correct spec.flux.branch, or push that branch.",
    ),
)
"""What git servers and the git library of Flux write, and what to do; the first that matches counts."""
_IDENTITY = "the key identity in the Secret of spec.flux.secretRef"
_KNOWN_HOSTS = "known_hosts in the Secret of spec.flux.secretRef"
_COMPARE = (
    "compare what `ssh-keyscan` shows with what the owner of the server publishes, and write it there; of a "
    "bootstrap secret, into its vault."
)
_SSH_PROBLEMS = (
    (
        ("key mismatch",),
        f"The server has a new key, or somebody is in between. It is not that of {_KNOWN_HOSTS}: {_COMPARE}",
    ),
    (
        ("knownhosts:", "known_hosts"),
        f"{_KNOWN_HOSTS} has no key of this server that can be read, by its name, or as [NAME]:PORT where "
        f"that is not 22: {_COMPARE}",
    ),
    (
        ("bcrypt_pbkdf", "passphrase", "decryption password"),
        f"{_IDENTITY} has a passphrase: write a key without one, or the passphrase as the key password.",
    ),
    (
        ("no key found", "'identity' is required", "private key"),
        f"{_IDENTITY} must be a private key in the form of OpenSSH or PEM.",
    ),
    (
        ("unable to authenticate",),
        f"The server refuses {_IDENTITY}: let its public half read the repository there.",
    ),
    (
        ("no common algorithm",),
        "The server is too old for Flux: let it offer one of the algorithms in the message.",
    ),
    (
        ("repository not found",),
        f"Correct spec.flux.repository, or let {_IDENTITY} read it: the server shows it to nobody else.",
    ),
)
"""The same over SSH: what source-controller, and the libraries go-git and x/crypto/ssh in it, write."""
_OVER_SSH = ("ssh:", "'ssh'", "unable to construct auth method", "known_hosts file")
_UNREACHED = (
    ("dial tcp", "i/o timeout", "no such host"),
    "Let the network of the cluster out to the server, with the port of spec.flux.repository.",
)
_OF_REGISTRY = (
    "The registry gave no artifact. With provider: azure, the identity of Flux needs the role AcrPull; with "
    "secretRef, correct that Secret. Correct the address or the tag in spec.flux, or push the artifact."
)
_OF_CONTAINER = (
    "The storage account gave no blobs. With provider: azure, the identity of Flux needs the role Storage "
    "Blob Data Reader; with secretRef, correct that Secret. Correct the place or the container in spec.flux."
)
_OF_OPERATOR = (
    "The Flux Operator has no such Flux. Correct the version, or the artifact, in spec.flux.instance: the "
    "operator knows the versions of its own release, and never goes back to a lower minor version."
)
_OF_CONTROLLERS = (
    "`kubectl -n flux-system describe pods` shows why the controllers do not start; correct what the message "
    "names in spec.flux.instance, and push."
)
_BY_KIND = {
    ("OCIRepository", "AuthenticationFailed"): _OF_REGISTRY,
    ("OCIRepository", "OCIArtifactPullFailed"): _OF_REGISTRY,
    ("OCIRepository", "ReadOperationFailed"): _OF_REGISTRY,
    ("Bucket", "AuthenticationFailed"): _OF_CONTAINER,
    ("Bucket", "BucketOperationFailed"): _OF_CONTAINER,
    ("FluxInstance", "ArtifactFailed"): _OF_OPERATOR,
    ("FluxInstance", "BuildFailed"): _OF_OPERATOR,
    ("FluxInstance", "ReconciliationFailed"): _OF_CONTROLLERS,
    ("FluxInstance", "HealthCheckFailed"): _OF_CONTROLLERS,
}
"""What Flux gives as the reason where a registry or a storage account refuses it, or has nothing there."""
_BY_REASON = {
    "FeatureGateDisabled": "serviceAccountName of a source needs Flux with the feature gate "
    "ObjectLevelWorkloadIdentity: correct the arguments of its controllers in the file of "
    "spec.flux.components, or write spec.flux.workloadIdentity instead.",
    "AuthenticationFailed": f"Flux has no usable credentials for the repository: {_CREDENTIALS}.",
    "ArtifactFailed": "Correct spec.flux.path: it must be a folder of the branch.",
    "BuildFailed": "Correct the manifests below spec.flux.path, and push.",
    "ReconciliationFailed": "Correct the object in the message below spec.flux.path, and push.",
    "HealthCheckFailed": "Find out why the objects in the message are not healthy.",
    "PruneFailed": "Find out why the object in the message cannot be deleted.",
}


def advice(failure: FluxFailure, place: str = "spec.flux", kind: str = "") -> str:
    """Return what an operator can do about a failure of Flux, "" when nothing more is known.

    ``place`` is the field of the manifest with the object that failed, "" for what Flux itself applied, and
    ``kind`` the kind of that object.
    """
    if not place:
        return "Correct the object, or what it applies, in the repository that has it, and push."
    text, hint = failure.message.lower(), _BY_REASON.get(failure.reason, "")
    if (kind, failure.reason) in _BY_KIND:
        return _BY_KIND[kind, failure.reason].replace("in spec.flux", f"in {place}")
    over_ssh = any(mark in text for mark in _OVER_SSH)
    if failure.reason == "GitOperationFailed" or over_ssh:
        problems = (*(_SSH_PROBLEMS if over_ssh else ()), _UNREACHED, *_GIT_PROBLEMS)
        hint = next((hint for marks, hint in problems if any(mark in text for mark in marks)), "")
    hint = hint.replace("spec.flux.", f"{place}.")
    return hint[:1].upper() + hint[1:]
