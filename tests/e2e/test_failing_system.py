"""A team's system that fails, over the wire: in `why`, on the commit status and in the team's channel.

The team corrects its own repository. Then the job of the cluster ends, without a commit of the fleet and
without an operator.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from localcloud.demo.checkout import Checkout
from localcloud.git.world.git_commands import git_environment
from localcloud.keyvault.example_secrets import EXAMPLE_VAULT
from localcloud.runtime.options import Options
from localcloud.runtime.parts.part import repositories, shown_notifications
from shared.kubernetes.flux_objects import SOURCE
from shared.resource_ids import ObjectRef
from tests.support import team_systems
from tests.support.fleet_operator import Operator
from tests.support.inside_clusters import kubernetes, reconcile_now
from tests.support.local_cloud_start import Start
from tests.support.reporting_flux import reporting_files

FAST = Options(create_seconds=1, lock_seconds=5, extra={"POLL_SECONDS": "0.5"})
REPOSITORY = "https://github.com/example/shop"
ALERTS = "  alerts: {type: msteams, secretRef: {name: channel}}\n"
CHANNEL = f"""\
  bootstrapSecrets:
    - {{name: channel, namespace: shop, vault: {EXAMPLE_VAULT}, keys: {{address: teams-shop}}}}
"""
SHOP = team_systems.system("shop", "one", extra=ALERTS).replace(
    team_systems.URL.encode(), REPOSITORY.encode()
)
FILES = reporting_files(CHANNEL) | {"systems/shop.yaml": SHOP}
APP = "apps/shop/web.yaml"
GOOD, BROKEN = {APP: team_systems.DEPLOYMENT}, {APP: b"kind: [unfinished"}
SYSTEM = "the system shop of shop-team@example.com"
PULLED = ObjectRef(SOURCE.api_version, SOURCE.kind, "shop", "shop")


def repository_of_the_team(operator: Operator, folder: Path) -> Checkout:
    """Create the team's repository, and return a clone of it."""
    path = repositories(operator.cloud.state) / "example" / "shop.git"
    create = ["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)]
    subprocess.run(create, check=True, env=git_environment(), timeout=60)
    return Checkout(str(path), folder)


def in_channel(operator: Operator) -> list[str]:
    """Return the messages that the team's channel has got."""
    shown = shown_notifications(operator.cloud.state)
    messages = shown.read_text().split("\n\n") if shown.is_file() else []
    return [message for message in messages if message.startswith("kustomization/shop.shop")]


def test_a_failing_system_is_shown_everywhere_and_recovers_by_itself(start: Start, tmp_path: Path) -> None:
    operator = start(FAST)
    team = repository_of_the_team(operator, tmp_path / "shop")
    team.replace_all(BROKEN)
    failing = team.push("a manifest that is not whole")
    commit = operator.push(FILES)
    operator.wait(lambda: bool(in_channel(operator)), "Flux sends the failure to the team's channel")
    assert f"main@sha1:{failing}" in in_channel(operator)[0]
    operator.wait(lambda: SYSTEM in operator.status(commit), "the status of the commit names the system")
    assert operator.status(commit).startswith("pending")
    why = operator.api.get("clusters/one/why")
    assert f"{SYSTEM}: Kustomization shop/shop: BuildFailed" in why["doing"]
    assert f"(Flux tried commit {failing[:8]})" in why["doing"]
    owner = "Ask shop-team@example.com to correct what the message names in"
    assert why["suggestedAction"] == f"{owner} {REPOSITORY}."
    team.replace_all(GOOD)
    team.push("it is whole")
    with kubernetes(operator, "one") as api:
        reconcile_now(api, PULLED)  # as the team does with flux reconcile; Flux looks once a minute
    operator.wait_for_status(commit, "success")
    assert operator.phases() == {"one": "Ready"}
