"""Promotions by hand: an operator has an environment proposed what is proven in another one.

What is wrong with it is answered at once. The pull request is opened by a message, which evaluates it again.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.app.api import schema
from shared.app.api.acts.approval import operator
from shared.app.http_result import HttpResult, meant, rejected
from shared.app.outbox import send
from shared.app.proposals.evaluation import evaluate
from shared.app.proposals.head import Head
from shared.app.proposals.promote import refusal
from shared.cluster.messages import PromotionAsked, PromotionRequest
from shared.masking import cut
from shared.ports import Ports
from shared.promotions import What

MAX_REASON = 500
WRONG_PROMOTION = (
    'the body must be {"from": "environment", "to": "environment", "what": []}, with none or some of '
    f"{', '.join(What)}"
)


def promote(
    source: str, target: str, what: Sequence[str], actor: str, ports: Ports, reason: str = ""
) -> HttpResult:
    """Queue the pull request; ``what`` is empty for everything that differs."""
    if source == target or not {*what} <= {*What}:
        return rejected(400, WRONG_PROMOTION)
    chosen = tuple(map(What, dict.fromkeys(what)))
    found = evaluate(source, target, chosen or tuple(What), Head(ports.state.fleet(), ports))
    problem = refusal(found, named=bool(chosen))
    if problem:
        known = {each.environment for each in ports.state.summaries()} - {""}
        hints = (meant(name, known) for name in (source, target) if name not in known)
        return rejected(409, problem + "".join(hints))
    by = operator(actor)
    asked = PromotionAsked(
        source=source, target=target, what=chosen, by=by, at=ports.clock(), reason=cut(reason, MAX_REASON)
    )
    send(PromotionRequest(promotion=asked), ports)
    receipt: schema.PromotionReceipt = {
        "queued": "promotion",
        "source": source,
        "target": target,
        "values": [{"field": each.value.path, "value": each.value.value} for each in found.proofs],
        "clusters": list(found.takers),
        "by": by,
    }
    return HttpResult(202, receipt)
