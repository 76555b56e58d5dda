"""The cause of an error of AKS, as a code: the one place that reads Azure's sentences.

AKS wraps many errors: the code says only which operation failed. The cause is then in a subcode, in the
details, or in the text alone. Sources, below learn.microsoft.com/troubleshoot/azure/azure-kubernetes:
- availability-performance (a wrapper such as UpgradeVMSSAgentPoolFailed has the specific error in its
  subcode, details or text)
- create-upgrade-delete/error-code-poddrainfailure (UpgradeFailed, and a disruption budget in the text)
- error-codes (OperationNotAllowed, with "exceeding approved ... Cores quota" in the text)
- error-codes/subnetisfull-error (``Code='SubnetIsFull'`` in a text)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.json_tree import Json

_WRAPPER = re.compile(
    r"|failed|unspecified|upgradefailed|provisioningfailed|deploymentfailed|resourcedeploymentfailure"
    r"|agentpooloperationerror|reconcilemachinefailed|vmextensionprovisioningerror"
    r"|(create|scale|upgrade|update|reconcile|delete)vm[sa]sagentpoolfailed",
    re.IGNORECASE,
)
"""Codes that say what failed, and not why."""
_BUDGET = re.compile(r"disruption budget|\bblocked by pdb\b", re.IGNORECASE)
_INNER_CODE = re.compile(
    r"\b(?:vmssInstanceError|Sub)?Code[\"']?\s*[=:]\s*[\"']?([A-Za-z]\w+)", re.IGNORECASE
)
_QUOTA = re.compile(r"exceeding approved .*quota", re.IGNORECASE | re.DOTALL)
_INTERNAL = re.compile(r"\binternal (server )?error\b", re.IGNORECASE)


def cause_of(error: Json) -> str:
    """Return the code of the cause of an error, "" where the error has none but its own.

    ``error`` has ``code`` and ``message``, and may have a ``subcode`` and ``details`` of the same form. A
    PodDisruptionBudget is "PodDrainFailure", an error inside Azure "InternalOperationError", a quota
    "QuotaExceeded": codes of AKS.
    """
    code, layers = str(error.get("code") or ""), list(_layers(error))
    text = "\n".join(str(layer.get("message") or "") for layer in layers)
    wrapped = _WRAPPER.fullmatch(code)
    if (wrapped or code == "OperationNotAllowed") and _QUOTA.search(text):
        return "QuotaExceeded"
    if not wrapped:
        return ""
    if _BUDGET.search(text):
        return "PodDrainFailure"
    codes = [str(layer.get(key) or "") for layer in layers for key in ("code", "subcode")]
    codes += _INNER_CODE.findall(text)
    specific = next((code for code in codes if not _WRAPPER.fullmatch(code)), "")
    return specific or ("InternalOperationError" if _INTERNAL.search(text) else "")


def _layers(error: Json) -> Iterator[Json]:
    """Yield an error and its details, the outer ones first."""
    yield error
    for detail in error.get("details") or ():
        yield from _layers(detail)
