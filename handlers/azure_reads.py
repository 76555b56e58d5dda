"""The part of the HTTP API that reads Azure while the caller waits."""

from __future__ import annotations

from collections.abc import Callable

import azure.functions as func

from handlers.reply import reply
from handlers.routes import Routes
from shared.app.api.access import Caller, Role
from shared.app.api.acts.drill import drill
from shared.app.api.acts.import_cluster import WRONG_NAMES, import_cluster, read_live
from shared.app.api.audit import Request, audited
from shared.app.api.schema import LIVE_CLUSTERS
from shared.app.http_result import rejected
from shared.cluster.acts import DRILL, LIVE
from shared.ports import Ports


def add_azure_reads(routes: Routes, ports: Ports, reason: Callable[[func.HttpRequest], str]) -> None:
    """Add the manifest of an existing cluster, clusters as they are, and the drill; ``reason`` reads why."""

    @routes.add("import", "import", Role.OPERATOR)
    def manifest(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        resource = req.params.get("resource") or ""
        act = Request("import", resource, reason=reason(req))
        return reply(audited(act, caller, ports, lambda: import_cluster(resource, ports)))

    @routes.add("drill", "drill", Role.OPERATOR)
    def drilled(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        act = Request(DRILL, ports.config.fleet, reason=reason(req))
        return reply(audited(act, caller, ports, lambda: drill(ports)))

    @routes.add("live", "live", Role.OPERATOR)
    def live(req: func.HttpRequest, caller: Caller) -> func.HttpResponse:
        names = list(dict.fromkeys(filter(None, (req.params.get("clusters") or "").split(","))))
        if not 1 <= len(names) <= LIVE_CLUSTERS:
            return reply(rejected(400, WRONG_NAMES))
        act = Request(LIVE, ", ".join(names), tuple(names), reason(req))
        return reply(audited(act, caller, ports, lambda: read_live(names, ports)))
