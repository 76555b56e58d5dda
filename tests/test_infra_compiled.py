"""The templates under Microsoft's compiler, where there is one: a bicep on PATH, or in BICEP."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import get_args

import pytest

from shared.configuration.settings import GitHostName
from tests.support.sample import sample
from tests.support.templates import INFRA, PARAMETER_FILES
from tools import bicep
from tools.bicep import Refused

COMPILER = bicep.compiler() or ""
GIVEN = bicep.parameter_texts()
SUBNET = "/subscriptions/0/resourceGroups/n/providers/Microsoft.Network/virtualNetworks/hub/subnets/apps"
ID = "00000000-0000-0000-0000-000000000001"
ZONES = "/subscriptions/0/resourceGroups/n/providers/Microsoft.Network/privateDnsZones"
ZONE = f"{ZONES}/privatelink.blob.core.windows.net"
PRIVATE = "param network = 'private'"
BY_TOKEN = "param secrets = ['github-token', 'github-webhook-secret']"
VAULT = "{ name: 'kv-x', resourceGroup: 'rg', subscriptionId: '00000000-0000-0000-0000-000000000001' }"
WRONG = {
    "param fleet = 'My_Fleet-'": "fleet: lower-case letters, digits and hyphens",
    "param fleet = 'my-fleet-'": "fleet: lower-case letters, digits and hyphens",
    f"param fleet = '{'a' * 64}'": "is too long",
    "param githubRepository = 'nonsense'": "githubRepository: owner/name, such as contoso/fleet",
    "param gitHost = 'bitbucket'": " | ".join(f"'{host}'" for host in sorted(get_args(GitHostName))),
    "param gitHost = 'git'": "gitUrl: without GitHub, an address such as",
    "param gitUrl = 'https://git.example.com/a/b.git'": "gitUrl: without GitHub, an address such as",
    "param gitHost = 'gitlab'; param gitUrl = 'https://gitlab.com/a/b'": "git-webhook-secret is missing",
    "param gitHost = 'git'; param gitUrl = 'ssh://git@git.example.com/a'": "git-ssh-key and gitKnownHosts",
    "param gitHost = 'git'; param gitUrl = 'https://x:y@git.example.com/a'": "without a credential in it",
    "param secrets = ['github-token', 'flux-git-password']": "secrets: github-webhook-secret is missing",
    "param secrets = ['github-webhook-secret', 'flux-git-password']": "secrets: github-token, or",
    "param secrets = ['github-webhook-secret', 'github-app-private-key']": "github-app-installation-id",
    "param secrets = ['github-webhook-secret', 'github-token', 'notify-']": "no secret is called notify-;",
    "param secrets = ['github-webhook-secret', 'github-token', 'tokn']": "no secret is called tokn;",
    "param secrets = ['github-webhook-secret', 'github-token', 'notify-A']": "no secret is called notify-A;",
    "param bootstrapVaults = [{ nam: 'x' }]": '"name"',
    "param bootstrapVaults = [{ name: 'x' }]": '"resourceGroup"',
    f"param bootstrapVaults = [{VAULT.replace(' }', ', typo: 1 }')}]": '"typo"',
    "param federatedIdentities = [{ name: 'x', resourceGroup: 'rg' }]": '"subscriptionId"',
    f"param fluxEventVaults = [{VAULT}]": "fluxEventVaults: vaults that bootstrapVaults has too",
    "param assignableRoles = ['Contributor']": "is too short",
    "param targetSubscriptions = ['production']": "is too short",
    "param alwaysReady = { web: 1 }": '"web"',
    "param alwaysReady = { http: 21 }": "is too large",
    "param alwaysReady = { http: 1 }; param zoneRedundant = true": "alwaysReady: 2 instances or more of each",
    "param storageRedundancy = 'Standard_LRS'; param zoneRedundant = true": "storageRedundancy: Standard_ZRS",
    f"param appsSubnetId = '{SUBNET}'": "appsSubnetId: nothing with network public",
    "param appsSubnetId = 'apps'; param network = 'outbound'": "appsSubnetId: the id of a subnet",
    f"param appsSubnetId = '{SUBNET}'; {PRIVATE}": "appsSubnetId and endpointsSubnetId: both, or none",
    f"param endpointsSubnetId = '{SUBNET}'; param network = 'outbound'": "endpointsSubnetId: nothing without",
    f"param dnsZones = {{ blob: '{ZONE}' }}; {PRIVATE}": "dnsZones: each of blob, table, serviceBus, vault.",
    "param dnsByPolicy = true": "dnsZones and dnsByPolicy: nothing without network private",
    f"param dnsZones = {{ blob: 'x' }}; param dnsByPolicy = true; {PRIVATE}": "nothing with dnsByPolicy",
    f"param setUpInBrowser = true; {BY_TOKEN}": "setUpInBrowser: secrets with github-app-id",
    "param entrance = 'private'": "entrance: public without network private",
    f"param entranceAddresses = ['x']; param entrance = 'private'; {PRIVATE}": "entranceAddresses: nothing",
    "param network = 'vnet'": "'outbound' | 'private' | 'public'",
    f"param resourceNames = {{ vault: '{'a' * 25}' }}": "is too long",
    "param updates = 'Rolling'": "'Recreate' | 'RollingUpdate'",
    "param logGigabytesPerDay = 0": "is too small",
    "param moreSettings = { LEASE_SECONDS: 60 }": '"string"',
}
"""Parameters that would fail late in Azure, each with words of the sentence that refuses it."""

TOGETHER: tuple[tuple[str, list[str]], ...] = (
    (
        """
param resourceNames = {
  app: 'my_app', storage: 'My-Storage', vault: '1vault', serviceBus: '1fleet-sb', workspace: '-law1'
  network: '_v', component: 'a/b'
}
param resourceGroupName = 'rg/x'
param installationId = 'My installation'
param entraClientId = 'roadstead-fleet'
param alertActionGroupIds = ['ops@example.com']
param rolloutCheckHosts = ['https://prometheus.example.com/']
param fluxGitHost = 'https://github.com'
param githubApiUrl = 'github.example.com'
param tags = { 'a/b': 'x' }
param moreSettings = { 'poll-seconds': '30' }
""",
        [
            "resourceNames.app: letters, digits and hyphens, with a letter or digit at each end.",
            "resourceNames.serviceBus: letters, digits and hyphens, with a letter first.",
            "resourceNames.vault: letters, digits and single hyphens, with a letter first.",
            "resourceNames.storage: lower-case letters and digits.",
            "resourceNames.workspace: letters, digits and hyphens, with a letter or digit at each end.",
            "resourceNames.network: letters, digits, hyphens, underscores and periods,",
            "resourceNames.component: none of the characters",
            "resourceNames.serviceBus: no name that ends with -sb or -mgmt.",
            "resourceGroupName: letters, digits, hyphens, underscores, periods and parentheses,",
            "installationId: lower-case letters, digits and hyphens,",
            "entraClientId: ids such as 00000000-0000-0000-0000-000000000001.",
            "alertActionGroupIds: ids of action groups,",
            "rolloutCheckHosts: hosts such as prometheus.example.com, without https:// and a path.",
            "fluxGitHost: a host such as github.com, without https:// and a path.",
            "githubApiUrl: an address such as https://HOST/api/v3.",
            "tags: at most 49,",
            "moreSettings: names of settings, such as POLL_SECONDS.",
        ],
    ),
    (
        f"""
param targetSubscriptions = ['{ID}', '{ID}']
param assignableRoles = ['{"x" * 36}']
param identityGroups = [{{ resourceGroup: 'rg', subscriptionId: '{ID[:-1]}9' }}]
param bootstrapVaults = [{{ name: 'https://kv.vault', resourceGroup: 'rg', subscriptionId: '{ID}' }}]
param monitorWorkspaces = [
  {{ name: 'p', url: 'prometheus', workspace: 'w', resourceGroup: 'rg', subscriptionId: '{ID}' }}
]
param planSchedule = '*/5 * * * *'
param secrets = ['github-token', 'github-token', 'github-webhook-secret']
param githubRepository = 'https://github.com/contoso/fleet'
param repositoryPrevious = 'fleet'
param githubBranch = 'refs/heads/main'
param network = 'private'
param appsSubnetId = '{SUBNET}'
param endpointsSubnetId = '{SUBNET}'
param dnsZones = {{ blob: '{ZONE}', table: '{ZONE}', serviceBus: 'x', vault: 'x' }}
param entranceAddresses = ['192.30.252.0/22', '2a0a:a440::/29', '203.0.113.7']
""",
        [
            "targetSubscriptions: each subscription once.",
            "assignableRoles: ids such as",
            "identityGroups: what is in one of targetSubscriptions.",
            "bootstrapVaults: names of vaults, not their addresses.",
            "monitorWorkspaces: a name of letters, digits and hyphens, and a url that begins with https://.",
            "planSchedule: six fields, seconds first, such as 0 */5 * * * *.",
            "secrets: each name once.",
            "githubRepository: owner/name, such as contoso/fleet.",
            "repositoryPrevious: owner/name, such as contoso/fleet.",
            "githubBranch: the name of a branch, such as main, without refs/heads/.",
            "endpointsSubnetId: another subnet of the network of appsSubnetId.",
            "dnsZones.table: the id of a zone privatelink.table.",
            "dnsZones.serviceBus: the id of a zone privatelink.servicebus.",
            "dnsZones.vault: the id of a zone privatelink.vaultcore.",
            "entranceAddresses: ranges such as 192.30.252.0/22; a single address ends with /32.",
        ],
    ),
    (
        """
param fleet = 'windows'
param resourceNames = { vault: 'kv--x', storage: 'login1' }
param githubRepository = ''
param gitHost = 'gitlab'
param gitUrl = 'https://gitlab.com/contoso/fleet'
param secrets = ['git-webhook-secret']
param network = 'outbound'
param networkAddresses = '10.64.0.0/25'
""",
        [
            "resourceNames.vault: no two hyphens one after the other.",
            "fleet: Azure reserves the words microsoft and windows, and login at the beginning.",
            "resourceNames.storage: Azure reserves the words microsoft and windows,",
            "secrets: git-password is missing, a token with which the apps read GitLab.",
            "networkAddresses: 256 addresses or more, as a range such as 10.64.0.0/24.",
        ],
    ),
    (
        """
param githubRepository = ''
param gitHost = 'azure-devops'
param gitUrl = 'https://dev.azure.com/contoso/fleet'
param secrets = ['git-webhook-secret']
param network = 'outbound'
param networkAddresses = '10.64.0.7/24'
""",
        [
            "gitUrl: with Azure DevOps, an address such as https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY.",
            "networkAddresses: 256 addresses or more, as a range such as 10.64.0.0/24.",
        ],
    ),
)
"""Parameters with much that is wrong: each is said, all at one time, and nothing else."""

needs_the_compiler = pytest.mark.skipif(not COMPILER, reason="no Bicep compiler: set BICEP=/path/to/bicep")


def with_parameters(lines: str) -> str:
    """Return the least parameter file with other parameters, in the place of those of the same name."""
    text = GIVEN["required"]
    for name in re.findall(r"^param (\w+) ", lines, re.MULTILINE):
        text = re.sub(rf"^param {name} = .*\n", "", text, flags=re.MULTILINE)
    return f"{text}{lines}\n"


def test_no_template_or_parameter_was_changed_since_the_compiler_read_it() -> None:
    assert bicep.DIGESTS.read_text() == bicep.digests(), "run make bicep"


def test_a_change_of_any_file_changes_the_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("infra", "tests/infra"):
        shutil.copytree(folder, tmp_path / folder)
    monkeypatch.chdir(tmp_path)
    found = {bicep.digests()}
    for path in ("infra/queue.bicep", "infra/bicepconfig.json", "infra/workbook.json", "infra/main.json"):
        Path(path).write_text(Path(path).read_text() + " ")
        found.add(bicep.digests())
    assert len(found) == 5


@needs_the_compiler
def test_what_is_committed_is_what_the_compiler_writes_without_a_diagnostic() -> None:
    assert (INFRA / "main.json").read_text() == bicep.compiled(COMPILER), "run make bicep"
    for template in bicep.ALONE:
        assert json.loads(bicep.compiled(COMPILER, template))["resources"]


@needs_the_compiler
def test_every_template_has_the_one_format() -> None:
    found = {
        name: text for name, text in bicep.formatted(COMPILER).items() if (INFRA / name).read_text() != text
    }
    assert list(found) == [], "run make bicep"


@needs_the_compiler
@pytest.mark.parametrize("name", GIVEN)
def test_a_parameter_file_resolves_to_what_is_committed(name: str) -> None:
    assert (PARAMETER_FILES / f"{name}.snapshot.json").read_text() == bicep.resolved(COMPILER, GIVEN[name])


@pytest.mark.long
@needs_the_compiler
@pytest.mark.parametrize("line", sample("wrong parameters", list(WRONG), 2))
def test_wrong_parameters_are_refused_in_a_sentence_before_anything_is_created(line: str) -> None:
    with pytest.raises(Refused, match=re.escape(WRONG[line])):
        bicep.resolved(COMPILER, with_parameters(line.replace("; ", "\n")))


@pytest.mark.long
@needs_the_compiler
@pytest.mark.parametrize("number", range(len(TOGETHER)))
def test_all_that_is_wrong_is_said_at_one_time(number: int) -> None:
    lines, said = TOGETHER[number]
    with pytest.raises(Refused) as refused:
        bicep.resolved(COMPILER, with_parameters(lines))
    text = str(refused.value)
    assert [sentence for sentence in said if sentence not in text] == []
    assert len(re.findall(r"\.(?= [a-z]+[A-Za-z.]+: )", text)) == len(said) - 1, text


@needs_the_compiler
def test_a_fleet_may_be_called_login_because_no_name_begins_with_that() -> None:
    assert bicep.resolved(COMPILER, with_parameters("param fleet = 'login-eu'"))


@needs_the_compiler
def test_a_public_repository_of_a_git_server_needs_no_secret() -> None:
    given = {"gitHost": "'git'", "gitUrl": "'https://git.example.com/team/fleet.git'", "secrets": "[]"}
    given["githubRepository"] = "''"
    lines = "".join(f"param {name} = {value}\n" for name, value in given.items())
    assert bicep.resolved(COMPILER, f"using '../../infra/main.bicep'\nparam fleet = 'one'\n{lines}")


@needs_the_compiler
@pytest.mark.parametrize("host", sorted({*get_args(GitHostName)} - {"github", "git"}))
def test_another_host_needs_the_secret_of_its_webhook(host: str) -> None:
    given = {"gitHost": f"'{host}'", "gitUrl": "'https://git.example.com/contoso/team/_git/fleet'"}
    given["githubRepository"] = "''"
    given["secrets"] = "['git-webhook-secret', 'git-webhook-secret-previous', 'git-password']"
    lines = "".join(f"param {name} = {value}\n" for name, value in given.items())
    found = bicep.resolved(COMPILER, f"using '../../infra/main.bicep'\nparam fleet = 'one'\n{lines}")
    assert "SecretName=git-webhook-secret-previous)" in found


def test_the_rules_of_the_compiler_are_those_that_are_chosen() -> None:
    lines = [line for line in (INFRA / "bicepconfig.json").read_text().splitlines() if "//" not in line]
    rules = json.loads("\n".join(lines))["analyzers"]["core"]["rules"]
    assert {rule["level"] for rule in rules.values()} == {"error"}
