"""Request bodies as AKS decodes them: unknown names, wrong JSON types, enums, read-only values."""

from __future__ import annotations

from typing import Any

import pytest

from localcloud.azure.world.arm_errors import AksError, ArmError
from localcloud.azure.world.body_shapes import (
    read_cluster,
    read_group,
    read_group_patch,
    read_maintenance,
    read_pool,
    read_tags,
)

READERS = {"cluster": read_cluster, "pool": read_pool, "maintenance": read_maintenance, "tags": read_tags}


def properties(**fields: Any) -> dict[str, Any]:
    return {"properties": fields}


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        ("cluster", {"locaton": "westeurope"}, "locaton"),
        ("cluster", properties(newProfile={}), "newProfile"),
        ("cluster", properties(networkProfile={"podCIDRs": [], "podCidrss": []}), "podCidrss"),
        ("cluster", properties(agentPoolProfiles=[{"name": "a", "sshAccess": "LocalUser"}]), "sshAccess"),
        ("cluster", properties(addonProfiles={"any-name": {"enable": True}}), "enable"),
        ("cluster", {"identity": {"kind": "SystemAssigned"}}, "kind"),
        ("pool", {"name": "web", "vmSize": "s"}, "vmSize"),
        ("pool", properties(name="web"), "name"),
        ("maintenance", properties(window={}), "window"),
        ("tags", {"properties": {}}, "properties"),
    ],
)
def test_an_unknown_name_is_refused_as_aks_does_it(kind: str, body: dict[str, Any], field: str) -> None:
    with pytest.raises(AksError) as refused:
        READERS[kind](body)
    assert refused.value.body() == {
        "code": "UnmarshalError",
        "details": None,
        "message": f'UnmarshalEntity encountered error: json: unknown field "{field}" Check that the field '
        "is in the right location, is spelled correctly, and is supported in the API version. Visit "
        "aka.ms/aks/apiversions for more API version information..",
        "subcode": "",
    }


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("cluster", properties(autoScalerProfile=True), "cannot unmarshal bool into Go struct field"),
        ("cluster", properties(autoScalerProfile={"scan-interval": 10}), "cannot unmarshal number into"),
        ("cluster", properties(enableRBAC="true"), "cannot unmarshal string into Go struct field"),
        ("cluster", {"tags": {"a": 1}}, "of type string"),
        ("cluster", {"tags": ["a"]}, "cannot unmarshal array into"),
        ("cluster", {"location": {"name": "westeurope"}}, "cannot unmarshal object into"),
        (
            "pool",
            properties(count="1"),
            "ManagedClusterAgentPoolProfileProperties.properties.count of type int32",
        ),
        ("pool", properties(count=1.5), "cannot unmarshal number 1.5 into"),
        ("pool", properties(count=2**31), "cannot unmarshal number 2147483648 into"),
        ("pool", properties(count=True), "cannot unmarshal bool into"),
        ("pool", properties(availabilityZones="1"), "cannot unmarshal string into"),
        ("pool", properties(provisioningState=1), "cannot unmarshal number into"),
        ("pool", properties(spotMaxPrice="-1"), "of type float64"),
        ("maintenance", properties(maintenanceWindow={"startDate": "soon"}), 'parsing time "soon"'),
        ("cluster", properties(securityProfile={"customCATrustCertificates": ["!"]}), "illegal base64 data"),
    ],
)
def test_a_wrong_json_type_is_refused_in_the_words_of_go(kind: str, body: dict[str, Any], words: str) -> None:
    with pytest.raises(AksError) as refused:
        READERS[kind](body)
    assert refused.value.code == "UnmarshalError"
    assert refused.value.message.startswith("UnmarshalEntity encountered error: ")
    assert words in refused.value.message


def test_a_value_outside_an_enum_is_an_invalid_parameter() -> None:
    with pytest.raises(AksError) as refused:
        read_cluster(properties(networkProfile={"networkPlugin": "flannel"}))
    assert (refused.value.code, refused.value.target) == (
        "InvalidParameter",
        "properties.networkProfile.networkPlugin",
    )
    assert "'flannel' is none of azure, kubenet, none" in refused.value.message


def test_names_and_enums_are_taken_in_any_case_and_kept_in_azures() -> None:
    body = {"Properties": {"NetworkProfile": {"LoadBalancerSKU": "Standard", "ipfamilies": ["ipv4"]}}}
    assert read_cluster(body) == properties(
        networkProfile={"loadBalancerSku": "standard", "ipFamilies": ["IPv4"]}
    )


def test_what_only_azure_writes_and_what_is_not_given_is_left_out() -> None:
    body = {
        "id": "/subscriptions/x",
        "eTag": "e",
        "systemData": {"createdBy": "somebody"},
        "identity": {"type": "SystemAssigned", "principalId": "p", "tenantId": "t"},
        "properties": {
            "provisioningState": "Succeeded",
            "kubernetesVersion": "",
            "oidcIssuerProfile": {"enabled": True, "issuerURL": "https://issuer"},
            "networkProfile": {
                "loadBalancerProfile": {"effectiveOutboundIPs": [{"id": "a"}]},
                "podCidr": None,
            },
            "addonProfiles": {"azurepolicy": {"enabled": True, "identity": {"clientId": "c"}}},
            "agentPoolProfiles": [{"name": "a", "osDiskSizeGB": 0, "vmSize": "", "eTag": "e"}],
        },
    }
    assert read_cluster(body) == {
        "identity": {"type": "SystemAssigned"},
        "properties": {
            "oidcIssuerProfile": {"enabled": True},
            "networkProfile": {"loadBalancerProfile": {}},
            "addonProfiles": {"azurepolicy": {"enabled": True}},
            "agentPoolProfiles": [{"name": "a"}],
        },
    }


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"location": "x", "tag": {}},
            "Could not find member 'tag' on object of type 'ResourceGroupDefinition'",
        ),
        ({"location": 1}, "cannot unmarshal number"),
        ({"tags": {"a": ["b"]}}, "cannot unmarshal array"),
    ],
)
def test_a_group_is_decoded_by_resource_manager_itself(body: dict[str, Any], words: str) -> None:
    with pytest.raises(ArmError) as refused:
        read_group(body)
    assert refused.value.code == "InvalidRequestContent"
    assert words in refused.value.message
    assert "error" in refused.value.body()
    assert read_group_patch({"tags": {"a": "b"}}) == {"tags": {"a": "b"}}
