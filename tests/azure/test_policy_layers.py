"""A drift policy is merged over the layers of a cluster: its rules by their names."""

from __future__ import annotations

from tests.support.resolved_fleets import GOOD, resolved

FLEET = """\
    drift:
      action: correct
      rules:
        - {name: counts, fields: ["nodePools[*].count"], action: report}
        - {name: tags, fields: [tags], action: report}
"""
ENVIRONMENT = "    drift: {missingCluster: recreate}\n"
CLUSTER = """\
  drift:
    rules:
      - name: counts
        action: ignore
        owner: shop
        reason: a test
        expires: "2027-06-30"
      - {name: tags, $patch: delete}
"""


def test_a_cluster_changes_a_rule_of_the_fleet_and_removes_another_one() -> None:
    files = GOOD | {
        "fleet.yaml": GOOD["fleet.yaml"] + FLEET,
        "environments/dev.yaml": GOOD["environments/dev.yaml"] + ENVIRONMENT,
        "clusters/one/cluster.yaml": GOOD["clusters/one/cluster.yaml"] + CLUSTER,
    }
    found = resolved({path: text.encode() for path, text in files.items()})
    assert found.problems == ()
    drift = found.clusters["one"].spec.drift
    assert drift is not None
    assert (drift.action, drift.missing_cluster) == ("correct", "recreate")
    assert [(rule.name, rule.action, rule.owner) for rule in drift.rules] == [("counts", "ignore", "shop")]
    assert drift.rules[0].fields == ("nodePools[*].count",)
