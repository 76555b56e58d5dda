"""What the services do at a call: limits that others use up, lists of several pages, refused identities.

Sources of what the services promise:
- learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling: a bucket for each
  subscription, identity and kind of request, and a Retry-After with each refusal.
- learn.microsoft.com/rest/api/storageservices/query-timeout-and-pagination: a query returns pages, each read
  when it is asked for. Within one page, and for one entity, Table Storage is strongly consistent: no read is
  old, as long as the app reads from the primary region, which its settings name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from localcloud.azure.world import request_limits as limits
from shared.cluster.failures.errors import ReconcileError, Unauthenticated, Unauthorized
from shared.cluster.forms import RecordList
from simulation.faults.calls import SERVICES, Call, CallFault

BUCKETS = (limits.ARM_READ, limits.ARM_WRITE, limits.ARM_DELETE, limits.ANY_OTHER)
USED_UP = (30.0, 120.0, 600.0)
"""Seconds for which somebody else uses up a limit."""
BETWEEN_PAGES = (1.0, 5.0, 35.0)
REFUSED = (60.0, 400.0, 1500.0)
"""Seconds until somebody corrects a setting, or assigns a role again."""
LISTS = ("clusters", "continuations", "clusters_page")


def _used_up(call: Call) -> Any:
    """Let somebody else with the app's identity take every request of one limit."""
    now, limit = call.loop.clock(), call.one_of(*BUCKETS)
    until = now + timedelta(seconds=call.one_of(*USED_UP))
    call.loop.log("    the limit %s is used up until %s", limit.name, until)
    call.loop.azure.limits.use_up(limit, call.args[0].target.subscription, until, now)
    return call.now()


def _in_pages(call: Call) -> Any:
    """Read the second page of a list later than the first one."""
    first = call.now()
    call.loop.freeze(call.one_of(*BETWEEN_PAGES))
    border = call.one_of("b", "c")
    second = call.now()
    found = [cluster for cluster in first if cluster.name < border]
    found += [cluster for cluster in second if cluster.name >= border]
    return RecordList(found, first.unreadable)


def _wrong_settings(call: Call) -> Any:
    """Refuse every call to a service: the credential has expired, or the role was removed."""
    errors: tuple[ReconcileError, ...] = (Unauthenticated("401: the credential has expired"),)
    if call.port in SERVICES:
        errors += (Unauthorized("403: no role", code="AuthorizationFailed"),)
    call.scene.outages[call.port] = call.loop.clock() + timedelta(seconds=call.one_of(*REFUSED))
    refusal = call.scene.refusals[call.port] = call.one_of(*errors)
    raise refusal


FAULTS: Mapping[str, CallFault] = {
    "limit-used-up": CallFault(lambda call: call.operation is not None, _used_up),
    "list-in-pages": CallFault(lambda call: call.port == "state" and call.name in LISTS, _in_pages),
    "wrong-settings": CallFault(lambda call: call.port in ("git_host", *SERVICES), _wrong_settings),
}
"""By name."""
