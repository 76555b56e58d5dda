"""The teams' systems over the whole fleet. It reads summaries alone."""

from __future__ import annotations

from shared.app.api import schema
from shared.ports import Ports

SHOWN = 20


def systems_view(ports: Ports) -> schema.SystemsView:
    """Return each system: whose it is, where it is, and on which clusters something of it is unhealthy."""
    found: dict[str, schema.SystemView] = {}
    for summary in ports.state.summaries(details=True):
        for system in summary.details.systems if summary.details else ():
            view = found.setdefault(
                system.name,
                {
                    "name": system.name,
                    "owners": list(system.owners),
                    "namespaces": list(system.namespaces),
                    "clusterCount": 0,
                    "clusters": [],
                    "unhealthyCount": 0,
                    "unhealthy": [],
                },
            )
            view["clusterCount"] += 1
            view["unhealthyCount"] += bool(system.unhealthy)
            if len(view["clusters"]) < SHOWN:
                view["clusters"].append(summary.name)
            if system.unhealthy and len(view["unhealthy"]) < SHOWN:
                view["unhealthy"].append(summary.name)
    return {"systems": [found[name] for name in sorted(found)]}
