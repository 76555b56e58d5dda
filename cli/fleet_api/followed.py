"""The sources that clusters follow besides the fleet repository, as the API has them."""

from __future__ import annotations

from shared.app.api import schema
from shared.platform.followed import Followed, key_of


def followed_of(view: schema.FollowedSource) -> Followed:
    """Return a source that clusters follow; its text says how many do, its newest commit and its problem."""
    key, problem = key_of(view["repository"], view["branch"]), view["problem"]
    return Followed(
        key, view["commit"], problem=problem, remedy=view["suggestedAction"], clusters=view["clusterCount"]
    )
