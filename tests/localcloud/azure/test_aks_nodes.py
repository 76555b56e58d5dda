"""The nodes of a local cluster have the labels of AKS."""

from __future__ import annotations

import pytest

from localcloud.azure.world.pools.aks_nodes import group_label


@pytest.mark.parametrize(
    ("group", "label"),
    [
        ("MC_rg_one_westeurope", "MC_rg_one_westeurope"),
        ("MC_rg(a)_one", "MC_rg-a-_one"),
        ("g" * 80, "g" * 63),
        ("g" * 62 + "-rest", "g" * 62 + "z"),
        ("MC_rg_one_", "MC_rg_one_z"),
    ],
)
def test_the_name_of_a_resource_group_is_made_a_valid_label(group: str, label: str) -> None:
    assert group_label(group) == label
