"""What was fetched for a source, and with which credentials.

Reasons and messages are those of ``fluxcd/source-controller`` v1.7.3 and of ``fluxcd/pkg/auth``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from localcloud.flux.controller_flags import account_of
from localcloud.flux.flux_conditions import ObjectNotReady
from localcloud.kubernetes.world.kinds import BUILT_IN, DEPLOYMENT, SERVICE_ACCOUNT
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

_SECRET = next(kind for kind in BUILT_IN if kind.kind == "Secret")
_CONTROLLER, _NAMESPACE = "source-controller", "flux-system"
_CLIENT_ID, _USES = "azure.workload.identity/client-id", "azure.workload.identity/use"
_TENANT_ID = "azure.workload.identity/tenant-id"
_GATE = "ObjectLevelWorkloadIdentity"
_FAILED = "failed to get credential from azure: failed to get service account"
_NO_DEFAULT = (
    "the specified default service account does not exist in the object namespace. your cluster is subject "
    "to multi-tenant workload identity lockdown, reach out to your cluster administrator for help"
)


@dataclass(frozen=True)
class SourceRevision:
    """What a source points to: a commit, or another revision, and a way to read all files there.

    ``revision`` is "" when a repository has no such branch. ``accepts`` checks user name and password;
    None: no authentication.
    """

    revision: str
    files: Callable[[], Mapping[str, bytes]]
    accepts: Callable[[str, str], bool] | None = None


@dataclass(frozen=True)
class SourceArtifact:
    """A source as it was fetched: its revision, the messages about it, and the artifact's own notes."""

    source: SourceRevision
    revision: str
    stored: str
    event: str
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """The name of the archive in which the controller stores it."""
        return self.revision.rpartition(":")[2]


@dataclass(frozen=True)
class SourceLogin:
    """Who asks: a user with a password, or an identity of Azure by its client id; nobody without both."""

    user: str = ""
    password: str = field(default="", repr=False)
    client_id: str = ""


def secret_of(world: KubernetesWorld, value: Object) -> Mapping[str, str] | None:
    """Return the values of the Secret that a source names, None where it names none."""
    name = ((value.get("spec") or {}).get("secretRef") or {}).get("name")
    if not name:
        return None
    namespace = value["metadata"]["namespace"]
    secret = world.find(At(_SECRET, name, namespace))
    if secret is None:
        failed = f"failed to get secret '{namespace}/{name}'"
        raise ObjectNotReady("AuthenticationFailed", f'{failed}: {failed}: secrets "{name}" not found')
    return {
        key: base64.b64decode(text).decode(errors="replace")
        for key, text in (secret.get("data") or {}).items()
    }


def identity_of(world: KubernetesWorld, value: Object) -> str:
    """Return the client id of the identity as which the controller pulls a source with provider: azure.

    That is the identity of the ServiceAccount that the source names, that of the account of the controller's
    flag for sources that name none (``access_token.go`` of fluxcd/pkg/auth), or that of its own pods.
    """
    named = (value.get("spec") or {}).get("serviceAccountName")
    name = account_of(world, _CONTROLLER, named)
    controller = world.find(At(DEPLOYMENT, _CONTROLLER, _NAMESPACE)) or {}
    pods = ((controller.get("spec") or {}).get("template")) or {}
    if name:
        namespace = value["metadata"]["namespace"]
        args = ((pods.get("spec") or {}).get("containers") or [{}])[0].get("args") or ()
        if not any(arg.startswith("--feature-gates=") and f"{_GATE}=true" in arg for arg in args):
            needed = f"please enable the {_GATE} feature gate in the controller"
            text = f"to use spec.serviceAccountName for provider authentication {needed}"
            raise ObjectNotReady("FeatureGateDisabled", text)
        account = world.find(At(SERVICE_ACCOUNT, name, namespace))
        if account is None and not named:
            raise ObjectNotReady("AuthenticationFailed", f"{_FAILED} '{namespace}/{name}': {_NO_DEFAULT}")
        _has_tenant(account)
    else:
        labels = (pods.get("metadata") or {}).get("labels") or {}
        own = world.find(At(SERVICE_ACCOUNT, _CONTROLLER, _NAMESPACE))
        account = own if labels.get(_USES) == "true" else None
    found = (((account or {}).get("metadata") or {}).get("annotations") or {}).get(_CLIENT_ID)
    if not found:
        failed = "failed to get credential from azure: failed to create provider access token"
        raise ObjectNotReady(
            "AuthenticationFailed", f"{failed}: DefaultAzureCredential: failed to acquire a token"
        )
    return str(found)


def _has_tenant(account: Object | None) -> None:
    """Raise NotReady for an account that names no tenant (``auth/azure/identity.go`` of fluxcd/pkg)."""
    annotations = ((account or {}).get("metadata") or {}).get("annotations") or {}
    if account is not None and _TENANT_ID not in annotations:
        missing = f"azure tenant ID is not set in the service account annotation {_TENANT_ID}"
        raise ObjectNotReady("AuthenticationFailed", f"failed to get credential from azure: {missing}")
