"""The HelmChart objects of the local Flux: charts in a folder of a GitRepository.

Source of conditions, reasons and messages: ``fluxcd/source-controller`` v1.7.3
(``internal/controller/helmchart_controller.go``, ``api/v1/helmchart_types.go``). Charts of a HelmRepository
are not fetched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from localcloud.common.clock import in_seconds
from localcloud.flux.flux_conditions import FluxCondition, ObjectNotReady, with_conditions
from localcloud.flux.helm.helm_templates import Chart, chart_of
from localcloud.flux.reconciling import reconcile_due
from localcloud.flux.schedule import ReconcileSchedule, seconds_of
from localcloud.flux.source_controller import API, STORAGE, SourceRevision
from localcloud.kubernetes.world.kubernetes_world import KubernetesWorld
from localcloud.kubernetes.world.object_store import At, Object

_MANAGER = "source-controller"


@dataclass(frozen=True)
class _PackagedChart:
    generation: int
    chart: Chart


class HelmChartController:
    """Packages the charts of one cluster; ``artifact`` gives what a GitRepository holds."""

    def __init__(
        self,
        world: KubernetesWorld,
        artifact: Callable[[Object], SourceRevision | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._world, self._artifact, self._clock = world, artifact, clock
        self._charts: dict[str, _PackagedChart] = {}
        self.schedule = ReconcileSchedule(clock)

    def chart(self, value: Object) -> Chart | None:
        """Return what was last packaged for a HelmChart."""
        kept = self._charts.get(value["metadata"]["uid"])
        return None if kept is None else kept.chart

    def reconcile(self) -> None:
        """Reconcile every HelmChart that is due, or whose source has another revision."""
        reconcile_due(self._world, (API, "HelmChart"), self.schedule, self._one, self._revision)

    def _revision(self, at: At, value: Object) -> str:
        found = self._source(at, value) or {}
        return str((found.get("status") or {}).get("artifact", {}).get("revision") or "")

    def _source(self, at: At, value: Object) -> Object | None:
        ref = value["spec"]["sourceRef"]
        kind = self._world.kind(API, str(ref["kind"]))
        return None if kind is None else self._world.find(At(kind, ref["name"], at.namespace))

    def _one(self, at: At, value: Object) -> None:
        source, revision = self._source(at, value), self._revision(at, value)
        status = dict(value.get("status") or {})
        try:
            chart = self._packaged(value, source, revision)
            message = f"packaged '{chart.name}' chart with version '{chart.version}'"
            found = [
                FluxCondition("Ready", "True", "ChartPackageSucceeded", message),
                FluxCondition("ArtifactInStorage", "True", "ChartPackageSucceeded", message),
            ]
            status |= self._artifact_of(at, value, chart, status)
            status |= {"observedChartName": chart.name, "observedSourceArtifactRevision": revision}
            self.schedule.ran(value, seconds_of(value["spec"], "interval", 600.0), revision)
        except ObjectNotReady as problem:
            found = [FluxCondition("Ready", "False", problem.reason, problem.message)]
            self.schedule.failed(value, revision)
        whole = with_conditions(value, status, found, self._clock())
        self._world.set_status(at, whole, manager=_MANAGER)

    def _packaged(self, value: Object, source: Object | None, revision: str) -> Chart:
        spec, ref = value["spec"], value["spec"]["sourceRef"]
        if ref["kind"] != "GitRepository":
            raise ObjectNotReady("ChartPullFailed", f"the local Flux does not know charts of a {ref['kind']}")
        content = None if source is None else self._artifact(source)
        if content is None or not revision:
            text = f"no artifact available for {ref['kind']} source '{ref['name']}'"
            raise ObjectNotReady("NoSourceArtifact", text)
        strict = spec.get("reconcileStrategy") == "Revision"
        found = chart_of(
            content.files(), spec["chart"], revision=revision.rpartition(":")[2] if strict else ""
        )
        kept = self._charts.get(value["metadata"]["uid"])
        generation = value["metadata"]["generation"]
        if kept and (kept.generation, kept.chart.name, kept.chart.version) == (
            generation,
            found.name,
            found.version,
        ):
            return kept.chart  # only another version, or another spec, is another chart
        self._charts[value["metadata"]["uid"]] = _PackagedChart(generation, found)
        return found

    def _artifact_of(self, at: At, value: Object, chart: Chart, status: dict[str, Any]) -> dict[str, Any]:
        before = status.get("artifact") or {}
        if (
            before.get("revision") == chart.version
            and status.get("observedGeneration") == value["metadata"]["generation"]
        ):
            return {}
        path = f"helmchart/{at.namespace}/{at.name}/{chart.name}-{chart.version}.tgz"
        content = repr(sorted(chart.files.items())).encode()
        artifact = {
            "digest": f"sha256:{hashlib.sha256(content).hexdigest()}",
            "lastUpdateTime": in_seconds(self._clock()),
            "path": path,
            "revision": chart.version,
            "size": len(content),
            "url": f"{STORAGE}/{path}",
        }
        return {"artifact": artifact}
