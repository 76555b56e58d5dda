"""Planning a commit that changes what Flux applies: ``python -m bench.platform_plan [CLUSTERS] [BUILDS]``.

A generated fleet whose clusters apply so many different folders is planned after a change in ``fleet.yaml``,
and after one of a file that all of the folders include: both change every cluster. The seconds are those of
the processor in this process. The builds are apart: kustomize is run once for each folder before and after.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping

from bench.fleet import FLEET, generate
from bench.push import NOW, Bench
from shared.adapters.kustomize import kustomize_program
from shared.app.platform.platform_plan import platform_plan
from shared.app.repository import read_known, read_resolved
from shared.frozen import replace
from shared.plan.make_plan import make_plan
from shared.plan.plan import Action
from shared.platform.builds.build import Builds

OBJECTS = 40
"""How many objects a folder has."""


def files_of(clusters: int, builds: int) -> dict[str, bytes]:
    """Return a fleet whose clusters apply so many folders, all with a common base."""
    files = generate(clusters)
    numbers = {path: number for number, path in enumerate(p for p in files if p.startswith("clusters/"))}
    for path, number in numbers.items():
        files[path] += f"  flux: {{path: ./platform/p-{number % builds}}}\n".encode()
    for number in range(builds):
        files[f"platform/p-{number}/kustomization.yaml"] = (
            f"resources: [../../base]\nnamespace: platform\nnameSuffix: -{number}\n".encode()
        )
    return files | base("1")


def base(version: str) -> dict[str, bytes]:
    """Return the files that all folders include."""
    listed = [f"c-{number}.yaml" for number in range(OBJECTS)]
    files = {
        f"base/{name}": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name[:-5]}}}\n"
        f'data: {{version: "{version}"}}\n'
        for name in listed
    }
    files["base/kustomization.yaml"] = f"resources: [{', '.join(listed)}]\n"
    return {path: text.encode() for path, text in files.items()}


class Planner:
    """Plans a fleet as the planner does; ``building`` are the seconds of the builds."""

    def __init__(self, clusters: int, builds: int) -> None:
        program = kustomize_program()
        if program is None:
            raise SystemExit("kustomize or kubectl is needed")
        self._build, self.building, self.built = program.build, 0.0, 0
        self.bench, self.files = Bench(clusters), files_of(clusters, builds)
        services = replace(self.bench.ports.services, builds=Builds(self._timed))
        self.bench.ports = replace(self.bench.ports, services=services)
        self.bench.plan(self.files)

    def plan(self, files: Mapping[str, bytes]) -> tuple[float, str]:
        """Return the seconds that a plan of these files takes besides its builds, and what it changes."""
        ports, cloud = self.bench.ports, self.bench.cloud
        commit = cloud.repository.push(files)
        began, building = time.process_time(), self.building
        records = {record.name: record for record in ports.state.clusters()}
        read = read_resolved(commit, read_known(records, ports), ports)
        platform = platform_plan(commit, read, records, ports)
        plan = make_plan(commit, read.desired, records, now=NOW, platform=platform)
        seconds = time.process_time() - began - (self.building - building)
        waiting = sum(item.hold is not None for item in plan.items)
        moved = sum(item.action is Action.UPDATE for item in plan.items)
        return seconds, f"{moved} update, {len(platform.changes)} of the platform, {waiting} on hold"

    def _timed(self, files: Mapping[str, bytes], folder: str) -> bytes:
        began = time.process_time()
        try:
            return self._build(files, folder)
        finally:
            self.building += time.process_time() - began
            self.built += 1


def main() -> None:
    """Compare the two changes."""
    given = [int(text) for text in sys.argv[1:]]
    clusters, builds = given + [10_000, 50][len(given) :]
    planner = Planner(clusters, builds)
    old = b"    resourceGroup: rg-{name}\n"
    shared = FLEET.encode().replace(old, old + b"    tags: {changed: all}\n")
    seconds: dict[str, float] = {}
    for name, change in (("fleet.yaml", {"fleet.yaml": shared}), ("the platform", base("2"))):
        began = time.monotonic()
        seconds[name], result = planner.plan({**planner.files, **change})
        print(f"{name:<14} {seconds[name]:7.3f} s  {time.monotonic() - began:7.3f} s in all: {result}")
    print(f"{planner.built} builds; a plan of the platform takes ", end="")
    print(f"{seconds['the platform'] / seconds['fleet.yaml']:.2f} times as long")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MiB")


if __name__ == "__main__":
    main()
