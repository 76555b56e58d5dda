"""A plan as a page for a browser: no script, no address from outside, and every text of the fleet escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from urllib.parse import quote

from shared.app.api import schema
from shared.cluster.history import by_whom
from shared.language.model.base import shown
from shared.sentences import not_shown, removals

MAX_TEXT = 2000
STYLE = """
:root { color-scheme: light dark; --line: #8886; --red: #b3261e; --amber: #8a5a00; --green: #1a7f37 }
@media (prefers-color-scheme: dark) { :root { --red: #ff8a80; --amber: #ffca6b; --green: #7ee2a8 } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem }
body { overflow-wrap: anywhere }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem } h1, h2, h3 { line-height: 1.25 }
h3 { font-size: 1rem; margin: 0 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0 } dd { margin: 0 }
article { border-top: 1px solid var(--line); padding: .7rem 0 } p { margin: .3rem 0 }
table { border-collapse: collapse; width: 100%; margin: .4rem 0; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .2rem .6rem .2rem 0 }
th { font-weight: 600; border-bottom: 1px solid var(--line) }
.bad { color: var(--red); font-weight: 600 } .wait { color: var(--amber) } .good { color: var(--green) }
.dim { opacity: .7 }
@media (max-width: 40rem) {
  dl { display: block } dt { margin-top: .4rem; opacity: .7 } thead { display: none }
  tr { display: block; padding: .3rem 0; border-bottom: 1px solid var(--line) } td { display: block }
}
"""
POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The content security policy of a page: nothing but its own style."""
_STATE_CLASSES = {"success": "good", "pending": "wait", "failure": "bad", "error": "bad"}


def plan_page(plan: schema.PlanView, *, fleet: str, first: bool) -> str:
    """Return the page of a plan; ``first``: its first page, which has the problems too."""
    commit = plan["commit"]
    parts = [f"<h1>Plan of {_code(commit[:8])} for the fleet {_text(fleet)}</h1>", *_facts(plan)]
    if first:
        parts += _problems(plan)
    acting = [item for item in plan["items"] if item["action"] != "unchanged"]
    unchanged = len(plan["items"]) - len(acting)
    parts.append("<h2>Clusters</h2>")
    parts += [_item(item) for item in sorted(acting, key=_rank)]
    if unchanged:
        parts.append(f'<p class="dim">{unchanged} more on this page, without a change.</p>')
    if plan["next"]:
        parts.append(f'<p><a href="?after={quote(plan["next"], safe="")}">More clusters</a></p>')
    return page(f"Plan of {commit[:8]}", parts)


def page(title: str, parts: Sequence[str]) -> str:
    """Return a whole page of parts that are HTML already."""
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}\n</body>\n</html>\n'


def message_page(title: str, message: str) -> str:
    """Return a page with one sentence, such as a refusal."""
    return page(title, [f"<h1>{_text(title)}</h1>", f"<p>{_text(message)}</p>"])


def _facts(plan: schema.PlanView) -> Iterator[str]:
    commit = plan["commit"]
    state, _, description = plan["status"].partition(": ")
    status = f'<span class="{_STATE_CLASSES.get(state, "dim")}">{_text(state)}</span> {_text(description)}'
    progress = plan["progress"]
    facts = {
        "Commit": _code(commit),
        "Planned": _text(plan["plannedAt"] or ""),
        "Changes": _text(plan["summary"]),
        "Commit status": status if state else "not reported yet",
        "In sync": f"{progress['ready']} of {progress['total']}",
    }
    approval = plan["approval"]
    if approval:
        deletes = removals(approval["clusterCount"], plan["approvedReleaseCount"])
        who = by_whom(approval["by"], approval["reason"])
        facts["Approved"] = _text(f"{deletes}, by {who}, {approval['at']}")
    if plan["howToApprove"]:
        facts["To approve"] = f'<code class="wait">roadstead approve {_text(commit[:8])}</code>'
    if plan["reviews"]:
        facts["Reviews"] = _text(plan["reviews"])
    yield f"<dl>{''.join(f'<dt>{name}</dt><dd>{value}</dd>' for name, value in facts.items())}</dl>"


def _problems(plan: schema.PlanView) -> Iterator[str]:
    if plan["problems"]:
        yield '<h2 class="bad">Invalid manifests</h2>'
        yield f"<ul>{''.join(f'<li>{_text(problem)}</li>' for problem in plan['problems'])}</ul>"
        more = plan["problemCount"] - len(plan["problems"])
        if more:
            yield f'<p class="dim">{not_shown(more, "problem")}</p>'


def _rank(item: schema.PlanItem) -> tuple[int, str]:
    """Return the place of an item: what waits for a person first, then what destroys, then the rest."""
    destroys = item["action"] == "delete" or any(change["destroys"] for change in item["changes"])
    order = (item["needsApproval"], item["notCarriedOut"], destroys)
    return next((place for place, holds in enumerate(order) if holds), len(order)), item["cluster"]


def _item(item: schema.PlanItem) -> str:
    action = "needs approval" if item["needsApproval"] else item["action"].replace("-", " ")
    if item["releases"] and item["notCarriedOut"]:
        action = f"release {action}"
    kind = "wait" if item["notCarriedOut"] or item["waits"] else "bad" if _rank(item)[0] == 2 else "dim"
    parts = [f'<h3>{_text(item["cluster"])} <span class="{kind}">{_text(action)}</span></h3>']
    if item["reason"]:
        parts.append(f"<p>{_text(item['reason'])}</p>")
    if item["waits"]:
        parts.append(f'<p class="wait">It {_text(item["waits"])}.</p>')
    if item["changes"]:
        lines = "".join(_change(change) for change in item["changes"])
        heads = "".join(f"<th>{name}</th>" for name in ("Field", "From", "To", "Effect", "Source"))
        parts.append(f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>")
    return f"<article>{''.join(parts)}</article>"


def _change(change: schema.ChangeView) -> str:
    effect = f'<span class="{"bad" if change["destroys"] else "dim"}">{_text(change["effect"])}</span>'
    cells = [
        _code(change["path"].removeprefix("spec.")),
        _text(change["old"] or "nothing"),
        _text(change["new"] or "nothing"),
        effect,
        f'<span class="dim">{_text(change["source"])}</span>',
    ]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def _text(text: str) -> str:
    """Return text of the fleet as HTML: on one line, bounded, without credentials, and escaped."""
    return escape(shown(text, MAX_TEXT))
