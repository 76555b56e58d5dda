"""Issues of the fleet repository: one for each group of problems, closed when the group is over."""

from __future__ import annotations

from dataclasses import replace

from shared.fleet.desired import digest_of
from shared.jobs.failures.errors import Dependency
from shared.masking import cut
from shared.notices.announced import Announced
from shared.notices.digest import Group, Outgoing
from shared.notices.kinds import KINDS
from shared.notices.routes import Route
from shared.pipeline.pull_requests.markdown import fence, line
from shared.ports import Ports

_TITLE = 200


def tell_issues(route: Route, message: Outgoing, known: Announced, ports: Ports) -> Announced:
    """Write what a message says to the issue of its group; return which issues are open then.

    The first problem of a group opens the issue, what follows is a comment, and the end of the last one
    closes it. The text of an issue begins with a marker, so that one whose number was not saved is found.
    """
    group = message.groups[0]
    key = digest_of(group.facts[0].group)
    marker = f"<!-- roadstead {key} -->"
    issues = known.routes[route.name].issues
    number = issues.get(key) or ports.issues.find_issue(marker)
    body = _body(message)
    if number is not None:
        try:
            ports.issues.comment_issue(number, body)
        except Dependency:  # somebody deleted it
            number = None
    if number is None:
        number = ports.issues.open_issue(cut(line(message.title), _TITLE), f"{marker}\n{body}")
    left = {other: each for other, each in issues.items() if other != key}
    if _is_over(group, known):
        ports.issues.close_issue(number)
    else:
        left[key] = number
    return replace(
        known,
        routes={**known.routes, route.name: replace(known.routes[route.name], issues=left)},
    )


def _is_over(group: Group, known: Announced) -> bool:
    """Return whether nothing of a group is open; what has no end never is."""
    open_groups = {known.facts[identifier].group for identifier in known.open.values()}
    return not KINDS[group.facts[0].kind].over or group.facts[0].group not in open_groups


def _body(message: Outgoing) -> str:
    """Return the text, which is shown as it is, and the links of the message."""
    links = [f"[{name}]({link})" for link, name in message.labelled_links.items()]
    return "\n\n".join([fence(message.text), *links[:6]])
