"""What the fleet runs: versions of Kubernetes and of node images by environment. It reads summaries alone."""

from __future__ import annotations

from collections import Counter, defaultdict

from shared.app.api import schema
from shared.azure.availability.retirements import retires_on, stale
from shared.cluster.reporting.summary import ClusterSummary, SummaryDetails
from shared.ports import Ports

NOT_READ = SummaryDetails("", {}, {})


def versions_view(ports: Ports) -> schema.VersionsView:
    """Return how many clusters of each environment run which version, and have which images."""
    today = ports.clock().date()
    versions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    images: defaultdict[str, Counter[str]] = defaultdict(Counter)
    changing: Counter[str] = Counter()
    for summary in ports.state.summaries(details=True):
        if summary.place.attached:
            continue
        environment, (wanted, running) = summary.place.environment, _versions(summary)
        versions[environment][running or "unknown"] += 1
        images[environment].update((summary.details or NOT_READ).images or ("unknown",))
        changing[environment] += bool(running and not _has(running, wanted))
    support = {version: retires_on(version, today) for found in versions.values() for version in found}
    return {
        "environments": [
            {
                "environment": environment,
                "clusters": versions[environment].total(),
                "versions": dict(sorted(versions[environment].items())),
                "images": dict(sorted(images[environment].items())),
                "notAsGit": changing[environment],
            }
            for environment in sorted(versions)
        ],
        "supportEnds": {version: on.isoformat() for version, on in sorted(support.items()) if on},
        "note": stale(today),
    }


def _versions(summary: ClusterSummary) -> tuple[str, str]:
    return (summary.details or NOT_READ).versions


def _has(running: str, wanted: str) -> bool:
    """Return whether what runs is the version that git has, which may be without its last number."""
    return running == wanted or running.startswith(f"{wanted}.")
