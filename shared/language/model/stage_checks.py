"""What a gate of a stage asks: an HTTP endpoint, a Prometheus, or Azure Monitor with the app's own identity.

``interval``, ``failureLimit`` and ``consecutiveSuccessLimit`` have the names and meanings of a metric of
an AnalysisTemplate of Argo Rollouts, ``thresholdRange`` those of a metric of a Canary of Flagger.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator

from shared.language.model.base import Manifest, ObjectName, rule
from shared.language.model.change_windows import span

_HOST = r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"

CheckUrl = Annotated[
    StrictStr,
    Field(max_length=300),
    rule(
        rf"https://{_HOST}(/[A-Za-z0-9._~%+-]+)*/?",
        "an https:// address without user, query and fragment, such as https://shop.example.com/healthz",
    ),
]


Interval = Annotated[StrictStr, *span("30s", "1h", "a number with one unit, from 30s to 1h")]
QueryWindow = Annotated[StrictStr, *span("5m", "1d", "a number with one unit, from 5m to 1d")]
Threshold = Annotated[StrictFloat, Field(allow_inf_nan=False)]


class AskedCheck(Manifest):
    """What all checks have that ask something outside."""

    name: ObjectName
    """The name of the check."""
    interval: Interval = "1m"
    """How long after an answer the check is asked again."""
    consecutive_success_limit: Annotated[StrictInt, Field(ge=1, le=20)] = 1
    """After how many consecutive successes the check has passed."""
    failure_limit: Annotated[StrictInt, Field(ge=0, le=20)] = 3
    """How many failures there may be; after one more the check is not asked again, and the stage waits."""


class _AddressCheck(AskedCheck):
    url: CheckUrl
    """The address, whose host is one of the app setting ``ROLLOUT_CHECK_HOSTS``."""


class HttpCheck(_AddressCheck):
    """An endpoint that must answer a GET with a status; no redirect is followed."""

    status: Annotated[StrictInt, Field(ge=200, le=599)] = 200
    """The status of a success; any other one is a failure."""


class ThresholdRange(Manifest):
    """The range of a success; what is no number is in no range."""

    min: Threshold | None = None
    """The least value."""
    max: Threshold | None = None
    """The largest value."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("needs min or max; without thresholdRange any value is a success")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError("min must not be above max")
        return self


class PrometheusCheck(_AddressCheck):
    """A query that a Prometheus must answer with a scalar or a vector.

    ``/api/v1/query`` is added to its address.
    """

    query: Annotated[StrictStr, Field(min_length=1, max_length=1000)]
    """The query, in PromQL."""
    threshold_range: ThresholdRange | None = None
    """The range in which every value of the answer must be; by default there must be at least one value."""


class AzureMonitorCheck(AskedCheck):
    """A query whose one series has to pass over a time, in a workspace of Azure Monitor.

    No data, several series, and samples that do not reach over the whole time hold the stage.
    """

    workspace: Annotated[
        StrictStr,
        rule(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?", "the name of a workspace, such as shop"),
    ]
    """The name of the workspace in the app setting ``AZURE_MONITOR_WORKSPACES``: a managed Prometheus or a
    Log Analytics workspace."""
    query: Annotated[StrictStr, Field(min_length=1, max_length=2000)]
    """The query: in PromQL for a managed Prometheus, in KQL for a Log Analytics workspace."""
    passes: Annotated[
        StrictStr,
        Field(alias="pass"),
        rule(
            r"(<|<=|>|>=|==) ?-?[0-9]{1,15}(\.[0-9]{1,15})?",
            'a comparison with a number, in quotes, such as "< 0.01"',
        ),
    ]
    """What every value has to be: ``<``, ``<=``, ``>``, ``>=`` or ``==``, and a number."""
    over: QueryWindow
    """The time before now in which every value has to be that."""


Severity = Literal["Sev0", "Sev1", "Sev2", "Sev3", "Sev4"]


class AlertCheck(AskedCheck):
    """No alert of Azure Monitor may fire in a scope; one that a person has closed is over."""

    scope: Annotated[
        StrictStr,
        Field(max_length=500),
        rule(
            r"/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(/resourceGroups/[A-Za-z0-9._()-]{1,90})?",
            "/subscriptions/ID in lower case, with /resourceGroups/NAME behind it for one resource group",
        ),
    ]
    """The subscription or the resource group with the resources that alerts are about."""
    severity: Severity = "Sev4"
    """The least severe alert that counts: ``Sev1`` are those of Sev0 and Sev1, ``Sev4`` are all."""
