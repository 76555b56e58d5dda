"""The client of the HTTP API: a method for each call, which returns an object of the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from cli.fleet_api.connection import Connection, given
from shared.app.api import schema


class Api(Connection):
    """The calls of a Roadstead app. Close after use."""

    def planned(self) -> schema.FleetView:
        """Return the fleet with the commit that was planned last, and one cluster at most."""
        return self.typed(schema.FleetView, self.get("clusters?limit=1"))

    def fleet(self, **filters: str) -> schema.FleetView:
        """Return the fleet with all its clusters, or those that the filters of the API leave."""
        return self.typed(schema.FleetView, self.whole("clusters", "clusters", "unreadable", **filters))

    def fleet_page(self, limit: int, after: str = "", **filters: str) -> schema.FleetView:
        """Return the fleet with a page of its clusters."""
        query = urlencode(given(limit=str(limit), after=after, **filters))
        return self.typed(schema.FleetView, self.get(f"clusters?{query}"))

    def cluster(self, name: str) -> schema.ClusterView | schema.MissingCluster:
        """Return one cluster; raise NotFound."""
        view = self.get(f"clusters/{name}")
        kind = schema.ClusterView if "generation" in view else schema.MissingCluster
        return self.typed(kind, view)

    def why(self, name: str) -> schema.Why:
        """Return why a cluster is in its phase; raise NotFound."""
        return self.typed(schema.Why, self.get(f"clusters/{name}/why"))

    def tree(self, name: str) -> schema.TreeView:
        """Return a cluster as a tree; raise NotFound."""
        return self.typed(schema.TreeView, self.get(f"clusters/{name}/tree"))

    def outputs(self, name: str) -> schema.Outputs:
        """Return the outputs of a cluster; raise NotFound."""
        return self.typed(schema.Outputs, self.get(f"clusters/{name}/output"))

    def events(self, name: str, *, limit: int, before: str = "") -> schema.Events:
        """Return the newest events of a cluster, before a time; raise NotFound."""
        older = f"&before={quote(before, safe='')}" if before else ""
        return self.typed(schema.Events, self.get(f"clusters/{name}/events?limit={limit}{older}"))

    def drift(self, name: str = "") -> schema.DriftView:
        """Return the clusters that differ from git, or one of them; raise NotFound."""
        if name:
            return self.typed(schema.DriftView, self.get(f"drift?cluster={quote(name, safe='')}"))
        return self.typed(schema.DriftView, self.whole("drift", "clusters"))

    def costs(self) -> schema.CostsView:
        """Return what the clusters are listed at, and what Azure has billed."""
        return self.typed(schema.CostsView, self.get("cost"))

    def audit(self, *, limit: int, before: str = "") -> schema.Audit:
        """Return the newest acts, before a time."""
        older = f"&before={quote(before, safe='')}" if before else ""
        return self.typed(schema.Audit, self.get(f"audit?limit={limit}{older}"))

    def replay(self, name: str, reason: str = "", *, override: bool = False) -> schema.Receipt:
        """Start the failed job of a cluster again; raise NotFound, or Refused for one that has not failed.

        In a freeze, and outside its change windows, that takes an ``override``.
        """
        body = {"reason": reason, **({"override": True} if override else {})}
        return self.typed(schema.Receipt, self.post(f"clusters/{name}/replay", body))

    def begin_try(self, name: str, pull: int, lasts: str, reason: str = "") -> schema.TryReceipt:
        """Give a cluster the head of a pull request for a time; raise NotFound, or Refused with why not."""
        body = {"pull": pull, "for": lasts, "reason": reason}
        return self.typed(schema.TryReceipt, self.post(f"clusters/{name}/try", body))

    def request_cluster(self, body: Mapping[str, str]) -> schema.ClusterRequestReceipt:
        """Have a pull request opened that adds a cluster; raise Refused with why not."""
        return self.typed(schema.ClusterRequestReceipt, self.post("requests", dict(body)))

    def extend(self, name: str, lasts: str, reason: str, *, hold: bool) -> schema.LifetimeReceipt:
        """Put the end of a cluster off, or hold the cluster; raise NotFound, or Refused with why not."""
        body = {"for": lasts, "hold": hold, "reason": reason}
        return self.typed(schema.LifetimeReceipt, self.post(f"clusters/{name}/extend", body))

    def end_try(self, name: str, pull: int, reason: str = "") -> schema.Receipt:
        """Let a cluster go back from the head of a pull request; raise NotFound, or Refused without a try."""
        body = {"pull": pull, "reason": reason}
        return self.typed(schema.Receipt, self.post(f"clusters/{name}/try/end", body))

    def refresh(self, names: Sequence[str], reason: str = "") -> schema.RefreshReceipt:
        """Have clusters compared with Azure, all without names; raise NotFound, or Refused for a busy one."""
        body = {"clusters": list(names)} if names else {"all": True}
        return self.typed(schema.RefreshReceipt, self.post("refresh", {**body, "reason": reason}))

    def readiness(self, to: str, names: Sequence[str], **filters: str) -> schema.ReadinessView:
        """Return whether clusters are ready for an upgrade; raise NotFound."""
        given = {"to": to, "cluster": ",".join(names), **filters}
        return self.typed(schema.ReadinessView, self.whole("readiness", "clusters", **given))

    def read_readiness(self, names: Sequence[str], reason: str = "") -> schema.RefreshReceipt:
        """Have clusters read before an upgrade, at most 100; raise NotFound."""
        return self.typed(
            schema.RefreshReceipt, self.post("readiness", {"clusters": list(names), "reason": reason})
        )

    def sync(self, reason: str = "") -> schema.SyncReceipt:
        """Have the branch read and its head planned, if it was not planned yet."""
        return self.typed(schema.SyncReceipt, self.post("sync", {"reason": reason}))

    def wake(self, name: str, until: str, reason: str) -> schema.SleepReceipt:
        """Start a cluster that sleeps; raise NotFound, or Refused for one that does not sleep."""
        return self._sleep(name, "wake", until, reason)

    def sleep(self, name: str, until: str, reason: str) -> schema.SleepReceipt:
        """Stop a cluster that is awake; raise NotFound, or Refused for one that sleeps, or never may."""
        return self._sleep(name, "sleep", until, reason)

    def postpone(self, name: str, until: str, reason: str) -> schema.SleepReceipt:
        """Keep a cluster awake until a time; raise NotFound, or Refused for one that sleeps."""
        return self._sleep(name, "postpone", until, reason)

    def _sleep(self, name: str, act: str, until: str, reason: str) -> schema.SleepReceipt:
        body = {"until": until, "reason": reason}
        return self.typed(schema.SleepReceipt, self.post(f"clusters/{name}/{act}", body))

    def pause(self, reason: str, until: str) -> schema.PauseReceipt:
        """Stop what the app starts by itself, until a time, or "" for a resume."""
        return self.typed(schema.PauseReceipt, self.post("pause", {"reason": reason, "until": until}))

    def resume(self, reason: str = "") -> schema.PauseReceipt:
        """End the pause; raise Refused where there is none."""
        return self.typed(schema.PauseReceipt, self.post("resume", {"reason": reason}))

    def doctor(self, asked: str) -> schema.DoctorView:
        """Return what is wrong with the apps; one that has not answered since ``asked`` is so itself."""
        return self.typed(schema.DoctorView, self.get(f"doctor?asked={quote(asked, safe='')}"))

    def examine(self, reason: str = "") -> schema.ExaminationReceipt:
        """Ask each app to examine itself."""
        return self.typed(schema.ExaminationReceipt, self.post("doctor", {"reason": reason}))

    def take_over(self, name: str, reason: str = "") -> schema.Receipt:
        """Take a cluster over; raise NotFound, or Refused for one that waits for no takeover."""
        return self.typed(schema.Receipt, self.post(f"clusters/{name}/takeover", {"reason": reason}))

    def accept_repository(self, reason: str = "") -> schema.SourceReceipt:
        """Accept the repository or branch that the planner refused; raise Refused when it refused none."""
        return self.typed(schema.SourceReceipt, self.post("takeover", {"reason": reason}))

    def plans(self) -> schema.PlansView:
        """Return the plans of the last days."""
        return self.typed(schema.PlansView, self.get("plans"))

    def plan(self, commit: str) -> schema.PlanView:
        """Return a whole plan by its full commit id; raise NotFound."""
        return self.typed(schema.PlanView, self.whole(f"plans/{commit}", "items", "needsApproval"))

    def log(self, environment: str) -> schema.Log:
        """Return the commits after those of an environment; raise NotFound for one without a cluster."""
        return self.typed(schema.Log, self.get(f"log?environment={quote(environment, safe='')}"))

    def approve(self, commit: str, clusters: Sequence[str], reason: str = "") -> schema.Receipt:
        """Approve exactly these deletes of a plan; raise Refused when others need approval."""
        body = {"clusters": list(clusters), "reason": reason}
        return self.typed(schema.Receipt, self.post(f"plans/{commit}/approve", body))

    def rollouts(self) -> schema.RolloutsView:
        """Return the rollouts, newest first."""
        return self.typed(schema.RolloutsView, self.get("rollouts"))

    def rollout(self, commit: str) -> schema.RolloutView:
        """Return a rollout by its full commit id, with all clusters that wait; raise NotFound."""
        return self.typed(schema.RolloutView, self.whole(f"rollouts/{commit}", "waiting"))

    def act_on_rollout(self, commit: str, kind: str, reason: str = "", **subject: str) -> schema.Receipt:
        """Act on a rollout; raise NotFound, or Refused where the act has no meaning."""
        body = {**subject, "reason": reason}
        return self.typed(schema.Receipt, self.post(f"rollouts/{commit}/{kind}", body))

    def promotions(self) -> schema.PromotionsView:
        """Return the promotions, by environment."""
        return self.typed(schema.PromotionsView, self.get("promotions"))

    def promote(
        self, source: str, target: str, what: Sequence[str], reason: str = ""
    ) -> schema.PromotionReceipt:
        """Ask for the pull request of a promotion; raise Refused where nothing can be promoted."""
        body = {"from": source, "to": target, "what": list(what), "reason": reason}
        return self.typed(schema.PromotionReceipt, self.post("promotions", body))

    def roll_back(self, name: str, pool: str, reason: str = "") -> schema.RollbackReceipt:
        """Have a rollback of a node pool proposed; raise NotFound, or Refused with each unmet condition."""
        body = {"reason": reason}
        return self.typed(schema.RollbackReceipt, self.post(f"clusters/{name}/pools/{pool}/rollback", body))

    def approve_correction(self, name: str, correction: str, reason: str = "") -> schema.Receipt:
        """Approve exactly these corrections of a cluster; raise NotFound, or Refused for others."""
        body = {"correction": correction, "reason": reason}
        return self.typed(schema.Receipt, self.post(f"clusters/{name}/approve", body))

    def accept(self, name: str, fields: Mapping[str, str], reason: str = "") -> schema.Receipt:
        """Accept fields of a cluster with these values; raise NotFound, or Refused for others."""
        body = {"fields": dict(fields), "reason": reason}
        return self.typed(schema.Receipt, self.post(f"clusters/{name}/accept", body))

    def recorded(self) -> schema.RecordedFleet:
        """Return the clusters as accepted."""
        return self.typed(schema.RecordedFleet, self.whole("recorded", "clusters", "unreadable"))

    def offers(self, clusters: Sequence[Mapping[str, Any]]) -> schema.OffersView:
        """Return what Azure lacks for clusters, each with ``name``, ``spec`` and ``adopt``."""
        return self.typed(schema.OffersView, self.post("offers", {"clusters": list(clusters)}))

    def suspend(self, names: Sequence[str], lasts: str, owner: str, reason: str) -> schema.SuspensionReceipt:
        """Have a suspension of clusters proposed; raise NotFound, or Refused where one cannot be written."""
        body = {"clusters": list(names), "for": lasts, "owner": owner, "reason": reason}
        return self.typed(schema.SuspensionReceipt, self.post("suspensions", body))

    def routes(self) -> schema.RoutesView:
        """Return the routes of notifications."""
        return self.typed(schema.RoutesView, self.get("notifications"))

    def try_route(self, name: str, reason: str = "") -> schema.Receipt:
        """Send a test message; raise NotFound, or Refused for a route that does not deliver."""
        body = {"route": name, "reason": reason}
        return self.typed(schema.Receipt, self.post("notifications/test", body))

    def dead_letters(self) -> schema.DeadLettersView:
        """Return the newest dead letters."""
        return self.typed(schema.DeadLettersView, self.get("dead-letters"))

    def replay_letters(
        self, letters: Sequence[schema.DeadLetterView], reason: str = ""
    ) -> schema.LettersReceipt:
        """Send the messages of these dead letters again; raise Refused for one that is not stored whole."""
        body = _letters(letters, reason)
        return self.typed(schema.LettersReceipt, self.post("dead-letters/replay", body))

    def dismiss(self, letters: Sequence[schema.DeadLetterView], reason: str = "") -> schema.DismissReceipt:
        """Remove these dead letters."""
        body = _letters(letters, reason)
        return self.typed(schema.DismissReceipt, self.post("dead-letters/dismiss", body))

    def imported(self, resource: str) -> schema.Imported:
        """Return the manifest of a managed cluster by its ARM id."""
        return self.typed(schema.Imported, self.get(f"import?resource={quote(resource, safe='')}"))

    def importable(self, subscription: str) -> schema.Importable:
        """Return the managed clusters of a subscription."""
        return self.typed(schema.Importable, self.get(f"importable?subscription={subscription}"))

    def live(self, names: Sequence[str]) -> schema.Live:
        """Return some clusters as Azure shows them now; raise NotFound."""
        return self.typed(schema.Live, self.get(f"live?clusters={quote(','.join(names), safe=',')}"))

    def health(self) -> schema.HealthView:
        """Return whether the app is ready, and what is wrong when it is not."""
        return self.typed(schema.HealthView, self._call("GET", "health", accepts=(503,)))


def _letters(letters: Sequence[schema.DeadLetterView], reason: str) -> dict[str, Any]:
    named = [{"queue": letter["queue"], "id": letter["id"]} for letter in letters]
    return {"deadLetters": named, "reason": reason}
