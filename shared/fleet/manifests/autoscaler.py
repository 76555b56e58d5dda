"""The cluster autoscaler: one profile for all pools of a cluster. ARM takes text for all but four fields."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, StrictStr

from shared.fleet.manifests.arm import Duration, Flag, Minutes, Section
from shared.fleet.manifests.base import rule

Number = Annotated[StrictStr, rule(r"[0-9]+", 'a whole number in quotes, such as "10"')]
Fraction = Annotated[StrictStr, rule(r"0(\.[0-9]+)?|1(\.0+)?", 'a fraction in quotes, such as "0.5"')]
Truth = Annotated[StrictStr, rule("true|false", '"true" or "false", in quotes')]


class AutoScalerProfile(Section):
    """How the cluster autoscaler decides; the names are its own flags."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    balance_similar_node_groups: Truth | None = None
    daemonset_eviction_for_empty_nodes: Flag = None
    daemonset_eviction_for_occupied_nodes: Flag = None
    ignore_daemonsets_utilization: Flag = None
    expander: Literal["least-waste", "most-pods", "priority", "random"] | None = None
    max_empty_bulk_delete: Number | None = None
    max_graceful_termination_sec: Number | None = None
    max_node_provision_time: Minutes | None = None
    max_total_unready_percentage: Number | None = None
    new_pod_scale_up_delay: Duration | None = None
    ok_total_unready_count: Number | None = None
    scan_interval: Duration | None = None
    scale_down_delay_after_add: Duration | None = None
    scale_down_delay_after_delete: Duration | None = None
    scale_down_delay_after_failure: Duration | None = None
    scale_down_unneeded_time: Duration | None = None
    scale_down_unready_time: Duration | None = None
    scale_down_utilization_threshold: Fraction | None = None
    skip_nodes_with_local_storage: Truth | None = None
    skip_nodes_with_system_pods: Truth | None = None
