"""What the app's own pull requests say. Pure; text from manifests and Azure has no effect there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shared.app.proposals.evaluation import Evaluation
from shared.app.proposals.own_pull import pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.azure.availability.channels import VersionStep
from shared.cluster.divergence.drift import DriftedField
from shared.frozen import dataclass, field
from shared.kubernetes_versions import numbers
from shared.language.resolve.repository_layout import cluster_path
from shared.ports import PullText
from shared.ports.state import OmittedField, Promotion
from shared.promotions import (
    EXTENSION_PATH,
    IMAGE_PATH,
    INSTANCE_PATH,
    ChannelRule,
    Promotable,
    Value,
)
from shared.sentences import some_of

OVER, CHANNEL_OVER = "<!-- roadstead:proposal over -->", "<!-- roadstead:version over -->"
"""The first characters of the comment with which a proposal, or that of a channel, ends."""
SHOWN_READY = 20
"""Of so many clusters the pull request of a channel shows the readiness."""


def commit_message(name: str, fields: Sequence[DriftedField]) -> str:
    """Return the message of the commit: one line, and the fields below."""
    lines = "\n".join(f"- {field.path}" for field in fields)
    return f"{_title(name)}\n\nThe values are those that Azure has:\n\n{lines}\n"


def proposal_text(name: str, fields: Sequence[DriftedField], left_out: Sequence[OmittedField]) -> PullText:
    """Return what the pull request says."""
    manifest = code(cluster_path(name))
    rows = [
        (code(e.path), code(e.git) or "no value", code(e.live) or "no value", code(e.source), prose(e.change))
        for e in fields
    ]
    parts = [
        f"Azure has {code(name)} in another way than git, and its drift policy proposes to keep that.",
        table(("field", "git", "Azure", "git sets it in", "who"), rows),
        f"- **Merge** this to take the values of Azure into {manifest}. Nothing is written to Azure.\n"
        "- **Close** it to decline these values. They are not proposed again; reopen this pull request to "
        f"change your mind.{_replay(name, fields)}",
        "A sweep brings this up to date when the drift changes, and closes it when the drift is over. It "
        "leaves the branch alone once somebody else has pushed to it.",
    ]
    if left_out:
        reasons = [(code(omitted.path), prose(omitted.reason)) for omitted in left_out]
        parts.append("Also different, and not part of this:\n\n" + table(("field", "why"), reasons))
    return pull_text(_title(name), parts)


def _replay(name: str, fields: Sequence[DriftedField]) -> str:
    """Return how to have the values of git written, "" where no job writes any."""
    alone = [code(field.path) for field in fields if field.left_alone]
    if len(alone) == len(fields):
        return ""
    but = f", but for what no job changes: {some_of(alone, NAMED)}" if alone else ""
    return f"\n- To have the values of git written instead, run {code(f'roadstead replay {name}')}{but}."


def over_text(*, kept: bool) -> str:
    """Return the comment with which a proposal ends."""
    branch = " The branch stays, because somebody else has pushed to it." if kept else ""
    return f"{OVER}\nClosed: what this proposes is no longer drift that its policy has proposed.{branch}"


def _title(name: str) -> str:
    return f"Take what Azure has of {name} into its manifest"


# What a promotion says. Pure; text from manifests has no effect there.

NAMED = 50
PROMOTION_OVER = "<!-- roadstead:promotion over -->"
"""The first characters of the comment with which a promotion ends that was not merged."""


def commit_text(promotion: Promotion, found: Evaluation) -> str:
    """Return the message of the commit."""
    lines = "\n".join(f"- {proof.value.path}: {proof.value.value}" for proof in found.proofs)
    return f"{_promotion_title(promotion)}\n\nEvery cluster of {promotion.source} is Ready with:\n\n{lines}\n"


def promotion_text(promotion: Promotion, found: Evaluation, head: str) -> PullText:
    """Return what the pull request says."""
    source, target = code(promotion.source), code(promotion.target)
    rows = [(code(proof.value.path), code(proof.value.value)) for proof in found.proofs]
    proven_by = found.proofs[0].clusters if found.proofs else ()
    who = (
        f"{prose(promotion.by)} asked for this." if promotion.by else "A rule of `fleet.yaml` asks for this."
    )
    parts = [
        f"Every cluster of {source} is Ready with these values, and {target} has others. {who}",
        table(("field", "value"), rows),
        f"As of commit {code(head[:8])}, {_clusters(proven_by)} of {source} had them. "
        f"A merge changes {_clusters(found.takers)} of {target}, in the stages of the fleet.",
        f"- **Merge** this to write the values into {', '.join(map(code, sorted(found.files)))}.\n"
        "- **Close** it to decline them: no rule proposes them again. Reopen it to change your mind.\n"
        "- A revert after the merge holds: no rule proposes the values again until a commit gives them, or "
        f"somebody runs {code(f'roadstead promote {promotion.source} {promotion.target}')}.",
    ]
    if found.keepers:
        parts.append(f"These set a value of their own and keep it: {_names(found.keepers)}.")
    return pull_text(_promotion_title(promotion), parts)


def promotion_over_text(why: str) -> str:
    """Return the comment with which a promotion ends that was not merged; ``why`` is "" for no obstacle."""
    reason = prose(why) or "the environment has these values without this pull request"
    return f"{PROMOTION_OVER}\nClosed: {reason}."


def _clusters(names: Sequence[str]) -> str:
    return f"{len(names)} cluster{'' if len(names) == 1 else 's'} ({_names(names)})"


def _names(names: Sequence[str]) -> str:
    return some_of([*map(code, names)], NAMED)


def _promotion_title(promotion: Promotion) -> str:
    return f"Promote {promotion.source} to {promotion.target}"


# The pull request with what a channel has.

NO_NEWER = "the environment has what its channel has, or something newer"
NOTES = "https://github.com/Azure/AKS/releases"
_CHANGES = "https://github.com/kubernetes/kubernetes/blob/master/CHANGELOG/CHANGELOG-{}.md"
_IMAGES = "https://github.com/Azure/AKS/tree/master/vhd-notes"
_CVE_API = "https://cve-api.prod-aks.azure.com"
_VULNERABILITIES, _VIEWER = (
    f"{_CVE_API}/api/v1/aks-k8s-releases/{{}}/scan-reports",
    f"{_CVE_API}/viewer/index.html",
)
"""What AKS knows of a version (learn.microsoft.com/azure/aks/security-vulnerability-api-reference)."""


_OF_EXTENSION = "https://learn.microsoft.com/azure/azure-arc/kubernetes/flux-gitops-release-notes"
_OF_FLUX = "https://github.com/fluxcd/flux2/releases"
_THINGS = {IMAGE_PATH: "Node image", EXTENSION_PATH: "Flux extension", INSTANCE_PATH: "Flux"}
"""What a field has the version of, where that is not Kubernetes."""


@dataclass(frozen=True)
class ProposedVersion:
    """What a channel has, what git has now, and the clusters that it is about.

    ``takers`` get it, ``keepers`` set a version of their own; ``ready`` has what is stored of the readiness
    of takers, by name. ``fixes`` says what the version fixes, by what it is of.
    """

    rule: ChannelRule
    present: Value
    step: VersionStep
    takers: tuple[str, ...]
    keepers: tuple[str, ...]
    ready: Mapping[str, str]
    fixes: Mapping[str, str] = field(default_factory=dict)

    @property
    def thing(self) -> str:
        """What it is a version of."""
        return _THINGS.get(self.present.path, "Kubernetes")

    @property
    def minor(self) -> str:
        """The minor of the version."""
        return ".".join(self.step.version.split(".")[:2])

    @property
    def title(self) -> str:
        """The title of the pull request."""
        return f"{self.thing} {self.step.version} for {self.rule.environment}"


def channel_commit_text(proposed: ProposedVersion) -> str:
    """Return the message of the commit."""
    return f"{proposed.title}\n\nThe channel {proposed.rule.channel} has it: {proposed.step.why}.\n"


def channel_text(proposed: ProposedVersion) -> PullText:
    """Return what the pull request says."""
    rule, version, present = proposed.rule, proposed.step.version, proposed.present
    environment, flux = code(rule.environment), rule.what is Promotable.COMPONENTS
    row = (code(present.path), code(present.value), code(version))
    parts = [
        f"{environment} follows the channel {code(rule.channel)}, which now has {proposed.thing} "
        f"{code(version)}: {prose(proposed.step.why)}.",
        table(("field", "now", "then"), [row]),
        f"{_effect(proposed)} Promotions carry it on.",
        "" if flux else _readiness(proposed),
        f"What changes: {_changes(proposed)}.",
        "\n".join(f"- {code(of)}: {prose(what)}." for of, what in proposed.fixes.items()),
        f"- **Merge** this to upgrade {environment}.\n"
        "- **Close** it to decline this version: it is not proposed again. Reopen it to change your mind.\n"
        "- A newer version of the channel changes this pull request.",
    ]
    if proposed.keepers:
        parts.append(f"These set a version of their own and keep it: {_names(proposed.keepers)}.")
    return pull_text(proposed.title, [part for part in parts if part])


def _effect(proposed: ProposedVersion) -> str:
    takers = _clusters(proposed.takers)
    match proposed.rule.what:
        case Promotable.IMAGES:
            return (
                f"A merge replaces the nodes of {takers} that have an older image, in the stages of the "
                "fleet. Each region gives its newest one."
            )
        case Promotable.COMPONENTS:
            return (
                f"A merge upgrades the Flux of {takers}, in the stages of the fleet. That restarts the "
                "controllers of Flux, and no node."
            )
    return f"A merge upgrades {takers}, in the stages of the fleet."


def _changes(proposed: ProposedVersion) -> str:
    version, minor, path = proposed.step.version, proposed.minor, proposed.present.path
    if path == IMAGE_PATH:
        return f"[images]({_IMAGES}), [AKS]({NOTES}). Vulnerabilities of each image: [AKS]({_VIEWER})"
    if path == EXTENSION_PATH:
        return f"[the extension]({_OF_EXTENSION}), [Flux]({_OF_FLUX})"
    if path == INSTANCE_PATH:
        return f"[Flux {version}]({_OF_FLUX}/tag/v{version})"
    return (
        f"[Kubernetes {minor}]({_CHANGES.format(minor)}), [AKS]({NOTES}). "
        f"Vulnerabilities that AKS lists: {_reports(proposed.present.value, version)}"
    )


def _readiness(proposed: ProposedVersion) -> str:
    """Return what is stored of whether clusters can be drained."""
    unread = [name for name in proposed.takers if name not in proposed.ready]
    to = f" --to {proposed.minor}" if proposed.rule.what is Promotable.VERSION else ""
    ready = [f"- {code(name)}: {prose(state)}" for name, state in proposed.ready.items()][:SHOWN_READY]
    more = len(proposed.ready) - len(ready)
    ready += [f"- and {more} more"] if more > 0 else []
    read = code(f"roadstead ready{to} --wait")
    ready += [f"- Nobody has read {_names(unread)}; {read} reads them."] if unread else []
    return "Whether something blocks the upgrade, as far as it was read:\n\n" + "\n".join(ready)


def _reports(*versions: str) -> str:
    """Return links to what AKS lists of versions; there is a report of a patch, and none of a minor alone."""
    full = [version for version in versions if len(numbers(version)) == 3]
    return ", ".join(f"[{version}]({_VULNERABILITIES.format(version)})" for version in full)


def channel_over_text(why: str) -> str:
    """Return the comment with which the pull request of a channel ends that was not merged."""
    return f"{CHANNEL_OVER}\nClosed: {prose(why)}."
