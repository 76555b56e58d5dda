"""What each class of error means, how Roadstead reacts, and what an operator can do.

The one table behind ``roadstead why`` and docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from shared.cluster.failures import errors
from shared.cluster.failures.errors import ReconcileError, Retryable, Terminal
from shared.cluster.failures.retry import DEFAULTS, Policies, RetryPolicy, policy_for
from shared.frozen import dataclass


@dataclass(frozen=True)
class Remedy:
    """Sentences for an operator.

    ``action`` is the suggested one, ``action_on_delete`` that for a cluster in deletion, "" for the same. An
    action that says that none is needed holds while Roadstead retries in time; ``action_if_it_lasts`` is that
    for a job which has failed or stalled.
    ``reaction`` is what Roadstead does beyond the retry policy, or, with ``no_policy``, instead of it.
    """

    meaning: str
    action: str
    reaction: str = ""
    action_on_delete: str = ""
    action_if_it_lasts: str = ""
    no_policy: bool = False


NO_ACTION = "No action needed."
REPLAY = "`roadstead replay NAME` starts the job again."
_UNTIL_CHECK = (
    "Changes nothing. The cluster is Ready again once a check finds it healthy, or once a job has verified"
    " it, which a commit that changes the cluster or an operator's replay starts."
)
_UNTIL_SWEEP = (
    "Changes nothing. The cluster is Ready again once a sweep finds it as it was, or once a job has verified"
    " it, which a commit that changes the cluster or an operator's replay starts."
)

REMEDIES: Mapping[type[ReconcileError], Remedy] = {
    errors.Throttled: Remedy(
        "A service asked for fewer requests (429).",
        f"{NO_ACTION} If it persists, find out what else uses the same subscription or token.",
        "Waits for the service's `Retry-After`, and makes no call of that kind before.",
        action_if_it_lasts="Find out what else uses the same subscription or token.",
    ),
    errors.Conflict: Remedy(
        "Another operation is in progress on the resource, or somebody changed it a moment ago.",
        f"{NO_ACTION} If it persists, Azure's activity log shows who else changes the resource.",
        action_if_it_lasts="Azure's activity log shows who else changes the resource: end that.",
    ),
    errors.Stale: Remedy(
        "Roadstead's own record changed between a read and a write: two workers met.",
        NO_ACTION,
        "Reads the record again and continues from there.",
        action_if_it_lasts="Find the error in the logs by the cluster's name, and report it.",
    ),
    errors.NamespaceTerminating: Remedy(
        "A namespace is being deleted, so Kubernetes refuses new objects in it.",
        "If it persists, start the controller of the finalizer in the message again, or remove the finalizer"
        " if the controller never comes back; `kubectl describe namespace` with the name in the message shows"
        " what is left.",
    ),
    errors.Unavailable: Remedy(
        "A service did not answer, or answered with a server error (5xx).",
        "Check the service's health page.",
    ),
    errors.VaultUnavailable: Remedy(
        "Azure Key Vault did not answer, or answered with a server error (5xx).",
        "Check the address of the vault in `KEY_VAULTS`, its firewall and private endpoint, and Azure's"
        " health page.",
    ),
    errors.PrivateUnreachable: Remedy(
        "The API server of a private cluster did not answer: it has no public address, so an app outside its"
        " network has no way to it.",
        "Give the app a network that reaches the API server and resolves its name (VNet integration), or"
        " add a cluster under another name whose flux.install is extension, which needs no way.",
    ),
    errors.Dependency: Remedy(
        "A resource that the step needs does not exist yet (404, a kind that the cluster does not have, or an"
        " identity that Azure does not find yet).",
        "Check that the resource in the message exists.",
    ),
    errors.SecretMissing: Remedy(
        "A bootstrap secret, or an attached cluster, needs a secret that Azure Key Vault does not have: it"
        " does not exist, or is deleted or disabled.",
        "Create, recover or enable the secret in the message, or correct its name in `spec.bootstrapSecrets`"
        " or `spec.existing` (docs/how-to/bootstrap-secrets.md).",
    ),
    errors.InvalidKubeconfig: Remedy(
        "Roadstead does not accept the kubeconfig of an attached cluster: it needs a token or a client"
        " certificate in it, and an https:// address that the app may connect to.",
        "Write another version of the secret in the message (docs/how-to/attach-an-existing-cluster.md). If"
        " the message names the address, see `KUBECONFIG_NETWORKS` in docs/settings.md.",
        "Runs nothing that a kubeconfig asks for.",
    ),
    errors.AnotherCluster: Remedy(
        "The kubeconfig of an attached cluster leads to another cluster than before: its namespace"
        " kube-system has another uid.",
        "Put the kubeconfig of the right cluster into the vault; or, if the cluster was built again, run"
        " `roadstead takeover NAME`.",
        "Writes nothing to that cluster, and waits.",
        no_policy=True,
    ),
    errors.NotYetVisible: Remedy(
        "Azure does not show a cluster or a resource group that may exist, or its version: they appear late.",
        NO_ACTION,
        "Reads once more after 20 s and relies on the second read.",
        action_if_it_lasts="Azure's activity log shows whether the resource exists.",
        no_policy=True,
    ),
    errors.Interrupted: Remedy(
        "Azure started the operation and abandoned it for a transient reason: an internal error, a timeout.",
        "Check Azure's health page; if it persists, contact Azure support with the request id.",
        "Repeats the same write.",
    ),
    errors.OutOfCapacity: Remedy(
        "Azure has no room now: for the VM size in the region or zone, or for another cluster in the region."
        " This is no quota of the subscription.",
        "No action needed if it can wait; otherwise commit another size, zone or region.",
        "Repeats the same write after a long wait.",
        action_if_it_lasts="Commit another size, zone or region, or wait until there is room.",
    ),
    errors.Obstructed: Remedy(
        "Something outside of git is in the way: a lock, a firewall, an association, a call of a removed"
        " API.",
        "Remove what the message names; Roadstead continues by itself.",
    ),
    errors.Refused: Remedy(
        "The service refuses this until somebody changes something outside of git.",
        "Do what the message says. `roadstead replay NAME` tries again at once.",
    ),
    errors.QuotaExceeded: Remedy(
        "A quota of the subscription does not allow it, such as vCPUs of a VM family or public addresses.",
        "Raise the quota or free some; or commit another size or region.",
    ),
    errors.OutOfAddresses: Remedy(
        "The subnet of the nodes has too few free addresses, with those that an upgrade needs for a while.",
        "Free addresses in the subnet; or commit fewer nodes, a smaller `maxPods` or"
        " `upgradeSettings.maxSurge`, or a node pool in a larger subnet.",
    ),
    errors.Unexplained: Remedy(
        "Azure answered with a code that Roadstead does not know, or without the cause.",
        "Read Azure's own message; Azure support can explain it by the request id.",
        "Repeats the same write at long intervals.",
    ),
    errors.Blocked: Remedy(
        "A PodDisruptionBudget, or an admission policy, does not allow the eviction of a pod from a node that"
        " is being drained.",
        "Add replicas to the workload, or let its PodDisruptionBudget allow one more disruption; if a policy"
        " refuses, change the policy.",
        "Evicts the pods that it can and retries until the drain timeout; then the job fails, as it does when"
        " AKS abandons a drain. An upgrade that AKS refuses for a budget is tried 15 times, 5 min apart."
        " The next commit retries it.",
        no_policy=True,
    ),
    errors.PolicyDenied: Remedy(
        "An admission policy of the cluster, such as one of Azure Policy, Gatekeeper or Kyverno, or a"
        " ValidatingAdmissionPolicy, refuses an object. No role is missing.",
        "Have the owner of the policy in the message exempt the object or its namespace, or change the"
        " policy; or commit what it allows.",
    ),
    errors.WebhookDown: Remedy(
        "A webhook that the API server has to ask does not answer, so it refuses the request.",
        "Find the pods of the service behind the webhook in the message, and start them again; or delete the"
        " configuration of a webhook that is no longer installed.",
    ),
    errors.Unreadable: Remedy(
        "A record of Roadstead cannot be read: somebody edited it in its table, or restored a part of it.",
        "Put the record right in Table Storage, for example from a backup: the message names the table, the"
        " partition, the key and the field. Roadstead continues within minutes.",
        "Goes on with everything else. Nothing is planned for a cluster whose record cannot be read, and"
        " nothing takes it for one that does not exist.",
    ),
    errors.Unexpected: Remedy(
        "An unforeseen error: a defect in Roadstead or in a library.",
        "Find the error in the logs by the cluster's name, and report it.",
    ),
    errors.Unauthenticated: Remedy(
        "There is no valid credential: an identity, token or key is missing, wrong or expired.",
        "Renew the credential in the message (docs/settings.md).",
    ),
    errors.Unauthorized: Remedy(
        "The identity lacks a role or a permission (403); a new role assignment takes effect after minutes.",
        "Assign the role to the identity of this app (infra/access.bicep); the roles for federated"
        " credentials and role assignments are options (docs/how-to/identity-access.md).",
    ),
    errors.RoleNotEffective: Remedy(
        "An identity lacks a role, or its assignment is not effective yet, which takes up to 60 minutes.",
        "Assign the role in the message to the identity in it, on the scope in it.",
        "Keeps trying for longer than a new assignment takes.",
    ),
    errors.VaultForbidden: Remedy(
        "A vault does not let the worker's identity read its secrets (403): it lacks a role there, or the"
        " vault's firewall refuses its address.",
        "Assign `Key Vault Secrets User` on the vault to the worker's identity, as `bootstrapVaults` of"
        " infra/main.bicep does; if the message names the firewall, let the worker's network in.",
    ),
    errors.InvalidManifest: Remedy(
        "The service refused what the manifest asks for, or accepted it and did not keep it.",
        "Commit a manifest that the service accepts; if a policy is the cause, change the policy and replay.",
    ),
    errors.TooLarge: Remedy(
        "A record or a message is larger than the service stores (docs/limits.md).",
        "Make the manifest in the message smaller, or commit the change in parts.",
    ),
    errors.Immutable: Remedy(
        "The manifest changes a field that cannot be changed on an existing resource.",
        "Restore the old value, or do what the message says.",
    ),
    errors.Aborted: Remedy(
        "Somebody cancelled the operation in Azure or removed its result, or Azure keeps a resource that was"
        " to be deleted.",
        "Check Azure's activity log for who did it and why; then run `roadstead replay NAME`, or commit.",
    ),
    errors.OtherRepository: Remedy(
        "The settings name another repository or branch than the one that the fleet was planned from: they"
        " were changed, or another repository has taken the name over.",
        "Correct the setting; or, if the new one is right, run `roadstead takeover --repository`.",
        "Plans, deletes and reports nothing from it.",
    ),
    errors.NotOwned: Remedy(
        "A resource of that name exists, and its tags show that it does not belong to this fleet.",
        "If the message names a Secret or a node pool, do what it says. Otherwise give the cluster another"
        " name; a resource without the tags of a fleet can be adopted with the annotation roadstead.dev/adopt"
        " (docs/lifecycle.md).",
        "Changes nothing, and stops the job until a commit changes the cluster or an operator replays it.",
        action_on_delete="Restore the tags in the message, or delete the resource by hand; then run"
        " `roadstead replay NAME`.",
    ),
    errors.Withheld: Remedy(
        "The git host does not serve the repository under this name: it was renamed, moved or blocked.",
        "Set the present name of the repository (docs/settings.md); ask the git host why it blocks one.",
        "A job that needs the repository waits, and asks the git host again every five minutes.",
    ),
    errors.DeadLettered: Remedy(
        "The queue gave up the job's message: it was delivered ten times without a result, or it expired.",
        "Find the error in the logs by the cluster's name, then run `roadstead replay NAME`.",
        "Stops the job and keeps its record. The next commit retries it.",
    ),
    errors.ClusterMissing: Remedy(
        "A sweep or a job found that a cluster that was Ready no longer exists in Azure, or is being deleted"
        " there.",
        f"Azure's activity log shows who deleted it. {REPLAY} That creates it again; remove its folder if it"
        " is not needed any more.",
        "Creates nothing, unless the drift policy says `missingCluster: recreate`: neither a commit nor the"
        " end of a suspension creates it again. It is Ready again once an operator's replay has created it.",
    ),
    errors.ClusterStopped: Remedy(
        "A sweep found that somebody stopped a cluster that was Ready.",
        "Start the cluster with `az aks start`; `roadstead refresh NAME` then compares it again. The drift"
        " policy `stoppedCluster: start` has a job start it.",
        _UNTIL_SWEEP,
    ),
    errors.ClusterFailed: Remedy(
        "A sweep found that an operation has failed in Azure on a cluster that was Ready. No job started it;"
        " it may be an automatic upgrade.",
        f"Azure's activity log shows the operation. {REPLAY} `roadstead refresh NAME` compares it again"
        " after a repair by hand.",
        _UNTIL_SWEEP,
    ),
    errors.FluxUnhealthy: Remedy(
        "A check inside a Ready cluster found for longer than `UNHEALTHY_MINUTES` that Flux fails, or"
        " is not as Roadstead applied it.",
        "Correct what the message names, and push; the owners of a system correct what its repository has."
        f" {REPLAY} That also applies again what Roadstead applied, and so does the drift policy"
        " `fluxObjects: correct`. `roadstead refresh NAME` checks the cluster again.",
        _UNTIL_CHECK,
    ),
    errors.PlatformUnhealthy: Remedy(
        "A check inside a Ready cluster found nodes that are not ready, for longer than `UNHEALTHY_MINUTES`.",
        "`kubectl describe node` with the name in the message shows why; AKS repairs most nodes by itself."
        " `roadstead refresh NAME` checks the cluster again.",
        _UNTIL_CHECK,
    ),
    errors.SecretsUnhealthy: Remedy(
        "A check of a Ready cluster found for longer than `UNHEALTHY_MINUTES` that a bootstrap secret is"
        " missing, deleted or disabled in the vault, or is not in the cluster as Roadstead applied it.",
        f"Create, recover or enable the secret in the vault. {REPLAY} That also applies again what somebody"
        " changed in the cluster. `roadstead refresh NAME` checks the cluster again.",
        "Leaves the Secret in the cluster as it is. " + _UNTIL_CHECK,
    ),
    errors.ClusterContested: Remedy(
        "A sweep found tags of another app on a cluster that was Ready: another installation or fleet may"
        " manage it. Or the tables do not know what was written to a cluster last, and it differs from git.",
        "Stop the other app, or take the cluster over with `roadstead takeover NAME`; restore tags that were"
        " changed by mistake, and run `roadstead refresh NAME`.",
        _UNTIL_SWEEP,
    ),
}


def suggested_action(kind: str, *, failed: bool, deleting: bool = False, stalled: bool = False) -> str:
    """Return what an operator can do about a class of error, by its stored name; "" for an unknown one.

    A retry continues by itself once its cause has passed, which is not to be expected of a ``stalled`` one; a
    job that ``failed`` has to be started again.
    """
    for known, remedy in REMEDIES.items():
        if known.__name__ == kind:
            lasting = remedy.action_if_it_lasts if failed or stalled else ""
            action = (deleting and remedy.action_on_delete) or lasting or remedy.action
            return f"{action} {REPLAY}" if failed and issubclass(known, Retryable) else action
    return REPLAY if failed else ""


def reaction(kind: type[ReconcileError], policies: Policies = DEFAULTS) -> str:
    """Return how Roadstead reacts to a class of error."""
    remedy = REMEDIES[kind]
    if remedy.no_policy:
        return remedy.reaction
    if issubclass(kind, Terminal):
        return (
            remedy.reaction or "Stops the job until a commit changes the cluster or an operator replays it."
        )
    return f"{remedy.reaction} {_describe(policy_for(kind, policies), outside=kind.outside)}".strip()


def _describe(policy: RetryPolicy, *, outside: bool) -> str:
    longest = policy.wait(100 if outside else (policy.attempts or 100) - 1, jitter=1)
    interval = f"at intervals of at most {_span(policy.first)} at first and {_span(longest)} in the end"
    if outside and policy.attempts is not None:
        when = "at once" if policy.attempts == 1 else f"after {policy.attempts} attempts"
        return f"Repeats it until somebody has acted, {interval}. Counts as failed {when}."
    if policy.attempts is None:
        return f"Retries indefinitely, {interval}."
    return f"Tries {policy.attempts} times, {interval}, then fails; the next commit retries it."


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 else f"{seconds:g} s"
