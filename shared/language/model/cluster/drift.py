"""What happens to drift: it is reported, proposed, corrected or, for a time, ignored, field by field."""

import re
from collections.abc import Iterable
from datetime import date, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StrictStr, model_validator

from shared.language.model.arm_types import Date
from shared.language.model.base import Manifest, ObjectName, shown, stated_rule, twice

_PATTERN = re.compile(r"[A-Za-z*][A-Za-z0-9*]*(\[[A-Za-z0-9*]+\])?(\.[^\s\[\]]+)?")
_HOW = "the path of a field below spec, such as tags.cost, nodePools[*].count or networkProfile"


class DriftAction(StrEnum):
    """What happens to a field that differs; what changes least comes first."""

    IGNORE = "ignore"
    REPORT = "report"
    PROPOSE = "propose"
    APPROVE = "approve"
    """A correction that somebody has to approve; no policy names it."""
    CORRECT = "correct"


def _pattern(value: str) -> str:
    if value.startswith("spec."):
        raise ValueError(f"must be {_HOW}, got {shown(value)}; leave out the spec.")
    if len(value) > 600 or not _PATTERN.fullmatch(value):
        raise ValueError(f"must be {_HOW}, got {shown(value)}")
    return value


FieldPattern = Annotated[StrictStr, AfterValidator(_pattern), stated_rule(f"{_HOW}; * is any one name")]
WHOLE_CLUSTER = ("missingCluster", "stoppedCluster")
"""What an exemption can name besides fields: that somebody deleted or stopped the cluster."""
Who = Annotated[StrictStr, Field(min_length=1, max_length=200)]


class DriftRule(Manifest):
    """What happens to the drift of some fields; of several rules for a field, the most careful one counts."""

    name: ObjectName
    """The rule's name; a layer above replaces the rule of the same name."""
    fields: Annotated[tuple[FieldPattern, ...], Field(min_length=1, max_length=50)]
    """The fields, and everything below them; of an exemption also missingCluster and stoppedCluster."""
    action: Literal["report", "propose", "correct", "ignore"]
    """report shows it, propose opens a pull request that takes the value of Azure into the manifest, correct
    starts a job that writes the value of git, ignore is an exemption."""
    owner: Who | None = None
    """Who is responsible for an exemption."""
    reason: Who | None = None
    """Why the fields are exempt."""
    expires: Date | None = None
    """The last day of an exemption, in UTC."""

    @model_validator(mode="after")
    def _an_exemption_ends(self) -> Self:
        given = {"owner": self.owner, "reason": self.reason, "expires": self.expires}
        if self.action == "ignore":
            missing = [name for name, value in given.items() if value is None]
            if missing:
                needs = f"action: ignore needs {' and '.join(missing)}"
                raise ValueError(f"{needs}: somebody answers for an exemption, and it ends")
        elif any(given.values()):
            extra = " and ".join(name for name, value in given.items() if value is not None)
            raise ValueError(f"{extra}: only a rule with action: ignore has this; remove it")
        elif self.is_of_cluster:
            raise ValueError(
                f"{' and '.join(WHOLE_CLUSTER)} are fields of a rule with action: ignore; "
                "without an exemption, drift.missingCluster and drift.stoppedCluster say what happens"
            )
        return self

    def covers(self, path: str) -> bool:
        """Return whether a field that differs is one of the rule's, or below one."""
        return covers(self.fields, path)

    @property
    def is_of_cluster(self) -> bool:
        """Whether the rule is about a whole cluster that is missing or stopped."""
        return any(field in WHOLE_CLUSTER for field in self.fields)

    def expired(self, now: datetime) -> bool:
        """Return whether the rule is an exemption that has ended."""
        return self.expires is not None and now.date() > date.fromisoformat(self.expires)


def covers(patterns: Iterable[str], path: str) -> bool:
    """Return whether a field is one of some patterns, or below one."""
    return any(_compiled(pattern).match(path) for pattern in patterns)


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return the expression of a pattern: what follows a * is where it first occurs, and nowhere else.

    So the time grows with the lengths of both, however many * there are.
    """
    first, *others = map(re.escape, pattern.split("*"))
    ends = r"(?![^.\[])"
    if not others:
        return re.compile(first + ends)
    *between, last = others
    names = "".join(rf"(?>[^.\[\]]*?{name})" for name in between)
    return re.compile(rf"{first}{names}(?>[^.\[\]]*?{last}{ends})")


class DriftPolicy(Manifest):
    """What happens to drift; a class, an environment and a cluster can each set parts of it."""

    action: Literal["report", "propose", "correct"] = "report"
    """What happens to fields that no rule names; report by default."""
    missing_cluster: Literal["report", "recreate"] = "report"
    """Whether a cluster that somebody deleted in Azure is created again; it is reported by default. A rule
    with the field missingCluster ignores that for a time."""
    stopped_cluster: Literal["report", "start"] = "report"
    """Whether a cluster that somebody stopped in Azure is started again; it is reported by default. A rule
    with the field stoppedCluster ignores that for a time."""
    flux_objects: Literal["report", "correct"] = "report"
    """Whether what Roadstead applied of Flux and of systems is applied again, or resumed, where somebody
    changed, removed or suspended it in the cluster; it is reported by default."""
    azure_policy: Annotated[tuple[FieldPattern, ...], Field(max_length=50)] = ()
    """Fields that Azure Policy sets, with everything below them: never drift, whatever the rules say."""
    rules: tuple[DriftRule, ...] = ()
    """What happens to some fields, by the names of the rules."""

    def exemption(self, what: str, now: datetime) -> DriftRule | None:
        """Return the rule by which one of ``WHOLE_CLUSTER`` is ignored now, None for none."""
        rules = (rule for rule in self.rules if rule.action == "ignore" and what in rule.fields)
        return next((rule for rule in rules if not rule.expired(now)), None)

    def is_of_azure_policy(self, path: str) -> bool:
        """Return whether Azure Policy sets a field that differs."""
        return covers(self.azure_policy, path)

    @model_validator(mode="after")
    def _rule_names_differ(self) -> Self:
        name = twice(rule.name for rule in self.rules)
        if name is not None:
            raise ValueError(f"rules has two rules named {name}; names must differ")
        return self
