"""Suspensions that operators ask for: one pull request for some clusters, which changes their manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from shared.app.api import schema
from shared.app.api.acts import Refusal, answers, proposing
from shared.app.http_result import meant
from shared.app.proposals.head import Head
from shared.app.proposals.own_pull import open_asked, pull_text
from shared.app.pull_requests.markdown import code, prose, table
from shared.cluster.divergence.drift import SUSPENSIONS
from shared.frozen import dataclass
from shared.json_tree import digest_of
from shared.language.resolve.repository_layout import cluster_path
from shared.language.yaml.editing import NotEditable, with_value
from shared.masking import cut
from shared.ports import Ports, PullText
from shared.sentences import many, some_of

LONGEST = timedelta(days=365)
MAX_TEXT = 200
"""Characters of the owner and of the reason, as a manifest takes them."""
SHOWN = 3


@dataclass(frozen=True)
class SuspensionRequest:
    """Which clusters are to be suspended until when, and why; ``by`` asked, and ``owner`` is responsible."""

    clusters: tuple[str, ...]
    until: datetime
    owner: str
    reason: str
    by: str

    @property
    def value(self) -> Mapping[str, str]:
        """What a manifest says of it."""
        return {"owner": self.owner, "reason": self.reason, "until": f"{self.until:%Y-%m-%dT%H:%M:%SZ}"}

    @property
    def title(self) -> str:
        """The first line of the commit and of the pull request."""
        return f"Suspend {some_of(self.clusters, SHOWN)} until {self.until:%Y-%m-%d %H:%M} UTC"


@answers(201)
def suspend(
    names: Sequence[str], lasts: timedelta, owner: str, by: str, ports: Ports, reason: str
) -> schema.SuspensionReceipt:
    """Open the pull request that suspends clusters, at most an hour longer than asked: until a whole hour.

    So whoever asks twice within that hour gets the pull request that is open.
    """
    until = _whole_hour(ports.clock() + lasts)
    clusters = tuple(sorted({*names}))
    asked = SuspensionRequest(clusters, until, cut(owner or by, MAX_TEXT), cut(reason, MAX_TEXT), by)
    head = Head(ports.state.fleet(), ports)
    with proposing():
        files = _files(asked, head)
        branch = f"{SUSPENSIONS}{ports.config.fleet}/{digest_of([clusters, asked.value])[:12]}"
        pull = open_asked(branch, files, _text(asked, head.commit), head, ports)
    return {
        "clusters": list(clusters),
        "until": until.isoformat(),
        "owner": asked.owner,
        "pullRequest": pull.url,
        "by": by,
    }


def _whole_hour(moment: datetime) -> datetime:
    whole = moment.replace(minute=0, second=0, microsecond=0)
    return whole if whole == moment else whole + timedelta(hours=1)


def _files(asked: SuspensionRequest, head: Head) -> Mapping[str, str]:
    """Return the manifests with the suspension; every other character of them stays. Refuse all for one."""
    texts = head.texts(map(cluster_path, asked.clusters))
    unknown = [name for name in asked.clusters if cluster_path(name) not in texts]
    if unknown:
        hint = meant(unknown[0], head.records)
        raise Refusal(404, f"the newest commit has no manifest of {some_of(unknown, SHOWN)}{hint}")
    files = dict[str, str]()
    for name in asked.clusters:
        try:
            text = with_value(texts[cluster_path(name)], ["spec", "suspend"], dict(asked.value))
        except NotEditable as error:
            why = f"the manifest of {name} cannot be changed by itself ({error}): write suspend by hand"
            raise Refusal(409, why) from error
        after = head.resolve(name, text)
        if isinstance(after, str):
            raise Refusal(409, f"the manifest of {name} would be invalid: {after}")
        files[cluster_path(name)] = text
    return files


def _text(asked: SuspensionRequest, commit: str) -> PullText:
    named = [(code(name), code(cluster_path(name))) for name in asked.clusters]
    parts = [
        f"{prose(asked.by)} asked to suspend {many(len(named), 'cluster')} until "
        f"{asked.until:%Y-%m-%d %H:%M} UTC. Responsible: {prose(asked.owner)}. Reason: {prose(asked.reason)}",
        table(("cluster", "file"), named),
        "- **Merge** this, and Roadstead writes nothing to them until then: no change, no upgrade, no "
        "correction of drift. At the end it writes what git has. To end it sooner, remove `suspend`.\n"
        "- **Close** it to change nothing.",
        f"Written from {code(commit[:8])}.",
    ]
    return pull_text(asked.title, parts)
