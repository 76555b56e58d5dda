"""Refusals about the autoscaler of a cluster: the form of each of its settings, which are texts."""

from __future__ import annotations

import re

from localcloud.azure.world.refusals.rule import RefusalRule, RequestedWrite

_SCALER = "autoScalerProfile"
_MINUTES, _SECONDS, _ANY_UNIT = re.compile(r"\d+m"), re.compile(r"\d+s"), re.compile(r"\d+(ns|us|ms|s|m|h)")
_WHOLE, _BOOLEAN = re.compile(r"\d+"), re.compile(r"true|false")
_SHARE = re.compile(r"0(\.\d+)?|1(\.0+)?|\.\d+")
FORMS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(
        (
            "scale-down-delay-after-add",
            "scale-down-delay-after-failure",
            "scale-down-unneeded-time",
            "scale-down-unready-time",
            "max-node-provision-time",
        ),
        _MINUTES,
    ),
    "scan-interval": _SECONDS,
    # Azure's own default is the scan interval, in seconds.
    "scale-down-delay-after-delete": re.compile(r"\d+[sm]"),
    "new-pod-scale-up-delay": _ANY_UNIT,
    "max-empty-bulk-delete": _WHOLE,
    "max-graceful-termination-sec": _WHOLE,
    "max-total-unready-percentage": _WHOLE,
    "ok-total-unready-count": _WHOLE,
    "scale-down-utilization-threshold": _SHARE,
    "balance-similar-node-groups": _BOOLEAN,
    "skip-nodes-with-local-storage": _BOOLEAN,
    "skip-nodes-with-system-pods": _BOOLEAN,
}


def _text(field: str, form: re.Pattern[str]) -> RefusalRule:
    def broken(asked: RequestedWrite) -> bool:
        value = (asked.says(_SCALER) or {}).get(field)
        return bool(value) and form.fullmatch(str(value)) is None

    return RefusalRule(
        f"autoscaler-{field}",
        f"models ManagedClusterPropertiesAutoScalerProfile.{field.replace('-', '_')}",
        f"{_SCALER}.{field}",
        f"The value of {field} in autoScalerProfile is invalid.",
        broken,
    )


def _share(asked: RequestedWrite) -> bool:
    share: str = (asked.says(_SCALER) or {}).get("max-total-unready-percentage") or "0"
    return _WHOLE.fullmatch(share) is not None and int(share) > 100


RULES = (
    *(_text(field, form) for field, form in FORMS.items()),
    RefusalRule(
        "autoscaler-share",
        "models ManagedClusterPropertiesAutoScalerProfile.max_total_unready_percentage: at most 100",
        f"{_SCALER}.max-total-unready-percentage",
        "max-total-unready-percentage must be between 0 and 100.",
        _share,
    ),
)
