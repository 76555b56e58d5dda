"""The client of the HTTP API: what several commands call, and any other call with its path and its object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from cli.fleet_api.connection import AppConnection, View, given
from shared.app.api import schema


class Api(AppConnection):
    """The calls of a Roadstead app. Close after use."""

    def read(self, kind: type[View], path: str, **query: str) -> View:
        """Return the object at a path, with the parameters that have a value; raise ApiError."""
        wanted = urlencode(given(**query))
        return self.typed(kind, self.get(f"{path}?{wanted}" if wanted else path))

    def act(self, kind: type[View], path: str, body: Mapping[str, Any]) -> View:
        """Do what a path says, and return its receipt; raise NotFound, or Refused with the reason."""
        return self.typed(kind, self.post(path, dict(body)))

    def planned(self) -> schema.FleetView:
        """Return the fleet with the commit that was planned last, and one cluster at most."""
        return self.read(schema.FleetView, "clusters", limit="1")

    def fleet(self, **filters: str) -> schema.FleetView:
        """Return the fleet with all its clusters, or those that the filters of the API leave."""
        return self.typed(schema.FleetView, self.whole("clusters", "clusters", "unreadable", **filters))

    def fleet_page(self, limit: int, after: str = "", **filters: str) -> schema.FleetView:
        """Return the fleet with a page of its clusters."""
        return self.read(schema.FleetView, "clusters", limit=str(limit), after=after, **filters)

    def cluster(self, name: str) -> schema.ClusterView | schema.MissingCluster:
        """Return one cluster; raise NotFound."""
        view = self.get(f"clusters/{name}")
        kind = schema.ClusterView if "generation" in view else schema.MissingCluster
        return self.typed(kind, view)

    def why(self, name: str) -> schema.Why:
        """Return why a cluster is in its phase; raise NotFound."""
        return self.read(schema.Why, f"clusters/{name}/why")

    def events(self, name: str, *, limit: int, before: str = "") -> schema.Events:
        """Return the newest events of a cluster, before a time; raise NotFound."""
        return self.read(schema.Events, f"clusters/{name}/events", limit=str(limit), before=before)

    def drift(self, name: str = "") -> schema.DriftView:
        """Return the clusters that differ from git, or one of them; raise NotFound."""
        if name:
            return self.read(schema.DriftView, "drift", cluster=name)
        return self.typed(schema.DriftView, self.whole("drift", "clusters"))

    def costs(self) -> schema.CostsView:
        """Return what the clusters are listed at, and what Azure has billed."""
        return self.read(schema.CostsView, "cost")

    def replay(self, name: str, reason: str = "", *, override: bool = False) -> schema.Receipt:
        """Start the failed job of a cluster again; raise NotFound, or Refused for one that has not failed.

        In a freeze, and outside its change windows, that takes an ``override``.
        """
        body = {"reason": reason, **({"override": True} if override else {})}
        return self.act(schema.Receipt, f"clusters/{name}/replay", body)

    def refresh(self, names: Sequence[str], reason: str = "") -> schema.RefreshReceipt:
        """Have clusters compared with Azure, all without names; raise NotFound, or Refused for a busy one."""
        body = {"clusters": list(names)} if names else {"all": True}
        return self.act(schema.RefreshReceipt, "refresh", {**body, "reason": reason})

    def readiness(self, to: str, names: Sequence[str], **filters: str) -> schema.ReadinessView:
        """Return whether clusters are ready for an upgrade; raise NotFound."""
        given = {"to": to, "cluster": ",".join(names), **filters}
        return self.typed(schema.ReadinessView, self.whole("readiness", "clusters", **given))

    def doctor(self, asked: str) -> schema.DoctorView:
        """Return what is wrong with the apps; one that has not answered since ``asked`` is so itself."""
        return self.read(schema.DoctorView, "doctor", asked=asked)

    def examine(self, reason: str = "") -> schema.ExaminationReceipt:
        """Ask each app to examine itself."""
        return self.act(schema.ExaminationReceipt, "doctor", {"reason": reason})

    def plans(self) -> schema.PlansView:
        """Return the plans of the last days."""
        return self.read(schema.PlansView, "plans")

    def plan(self, commit: str) -> schema.PlanView:
        """Return a whole plan by its full commit id; raise NotFound."""
        return self.typed(schema.PlanView, self.whole(f"plans/{commit}", "items", "needsApproval"))

    def rollouts(self) -> schema.RolloutsView:
        """Return the rollouts, newest first."""
        return self.read(schema.RolloutsView, "rollouts")

    def rollout(self, commit: str) -> schema.RolloutView:
        """Return a rollout by its full commit id, with all clusters that wait; raise NotFound."""
        return self.typed(schema.RolloutView, self.whole(f"rollouts/{commit}", "waiting"))

    def recorded(self) -> schema.RecordedFleet:
        """Return the clusters as accepted."""
        return self.typed(schema.RecordedFleet, self.whole("recorded", "clusters", "unreadable"))

    def health(self) -> schema.HealthView:
        """Return whether the app is ready, and what is wrong when it is not."""
        return self.typed(schema.HealthView, self._call("GET", "health", accepts=(503,)))
