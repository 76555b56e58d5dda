"""``GET /api/clusters``, ``/api/clusters/{name}`` and ``/api/plans/{commit}``: what is known, for people.

In Azure each needs a function key (header ``x-functions-key``).
"""

from __future__ import annotations

import azure.functions as func

from handlers.reply import json_reply
from shared.pipeline import views
from shared.ports import Ports


def blueprint(ports: Ports) -> func.Blueprint:
    """Return the read-only API."""
    bp = func.Blueprint()

    @bp.function_name("clusters")
    @bp.route("clusters", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def clusters(req: func.HttpRequest) -> func.HttpResponse:
        return json_reply(200, views.fleet_view(ports))

    @bp.function_name("cluster")
    @bp.route("clusters/{name}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def cluster(req: func.HttpRequest) -> func.HttpResponse:
        name = req.route_params["name"]
        view = views.cluster_detail(name, ports)
        if view is None:
            return json_reply(
                404, {"error": f"there is no cluster {name[:63]} in the fleet {ports.config.fleet}"}
            )
        return json_reply(200, view)

    @bp.function_name("plan")
    @bp.route("plans/{commit}", methods=["GET"], auth_level=func.AuthLevel.FUNCTION)
    def plan(req: func.HttpRequest) -> func.HttpResponse:
        commit = req.route_params["commit"]
        view = views.plan_view(commit, ports)
        if view is None:
            return json_reply(404, {"error": f"the commit {commit[:40]} was not planned (give the full id)"})
        return json_reply(200, view)

    return bp
