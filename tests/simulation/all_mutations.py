"""All mutations, and in how many seeds each must be found."""

from __future__ import annotations

from tests.simulation.channel_mutations import CHANNEL_MUTATIONS
from tests.simulation.check_mutations import CHECK_MUTATIONS
from tests.simulation.contest_mutations import CONTEST_MUTATIONS
from tests.simulation.disaster_mutations import DISASTER_MUTATIONS
from tests.simulation.fault_mutations import FAULT_MUTATIONS
from tests.simulation.gate_mutations import GATE_MUTATIONS
from tests.simulation.identity_mutations import IDENTITY_MUTATIONS
from tests.simulation.lifetime_mutations import LIFETIME_MUTATIONS
from tests.simulation.mutations import MUTATIONS
from tests.simulation.pause_mutations import PAUSE_MUTATIONS
from tests.simulation.pins_back_mutations import PINS_BACK_MUTATIONS
from tests.simulation.platform_mutations import PLATFORM_MUTATIONS
from tests.simulation.promotion_mutations import PROMOTION_MUTATIONS
from tests.simulation.pull_request_mutations import PULL_REQUEST_MUTATIONS
from tests.simulation.rebuild_mutations import REBUILD_MUTATIONS
from tests.simulation.replacement_mutations import REPLACEMENT_MUTATIONS
from tests.simulation.request_mutations import REQUEST_MUTATIONS
from tests.simulation.review_mutations import REVIEW_MUTATIONS
from tests.simulation.rollback_mutations import ROLLBACK_MUTATIONS
from tests.simulation.rollout_mutations import ROLLOUT_MUTATIONS
from tests.simulation.route_mutations import ROUTE_MUTATIONS
from tests.simulation.secret_mutations import SECRET_MUTATIONS
from tests.simulation.sleep_mutations import SLEEP_MUTATIONS
from tests.simulation.sweep_mutations import SWEEP_MUTATIONS
from tests.simulation.system_mutations import SYSTEM_MUTATIONS
from tests.simulation.upkeep_mutations import UPKEEP_MUTATIONS
from tests.simulation.version_mutations import VERSION_MUTATIONS
from tests.simulation.view_mutations import VIEW_MUTATIONS

MOST_SEEDS = 400
ALL = (
    *MUTATIONS,
    *VIEW_MUTATIONS,
    *FAULT_MUTATIONS,
    *DISASTER_MUTATIONS,
    *UPKEEP_MUTATIONS,
    *REVIEW_MUTATIONS,
    *PULL_REQUEST_MUTATIONS,
    *CONTEST_MUTATIONS,
    *SWEEP_MUTATIONS,
    *CHECK_MUTATIONS,
    *ROUTE_MUTATIONS,
    *PAUSE_MUTATIONS,
    *ROLLOUT_MUTATIONS,
    *GATE_MUTATIONS,
    *ROLLBACK_MUTATIONS,
    *PROMOTION_MUTATIONS,
    *PLATFORM_MUTATIONS,
    *PINS_BACK_MUTATIONS,
    *SYSTEM_MUTATIONS,
    *IDENTITY_MUTATIONS,
    *REBUILD_MUTATIONS,
    *REPLACEMENT_MUTATIONS,
    *SECRET_MUTATIONS,
    *VERSION_MUTATIONS,
    *SLEEP_MUTATIONS,
    *REQUEST_MUTATIONS,
    *LIFETIME_MUTATIONS,
    *CHANNEL_MUTATIONS,
)
