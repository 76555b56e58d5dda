"""Secrets are masked in every text that is stored or published, and nowhere else."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_type_hints
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from localcloud.memory.memory_cloud import MemoryCloud
from shared.app.api.acts.azure import import_cluster
from shared.cluster.failures.errors import Unavailable
from shared.cluster.history import Act, Event
from shared.cluster.record import ClusterRecord, to_json
from shared.configuration.load_settings import load_settings
from shared.configuration.settings import Settings
from shared.masking import Masker, platform_secrets
from shared.notifications.notification import Notification
from shared.notifications.record import NotifierRecord
from shared.plan.plan import Plan
from shared.ports import (
    Check,
    CommitStatus,
    DeadLetter,
    FleetRecord,
    NewCommit,
    PlanRecord,
    Ports,
    PullText,
    Services,
)
from shared.ports.azure import GetCluster, PutCluster
from shared.ports.masked import NAMES, masked
from shared.ports.process import in_threads
from shared.ports.state import Proposal, SweepRecord
from shared.rollouts.rollout import Rollout
from tests.support import fleet_files
from tests.support.one_cluster import ONE
from tests.support.pipeline_runs import push
from tests.support.proposals import Repo
from tests.support.replaced_ports import around, on_azure

EXAMPLE: dict[str, str] = json.loads(
    (Path(__file__).parent.parent / "local.settings.example.json").read_text()
)["Values"]
CANARY = "canary-of-a-secret-51ab"
HEX40 = "0123456789abcdef0123456789abcdef01234567"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{'MIIEow' * 10}\n{'BAAKCA' * 10}\n-----END RSA PRIVATE KEY-----"
JWT = f"eyJhbGciOiJIUzI1NiJ9.{'eyJzdWIiOiIxIn0'}.{'c2lnbmF0dXJl'}"
SHAPES = {
    "a token of an installation": f"ghs_{'a1B2' * 9}",
    "a classic token": f"ghp_{'a1B2' * 9}",
    "a token of GitLab": f"glpat-{'a1B2' * 5}",
    "a routable token of GitLab": f"glpat-{'a1-_' * 8}.01.0w1a2b3c4",
    "a deploy token of GitLab": f"gldt-{'a1B2' * 5}",
    "a key of Standard Webhooks": f"whsec_{'a1B2' * 8}",
    "a fine-grained token": f"github_pat_{'a1B2' * 20}",
    "a JSON Web Token": JWT,
    "a signature of a SAS": f"https://a.blob.core.windows.net/c?sv=2024&sig={'a%2Bb' * 8}&se=2026",
    "an account key": f"AccountName=a;AccountKey={'A1b2' * 21}==;EndpointSuffix=core.windows.net",
    "a key of a queue": f"SharedAccessKey={'A1b2' * 10}=;EntityPath=jobs",
    "a key of a function": f"{'Ab1-' * 11}AzFu12345Q==",
    "a password in a URL": "https://flux:pa55-word@git.example.com/a/b.git",
    "a token in a URL": f"https://x-access-token:{'a1B2' * 9}@github.com/a/b.git",
    "a private key": PEM,
    "a private key on one line": PEM.replace("\n", "\\n"),
    "a private key of a kubeconfig": base64.b64encode(PEM.encode()).decode(),
    "a header": f"Authorization: Basic {base64.b64encode(b'git:canary-pass-1').decode()}",
}
HARMLESS = (
    f"commit {HEX40} removed the cluster",
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg-one/providers/x",
    "Basic authentication is off; bearer tokens are accepted at https://api.example.com:443/a@b",
    "sig=off and a password that is wrong: git://github.com/a/b.git",
    "x-ms-request-id: 7c3c1a5e-1b1f-4a53-9a0e-5b8a2f3e9d11",
)


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in get_args(hint):
        yield from _parts(argument)


SECRET_SETTINGS = [n for n, f in Settings.model_fields.items() if SecretStr in [*_parts(f.annotation)]]


@pytest.mark.parametrize("name", SECRET_SETTINGS)
def test_every_secret_setting_is_known(name: str) -> None:
    secret = PEM if name == "git_ssh_key" else CANARY  # which is refused unless it is a key
    settings = load_settings(EXAMPLE | {name.upper(): secret})
    assert Masker(settings.secrets)(f"{name} is {secret}.") == f"{name} is ***."


def test_there_are_secret_settings_and_no_secret_has_another_type() -> None:
    secret = set(SECRET_SETTINGS)
    assert {"github_token", "flux_git_password", "servicebus", "tables_connection_string"} <= secret
    named = {n for n in Settings.model_fields if n.endswith(("token", "secret", "password", "key"))}
    assert named <= secret


@pytest.mark.parametrize(
    "name",
    [
        *("IDENTITY_HEADER", "MSI_SECRET", "AzureWebJobsStorage", "AzureWebJobsDashboard"),
        *("WEBSITE_AUTH_ENCRYPTION_KEY", "WEBSITE_AUTH_SIGNING_KEY", "CONTAINER_ENCRYPTION_KEY"),
        *("WEBSITE_CONTENTAZUREFILECONNECTIONSTRING", "APPLICATIONINSIGHTS_CONNECTION_STRING"),
        *("MICROSOFT_PROVIDER_AUTHENTICATION_SECRET", "AZURE_CLIENT_SECRET", "CUSTOMCONNSTR_Other"),
    ],
)
def test_every_secret_variable_of_the_platform_is_known(name: str) -> None:
    environment = {name: CANARY, "AzureWebJobsStorage__credential": "managedidentity", "PATH": "/usr/bin"}
    assert platform_secrets(environment) == (CANARY,)


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES.keys())
def test_what_has_the_shape_of_a_credential_is_masked_whosever_it_is(text: str) -> None:
    shown = Masker([])(f"it says: {text} and more")
    assert "***" in shown
    for secret in ("a1B2", "pa55", "MIIE", "BAAK", "c2ln", "a%2Bb", "A1b2", "Ab1-", "LS0t", "Y2Fu"):
        assert secret not in shown
    assert shown.startswith("it says: ")
    assert shown.endswith(" and more")


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert Masker([CANARY])(text) == text


@pytest.mark.parametrize(
    "text",
    [
        CANARY,
        quote("päss/word+1", safe=""),
        json.dumps("päss/word+1")[1:-1],
        f"a line: {'MIIEow' * 10}",
        f"key {'Q2FuYXJ5' * 4}",
        base64.b64encode(CANARY.encode()).decode(),
    ],
)
def test_a_known_secret_is_masked_in_every_form_in_which_it_may_appear(text: str) -> None:
    connection = f"Endpoint=sb://a;SharedAccessKeyName=Root;SharedAccessKey={'Q2FuYXJ5' * 4}"
    mask = Masker([CANARY, "päss/word+1", PEM, connection])
    shown = mask(f"said {text}")
    assert "***" in shown
    assert not any(secret in shown for secret in ("canary", "word", "MIIE", "Q2Fu", "Y2Fu"))


@given(st.text(max_size=60), st.sampled_from(["", *SHAPES.values(), CANARY]), st.text(max_size=60))
def test_a_masked_text_is_not_masked_again(before: str, secret: str, after: str) -> None:
    mask = Masker([CANARY])
    once = mask(f"{before} {secret} {after}")
    assert mask(once) == once
    assert CANARY not in once


# The ports

STORED = (
    *(ClusterRecord, Event, FleetRecord, PlanRecord, DeadLetter, Act, CommitStatus, Check, SweepRecord),
    *(Notification, NotifierRecord, Proposal, NewCommit, PullText, Rollout),
)


def string_fields(kind: Any, seen: set[Any]) -> Iterator[str]:
    """Yield the names of the fields of strings in a dataclass and in what it holds."""
    if kind in seen or kind is Plan:
        return
    seen.add(kind)
    for field in fields(kind):
        hint = get_type_hints(kind)[field.name]
        for part in _parts(hint):
            if is_dataclass(part):
                yield from string_fields(part, seen)
            elif isinstance(part, type) and issubclass(part, str):
                yield field.name


def test_every_string_that_is_stored_or_published_is_masked_unless_it_names_something() -> None:
    found = {name for kind in STORED for name in string_fields(kind, set())}
    texts = {"reason", "message", "description", "action_required", "reported", "waiting", "title", "summary"}
    assert texts <= found - NAMES
    assert NAMES - {""} <= found, "a name that no stored form has"


def test_every_port_is_masked() -> None:
    ports = MemoryCloud().ports
    safe = masked(ports, Masker([]))
    for kind, before, after in ((Ports, ports, safe), (Services, ports.services, safe.services)):
        hints = get_type_hints(kind).items()
        protocols = {name for name, hint in hints if getattr(hint, "_is_protocol", False)}
        assert {"azure", "git_host", "deletes"} <= protocols or "monitor" in protocols
        same = {
            found.name for found in fields(kind) if getattr(before, found.name) is getattr(after, found.name)
        }
        assert {*protocols, "state"} & same == set()


def guarded() -> tuple[MemoryCloud, Ports]:
    """Return a cloud whose functions run with masked ports, as those of the app do."""
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: masked(ports, Masker([CANARY])))
    return cloud, cloud.ports


def test_an_error_of_a_service_reaches_no_record_event_or_status_with_a_secret() -> None:
    cloud = MemoryCloud()
    on_azure(
        cloud, PutCluster, lambda _: (_ for _ in ()).throw(Unavailable(f"sent {CANARY} {JWT}", code=CANARY))
    )
    cloud.with_ports(lambda ports: masked(ports, Masker([CANARY])))
    commit = push(cloud, fleet_files.fleet("one"))
    cloud.run(1800)
    (record,) = cloud.state.clusters()
    assert "sent *** ***" in record.job.reason
    shown = [to_json(record), repr(cloud.state.events("one", 50)), repr(cloud.state.plan(commit))]
    shown += [repr(status) for status in cloud.repository.statuses.latest(commit)]
    assert not any(CANARY in text or JWT in text for text in shown)


def test_a_text_that_azure_shows_in_a_resource_is_masked_before_it_is_stored() -> None:
    cloud, _ = guarded()
    cloud.azure.interventions.fail_next("one", "InvalidParameter", f"no vCPUs for {CANARY}")
    push(cloud, fleet_files.fleet("one"))
    cloud.run(1800)
    (record,) = cloud.state.clusters()
    assert "no vCPUs for ***" in record.job.reason
    assert CANARY not in to_json(record) + repr(cloud.state.events("one", 50))


def test_a_token_in_a_pull_request_is_not_repeated_in_its_comment() -> None:
    cloud, _ = guarded()
    repo = Repo(cloud)
    repo.push(fleet_files.fleet("one"))
    token = SHAPES["a classic token"]
    noted = fleet_files.cluster("one", extra=f"  tags: {{note: {token}, other: {CANARY}}}\n")
    number = repo.propose(fleet_files.fleet("one") | {"clusters/one/cluster.yaml": noted})
    (comment,) = repo.comments(number)
    assert "***" in comment
    assert token not in comment
    assert CANARY not in comment


def test_an_error_of_azure_reaches_the_answer_of_the_api_without_a_secret() -> None:
    cloud = MemoryCloud()
    on_azure(cloud, GetCluster, lambda _: (_ for _ in ()).throw(Unavailable(f"sent {CANARY}")))
    answer = import_cluster(ONE.resource, masked(cloud.ports, Masker([CANARY])))
    assert (answer.status, answer.body) == (502, {"error": "Azure could not be read: Unavailable: sent ***"})


def test_an_error_of_one_of_several_calls_at_a_time_reaches_the_log_without_a_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cloud = MemoryCloud()
    around(cloud, "state", save=lambda _: (_ for _ in ()).throw(Unavailable(f"sent {CANARY}")))
    cloud.with_ports(lambda ports: replace(masked(ports, Masker([CANARY])), together=in_threads))
    push(cloud, fleet_files.fleet("one", "two"))
    cloud.run(30)
    assert "sent ***" in caplog.text
    assert CANARY not in caplog.text


def test_a_cluster_named_like_a_secret_is_named_while_it_is_handed_over() -> None:
    cloud, named = MemoryCloud(), list[tuple[str, ...]]()
    state = cloud.state

    def observed(record: FleetRecord) -> FleetRecord:
        named.append(record.handover.in_flight if record.handover else ())
        return state.save_fleet(record)

    around(cloud, "state", save_fleet=observed)
    cloud.with_ports(lambda ports: masked(ports, Masker(["platform-of-the-fleet"])))
    push(cloud, fleet_files.fleet("platform-of-the-fleet"))
    cloud.run()
    assert ("platform-of-the-fleet",) in named


def test_a_manifest_keeps_a_value_that_equals_a_secret() -> None:
    cloud = MemoryCloud()
    cloud.with_ports(lambda ports: masked(ports, Masker(["platform-of-the-fleet"])))
    extra = fleet_files.cluster("one", extra="  tags: {team: platform-of-the-fleet}\n")
    push(cloud, fleet_files.fleet("one") | {"clusters/one/cluster.yaml": extra})
    cloud.run()
    (record,) = cloud.state.clusters()
    live = cloud.ports.azure.call(GetCluster(record.desired.id))
    assert live is not None
    assert live["tags"]["team"] == "platform-of-the-fleet"


def test_a_record_without_a_secret_is_saved_as_it_is() -> None:
    cloud, ports = guarded()
    push(cloud, fleet_files.fleet("one"))
    cloud.run()
    (record,) = cloud.state.clusters()
    assert replace(ports.state.save(record), etag="") == replace(record, etag="")


def test_a_secret_that_is_read_meanwhile_is_masked_in_texts_that_were_clean_before() -> None:
    mask = Masker(())
    text = "the vault answered a-value-of-the-vault, twice"
    assert (mask(text), mask.of_others(text)) == (text, text)
    mask.learn("a-value-of-the-vault")
    assert (mask(text), mask.of_others(text)) == ("the vault answered ***, twice",) * 2
