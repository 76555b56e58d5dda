"""The cluster autoscaler: one profile for all pools of a cluster. All but four fields are strings in ARM.

Source: learn.microsoft.com/rest/api/aks/managed-clusters, ManagedClusterPropertiesAutoScalerProfile.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, StrictStr, model_validator

from shared.fleet.manifests.arm_types import Duration, Flag, Minutes, Seconds, Section
from shared.fleet.manifests.base import rule

Number = Annotated[StrictStr, rule(r"[0-9]+", 'an integer in quotes, such as "10"')]
Fraction = Annotated[StrictStr, rule(r"0(\.[0-9]+)?|1(\.0+)?", 'a fraction in quotes, such as "0.5"')]
Truth = Annotated[StrictStr, rule("true|false", '"true" or "false", in quotes')]


class AutoScalerProfile(Section):
    """How the cluster autoscaler decides; the names are its own flags."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    balance_similar_node_groups: Truth | None = None
    """The autoscaler keeps similar pools at similar sizes."""
    daemonset_eviction_for_empty_nodes: Flag = None
    """Pods of DaemonSets are evicted before an empty node is removed."""
    daemonset_eviction_for_occupied_nodes: Flag = None
    """Pods of DaemonSets are evicted before a node that is not empty is removed."""
    ignore_daemonsets_utilization: Flag = None
    """The usage of DaemonSets does not count towards a node's utilization."""
    expander: Literal["least-waste", "most-pods", "priority", "random"] | None = None
    """Which pool grows when several could."""
    max_empty_bulk_delete: Number | None = None
    """How many empty nodes are removed at once."""
    max_graceful_termination_sec: Number | None = None
    """How many seconds pods may take to end when a node is removed."""
    max_node_provision_time: Minutes | None = None
    """How long a new node may take to start."""
    max_total_unready_percentage: Number | None = None
    """The percentage of unready nodes above which the autoscaler stops."""
    new_pod_scale_up_delay: Duration | None = None
    """Pods younger than this do not trigger a scale-up."""
    ok_total_unready_count: Number | None = None
    """The number of nodes that may be unready, whatever the percentage."""
    scan_interval: Seconds | None = None
    """How often the autoscaler checks."""
    scale_down_delay_after_add: Minutes | None = None
    """How long to wait after a scale-up before nodes may be removed."""
    scale_down_delay_after_delete: Minutes | Seconds | None = None
    """How long to wait after the removal of a node before the next one; scan-interval by default."""
    scale_down_delay_after_failure: Minutes | None = None
    """How long to wait after a failed removal before the next one."""
    scale_down_unneeded_time: Minutes | None = None
    """How long a node must be unneeded before it is removed."""
    scale_down_unready_time: Minutes | None = None
    """How long a node that is not ready must be unneeded before it is removed."""
    scale_down_utilization_threshold: Fraction | None = None
    """The utilization, as a fraction, below which a node is unneeded."""
    skip_nodes_with_local_storage: Truth | None = None
    """Nodes with pods that use local storage are not removed."""
    skip_nodes_with_system_pods: Truth | None = None
    """Nodes with pods of kube-system are not removed."""

    @model_validator(mode="after")
    def _seconds_only_as_the_default(self) -> Self:
        delay, scan = self.scale_down_delay_after_delete, self.scan_interval or "10s"
        if delay and delay.endswith("s") and delay != scan:
            raise ValueError(
                f'scale-down-delay-after-delete must be minutes such as "10m", or scan-interval ({scan}), '
                f"which is its default, got {delay}"
            )
        return self
