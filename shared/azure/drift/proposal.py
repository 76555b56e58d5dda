"""A manifest that has the values of Azure: what a pull request about drift would merge. Pure.

The values are written into the cluster's own manifest, also where a shared file sets them, which other
clusters have too. A field is taken only if the manifest is valid with it and Azure then differs in nothing
that it did not differ in before: merging it writes nothing to Azure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from shared.azure.differences import Difference
from shared.azure.drift.yaml_diff import steps_of
from shared.frozen import dataclass, field
from shared.language.desired import Desired
from shared.language.yaml.editing import NotEditable, with_value, without

Resolve = Callable[[str], Desired | str]
"""Returns the cluster of a manifest, or what is wrong with it."""
Compare = Callable[[Desired], Iterable[Difference]]
"""Returns in what Azure differs from a cluster."""
TAKEN = "the newest commit has the value of Azure already, or does not name the field"


@dataclass(frozen=True)
class DriftProposal:
    """A manifest with the values that Azure has of ``fields``, and why it lacks others, by their paths."""

    content: str
    fields: tuple[Difference, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)


def propose(content: str, fields: Sequence[Difference], resolve: Resolve, compare: Compare) -> DriftProposal:
    """Return a manifest with as many of these values of Azure as it can have.

    Some fields are valid only together, such as two bounds. So all are tried first, then one by one.
    """
    now = resolve(content)
    if isinstance(now, str):
        return DriftProposal(content, left_out=dict.fromkeys((difference.path for difference in fields), now))
    known = frozenset(difference.path for difference in compare(now))
    open_ones = [difference for difference in fields if difference.path in known]
    reasons = {difference.path: TAKEN for difference in fields if difference.path not in known}
    check = _Check(known, resolve, compare)
    taken: tuple[Difference, ...] = ()
    batches = [open_ones, *([open_drift] for open_drift in open_ones)] if len(open_ones) > 1 else [open_ones]
    for batch in batches:
        if batch and len(taken) < len(open_ones):
            changed, reason = _changed(content, batch, taken, check)
            if reason:
                reasons |= dict.fromkeys((difference.path for difference in batch), reason)
            else:
                content, taken = changed, (*taken, *batch)
    paths = {difference.path for difference in taken}
    return DriftProposal(content, taken, {path: why for path, why in reasons.items() if path not in paths})


@dataclass(frozen=True)
class _Check:
    """Whether a manifest may be proposed; ``known`` are the paths in which Azure differs now."""

    known: frozenset[str]
    resolve: Resolve
    compare: Compare

    def __call__(self, content: str, fields: Iterable[Difference]) -> str:
        """Return why a manifest is not proposed that has the values of these fields, "" if it is."""
        desired = self.resolve(content)
        if isinstance(desired, str):
            return desired
        left = {difference.path for difference in self.compare(desired)}
        if left & {difference.path for difference in fields}:
            return "a manifest cannot say what Azure has"
        others = left - self.known
        return f"Azure would then differ in {min(others)}" if others else ""


def _changed(
    content: str, fields: Sequence[Difference], taken: Sequence[Difference], check: _Check
) -> tuple[str, str]:
    """Return a manifest with the values of these fields, and why it is not proposed, "" if it is.

    Where Azure has no value the entry goes; ``null`` stands for one that a shared file sets.
    """
    reason = ""
    for inherited in (False, True) if any(difference.live is None for difference in fields) else (False,):
        try:
            text = content
            for difference in fields:
                text = _edited(text, difference, inherited=inherited)
        except NotEditable as error:
            reason = str(error)
            continue
        reason = check(text, (*taken, *fields))
        if not reason:
            return text, ""
    return content, reason


def _edited(text: str, difference: Difference, *, inherited: bool) -> str:
    path = ["spec", *steps_of(difference.path)]
    if difference.live is None and not inherited:
        return without(text, path)
    return with_value(text, path, difference.live)
