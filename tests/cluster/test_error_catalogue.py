"""The catalogue of errors: none of Microsoft's documented codes is without an entry; each entry is whole."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import datetime
from importlib.resources import files
from pathlib import Path

import pytest

from shared.cluster.failures.advice import action_for, remedy_for
from shared.cluster.failures.catalogue import (
    AZURE,
    FLUX,
    KUBERNETES,
    Actor,
    CatalogueEntry,
    entries_in,
    entry_of,
)
from shared.cluster.failures.errors import (
    Interrupted,
    InvalidManifest,
    Retryable,
    RoleNotEffective,
)
from shared.cluster.failures.retry import policy_for
from shared.json_tree import Json
from shared.notifications.notification import ACTION_LIMIT

DOCUMENTED = json.loads(Path(__file__).with_name("documented_codes.json").read_text())
ENTRIES = (*AZURE.entries, *KUBERNETES.entries, *FLUX.entries)
NAMED = [entry for entry in ENTRIES if entry.key.startswith("named/")]


def test_no_documented_code_is_without_an_entry() -> None:
    for page in DOCUMENTED["pages"]:
        for code in page["codes"]:
            assert AZURE.find(code) is not None, code


def test_the_list_of_documented_codes_names_its_source_and_its_dates() -> None:
    assert DOCUMENTED["source"].startswith("MicrosoftDocs/SupportArticles-docs")
    dates = [DOCUMENTED["read"], *(page["date"] for page in DOCUMENTED["pages"])]
    assert all(datetime.fromisoformat(date) for date in dates)
    codes = {code for page in DOCUMENTED["pages"] for code in page["codes"]}
    assert len(codes) > 60


def test_every_page_of_the_folders_is_read_or_has_no_code() -> None:
    """``folders`` is what the repository has; ``earlier`` has the page that took an older one's place."""
    pages, earlier = {page["page"] for page in DOCUMENTED["pages"]}, DOCUMENTED["earlier"]
    assert {*earlier.values()} <= pages
    read = [page for page in pages if page.startswith(("error-codes/", "create-upgrade-delete/"))]
    assert sorted([*read, *earlier, *DOCUMENTED["without"]]) == DOCUMENTED["folders"]


def test_a_code_is_known_whatever_its_text_is() -> None:
    for code in sorted({code for entry in AZURE.entries for code in entry.codes if code}):
        assert AZURE.find(code, text="a text that no page shows") is not None, code


def test_keys_are_unique_and_lead_to_their_entries() -> None:
    assert Counter(entry.key for entry in ENTRIES).most_common(1)[0][1] == 1
    assert all(entry_of(entry.key) is entry for entry in ENTRIES)
    assert entry_of("") is entry_of("aks/nothing") is None


def test_no_entry_of_a_table_takes_the_place_of_another() -> None:
    tables = (files("shared.cluster.failures") / "tables").iterdir()
    keys = [line for table in tables for line in table.read_text().splitlines() if re.match(r"[a-z]+/", line)]
    assert len(keys) == len(ENTRIES) > 250


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("kind: Obstructed\n  kinds: x", "kinds: Extra inputs are not permitted"),
        ("kind: Obstruct", "kind: Input should be a subclass of ReconcileError"),
        ("kind: Obstructed\n  actor: nobodies", "actor: Input should be"),
        ("wraps: true", "kind: Field required"),
        ("kind: InvalidManifest", "Value error, nothing says where it is documented"),
        ("kind: Refused\n  docs: aks/faq\n  remedy: Wait.", "Value error, nothing says who acts"),
        ("kind: Obstructed\n  docs: aks/faq", "Value error, nothing says what to do"),
    ],
)
def test_a_wrong_entry_of_a_table_is_refused_with_its_place(wrong: str, why: str) -> None:
    text = f"# a comment\nown/Code:\n  meaning: It is so.\n  {wrong}\n"
    with pytest.raises(ValueError, match=re.escape(f"own.yaml:2: own/Code: {why}")):
        list(entries_in("own.yaml", text))


def test_no_code_has_two_entries_that_are_equally_specific() -> None:
    seen = Counter(
        (code.lower(), entry.subcode, entry.says)
        for entry in AZURE.entries
        if not entry.family
        for code in entry.codes
    )
    assert [key for key, count in seen.items() if count > 1] == []


def test_an_entry_is_whole() -> None:
    for entry in ENTRIES:
        assert entry.source, entry.key
        assert entry.codes, entry.key
        for sentence in (entry.meaning, entry.remedy):
            assert sentence.endswith("."), entry.key
            assert sentence[0].isupper() or sentence[0] == "`", entry.key
        if entry.kind is InvalidManifest:
            assert entry.actor in (Actor.AUTHOR, Actor.WORKLOAD), entry.key
        if not entry.assumes and not entry.source.startswith("the package"):
            assert entry.link or "issue" in entry.source or "terraform" in entry.source, entry.key


def test_the_advice_of_an_entry_is_whole_and_fits_a_notification() -> None:
    for entry in ENTRIES:
        kind = entry.kind.__name__
        for failed in (False, True):
            action = action_for(kind, entry.key, "a message", failed=failed)
            assert "{" not in action, entry.key
            assert len(action) <= ACTION_LIMIT, entry.key
            sentences = action.split(". ")
            assert len(sentences) == len(set(sentences)), entry.key
        stuck = action_for(kind, entry.key, "a message", failed=True)
        assert "no action" not in stuck.lower(), entry.key
        assert "`roadstead replay NAME`" in stuck or not issubclass(entry.kind, Retryable), entry.key


def test_what_is_assumed_stands_in_one_place() -> None:
    assumed = {entry.key for entry in ENTRIES if entry.assumes}
    assert assumed == {entry.key for entry in NAMED}
    assert sum(len(entry.codes) for entry in NAMED) < 40


@pytest.mark.parametrize("entry", NAMED, ids=lambda entry: entry.key)
def test_what_only_a_name_says_is_never_the_fault_of_the_manifest(entry: CatalogueEntry) -> None:
    assert entry.assumes.startswith("It is assumed that")
    assert entry.assumes.endswith(".")
    assert issubclass(entry.kind, Interrupted)


def test_a_role_that_was_just_assigned_is_waited_for_as_long_as_it_takes() -> None:
    policy = policy_for(RoleNotEffective)
    assert policy.attempts is not None
    shortest = sum(policy.wait(attempt, 0) for attempt in range(1, policy.attempts))
    assert 3600 <= shortest <= 2 * 3600


def test_an_upgrade_that_calls_of_an_api_block_is_tried_until_it_passes() -> None:
    """AKS lets it pass twelve hours after the last call."""
    entry = AZURE.find("ValidationError", subcode="UpgradeBlockedOnDeprecatedAPIUsage")
    assert entry is not None
    assert entry.kind.outside
    assert policy_for(entry.kind).longest <= 3600


def test_a_remedy_names_the_identity_the_action_and_the_scope() -> None:
    entry = entry_of("access/LinkedAuthorizationFailed")
    assert entry is not None
    remedy = remedy_for(
        entry,
        "The client 'c' with object id 'o-1' has permission to perform action 'net/write' on scope '/s';"
        " however, it doesn't have permission to perform action 'ddos/join/action' on the linked scope(s)"
        " '/subscriptions/s/plan' or the linked scope(s) are invalid.",
    )
    assert "ddos/join/action on /subscriptions/s/plan to o-1" in remedy


def test_a_remedy_says_nothing_aside_that_the_message_does_not_name() -> None:
    entry = entry_of("access/CustomPrivateDNSZoneMissingPermissionError")
    assert entry is not None
    text = "read and write to custom private dns zone /subscriptions/s/z. Check access"
    assert "on the zone (/subscriptions/s/z) to the identity of the cluster. A new" in remedy_for(entry, text)
    assert "on the zone to the identity of the cluster. A new" in remedy_for(entry, "no")


@pytest.mark.parametrize(
    ("entry", "message", "named"),
    [
        (
            "CustomPrivateDNSZoneMissingPermissionError",
            "no",
            "on the zone (/zone) to the identity of the cluster (/own)",
        ),
        (
            "CustomKubeletIdentityMissingPermissionError",
            "no",
            "kubelet identity (/kubelet) to the identity of the cluster (/own)",
        ),
        ("LinkedAuthorizationFailed", "no", "on /network/subnets/nodes to /own"),
        ("LinkedAuthorizationFailed", "linked scope(s) '/said'", "on /said to /own"),
    ],
)
def test_a_remedy_names_what_the_manifest_has_and_the_message_lacks(
    entry: str, message: str, named: str
) -> None:
    spec: Json = {
        "identity": {"type": "UserAssigned", "userAssignedIdentity": "/own"},
        "identityProfile": {"kubeletidentity": {"resourceId": "/kubelet"}},
        "apiServerAccessProfile": {"privateDNSZone": "/zone"},
        "nodePools": [{"name": "system", "vnetSubnetID": "/network/subnets/nodes"}],
    }
    assert named in action_for("RoleNotEffective", f"access/{entry}", message, spec=spec, failed=True)
    without: Json = {"apiServerAccessProfile": {"privateDNSZone": "system"}, "nodePools": []}
    assert "the scope in the message" in action_for(
        "RoleNotEffective", "access/LinkedAuthorizationFailed", spec=without, failed=True
    )


def test_a_remedy_names_the_provider_and_the_removed_apis() -> None:
    missing, blocked = (
        entry_of("access/MissingSubscriptionRegistration"),
        entry_of("aks/UpgradeBlockedOnDeprecatedAPIUsage"),
    )
    assert missing is not None
    assert blocked is not None
    text = "The subscription is not registered to use namespace 'Microsoft.Foo'. See x."
    assert "az provider register --namespace Microsoft.Foo" in remedy_for(missing, text)
    usage = (
        "\t* usage has been detected on API flowcontrol.v1beta1, and\n\t* usage has been detected on API a.b,"
    )
    assert "flowcontrol.v1beta1, a.b" in remedy_for(blocked, usage)
