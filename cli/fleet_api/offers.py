"""What Azure lacks for the clusters of a plan, as the app reads it: it annotates, and stops nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cli.errors import CommandError
from cli.fleet_api.client import Api
from shared.app.api.schema import OFFERED_CLUSTERS, OffersView
from shared.language.resolve.desired_fleet import DesiredFleet
from shared.plan.plan import ASKING_AZURE, Item
from shared.sentences import many


def what_azure_lacks(items: Sequence[Item], desired: DesiredFleet, api: Api) -> tuple[str, ...]:
    """Return a sentence for each thing that Azure does not have; also where the app does not say."""
    touched = (desired.clusters.get(item.cluster) for item in items if item.action in ASKING_AZURE)
    asked = [cluster for cluster in touched if cluster is not None and not cluster.is_attached]
    if not asked:
        return ()
    documents = [
        {"name": cluster.name, "spec": cluster.document()["spec"], "adopt": cluster.adopt}
        for cluster in asked
    ]
    try:
        short = api.act(OffersView, "offers", {"clusters": documents[:OFFERED_CLUSTERS]})["short"]
    except CommandError as error:
        return (f"what Azure has is unknown: {error}",)
    more = len(asked) - OFFERED_CLUSTERS
    return (*short, *([f"Azure was not asked about {many(more, 'more cluster')}"] if more > 0 else ()))
