"""What every manifest model shares: strictness, and string types whose messages state their rules.

Limits come from Azure's naming rules
(learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules) and the AKS REST reference.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictStr

from shared.masking import cut, without_secrets


def in_camel_case(name: str) -> str:
    """Return the name of a field as manifests have it; pydantic's own function takes ten times as long."""
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


class Manifest(BaseModel):
    """A strict, frozen model whose fields are written in camelCase; unknown fields are invalid.

    The docstring of a field is its description in the reference and in the JSON Schemas; a field whose value
    is a model takes the model's first sentence. ``instead`` has, by the name of a field that does not exist,
    the advice about what to write.
    """

    instead: ClassVar[Mapping[str, str]] = {}

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        alias_generator=in_camel_case,
        validate_by_name=False,
        protected_namespaces=(),
        defer_build=True,  # at first use, under a lock of pydantic: processes start sooner
    )


def rule(pattern: str, rule: str) -> AfterValidator:
    """Return a check whose message states the rule, not the pattern."""

    @lru_cache(maxsize=256)  # most values of a fleet are the same in every cluster
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(f"must be {rule}, got {shown(value)}")
        return value

    return AfterValidator(check)


def stated_rule(text: str) -> Any:
    """Return the rule of any other check, for the reference and the schemas."""
    return Field(json_schema_extra={"rule": text})


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that an annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


T = TypeVar("T")


def twice(values: Iterable[T]) -> T | None:
    """Return the first value that occurs a second time, None where all differ."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


_WORD = re.compile(r"\S+")
_AFTER_PATH = re.compile(r"[?#]")


def shown(text: str, limit: int = 60) -> str:
    """Return a string as a message may show it: short, on one line, without possible credentials."""
    text = _WORD.sub(lambda word: _without_credentials(word[0]), without_secrets(text, limit))
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return cut(text, limit, "...")


def _without_credentials(word: str) -> str:
    """Remove user, password and query from an address, also from one without a scheme."""
    before, at, rest = word.rpartition("@")
    scheme, address, _ = before.partition("://")
    if address:
        word = f"{scheme}://***@{rest}"
    elif at and ":" in before:
        word = f"***@{rest}"
    scheme, address, rest = word.partition("://")
    query = _AFTER_PATH.search(rest)
    return f"{scheme}://{rest[: query.start()]}?***" if query else word


@lru_cache(maxsize=1024)
def _network(value: str) -> str:
    rule = f"must be a network such as 10.0.0.0/16, got {shown(value)}"
    try:
        network = ipaddress.ip_network(value, strict=False)
    except ValueError as error:
        raise ValueError(rule) from error
    if "/" not in value:
        raise ValueError(f"{rule}; add the prefix length")
    if str(network.network_address) != str(ipaddress.ip_address(value.partition("/")[0])):
        raise ValueError(f"{rule}; did you mean {network}?")
    return value


def _address(value: str) -> str:
    try:
        ipaddress.ip_address(value)
    except ValueError as error:
        raise ValueError(f"must be an address such as 10.0.0.10, got {shown(value)}") from error
    return value


NO_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
NO_REPOSITORY = "https://github.com/OWNER/NAME"
"""What ``roadstead init`` writes where nobody has said which: no subscription has that id."""


def _filled_in(value: str) -> str:
    if value == NO_SUBSCRIPTION:
        how = "which `az account show --query id` prints"
        raise ValueError(
            f"is still what roadstead init wrote, {value}; write the id of a subscription, {how}"
        )
    return value


ClusterName = Annotated[
    StrictStr,
    rule(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        "1 to 63 lowercase letters, digits and hyphens, with a letter or digit at both ends",
    ),
]
ObjectName = ClusterName
"""Environments, classes, systems, routes and namespaces have names like clusters: a DNS label."""
Uuid = Annotated[
    StrictStr,
    rule(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "a subscription id such as 00000000-0000-0000-0000-000000000001",
    ),
    AfterValidator(_filled_in),
]
ResourceGroupName = Annotated[
    StrictStr,
    rule(
        r"[\w\-.()]{0,89}[\w\-()]",
        "1 to 90 letters, digits, hyphens, underscores, dots and parentheses, not ending in a dot",
    ),
]
NodeResourceGroupName = Annotated[
    StrictStr,
    rule(
        r"[\w\-.()]{0,79}[\w\-()]",
        "1 to 80 letters, digits, hyphens, underscores, dots and parentheses, not ending in a dot",
    ),
]
"""aka.ms/aks-naming-rules: the group of the nodes has ten characters less than any other."""
Location = Annotated[
    StrictStr,
    rule(r"[a-z][a-z0-9]*", "an Azure region in its short form, such as westeurope"),
]
Version = Annotated[
    StrictStr,
    rule(
        r"1\.(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2}))?", 'a Kubernetes version such as "1.36" or "1.36.2"'
    ),
]
PoolName = Annotated[
    StrictStr,
    rule(r"[a-z][a-z0-9]{0,11}", "1 to 12 lowercase letters and digits, beginning with a letter"),
]
VmSize = Annotated[StrictStr, rule(r"[A-Za-z]+_[A-Za-z0-9_-]+", "a VM size such as Standard_D4s_v5")]
"""In any letter case: "Prepare an application for AKS" and "Use node auto-provisioning" below
learn.microsoft.com/azure/aks write some in lower case."""
_PART = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DNS = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_KEY = rf"((?=[^/]{{1,253}}/){_DNS}(\.{_DNS})*/)?{_PART}"
LabelKey = Annotated[
    StrictStr,
    rule(
        _KEY,
        "a Kubernetes label key: up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both "
        "ends, after a DNS name and '/' where it has a prefix",
    ),
]
LabelValue = Annotated[
    StrictStr,
    rule(
        rf"({_PART})?",
        "a Kubernetes label value: up to 63 letters, digits, '-', '_' and '.', with a letter or digit at "
        "both ends",
    ),
]
OWN_PREFIX = "roadstead.dev/"
"""The prefix of the labels and annotations that Roadstead reads."""
Labels = dict[LabelKey, LabelValue]
"""kubernetes.io/docs/concepts/overview/working-with-objects/labels."""
Taint = Annotated[
    StrictStr,
    rule(
        rf"{_KEY}(=({_PART})?)?:(NoSchedule|PreferNoSchedule|NoExecute)",
        "key=value:NoSchedule, key=value:PreferNoSchedule or key=value:NoExecute, with key and value as in a "
        "Kubernetes label",
    ),
]
MAX_TAGS = 43
"""Azure allows 50 tags on a resource; three of them name the cluster and fleet that own it."""


@lru_cache(maxsize=1024)
def _tag_key(key: str) -> str:
    if not 1 <= len(key) <= 512 or set(key) & set("<>%&\\?/") or not key.isprintable():
        raise ValueError(f"must be a tag name: 1 to 512 characters without <>%&\\?/, got {shown(key)}")
    if key.lower().startswith(("microsoft", "azure", "windows")):
        raise ValueError(
            "cannot begin with microsoft, azure or windows, which Azure reserves; choose another name"
        )
    if key.lower().startswith("roadstead-"):
        raise ValueError("is reserved: Roadstead tags what it owns with roadstead-*; choose another name")
    return key


def _tags(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > MAX_TAGS:
        raise ValueError(
            f"has {len(tags)} tags; Azure allows {MAX_TAGS} besides the seven of Roadstead: "
            f"remove {len(tags) - MAX_TAGS}"
        )
    names: dict[str, str] = {}
    for key in tags:
        other = names.setdefault(key.lower(), key)
        if other != key:
            raise ValueError(f"{other} and {key} are one tag to Azure, which ignores case; keep one")
    return tags


Tags = Annotated[
    dict[
        Annotated[StrictStr, AfterValidator(_tag_key)],
        Annotated[StrictStr, rule(r"(?s).{0,256}", "at most 256 characters")],
    ],
    AfterValidator(_tags),
    stated_rule(f"at most {MAX_TAGS} names with up to 512 characters, and values with up to 256"),
]
"""learn.microsoft.com/azure/azure-resource-manager/management/tag-resources."""
SubnetId = Annotated[
    StrictStr,
    rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Network"
        r"/virtualNetworks/[^/]+/subnets/[^/]+",
        "the resource id of a subnet (/subscriptions/.../virtualNetworks/.../subnets/...)",
    ),
]
IdentityId = Annotated[
    StrictStr,
    rule(
        r"(?i)/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.ManagedIdentity"
        r"/userAssignedIdentities/[^/]+",
        "the resource id of a user-assigned identity",
    ),
]
RepositoryPath = Annotated[
    StrictStr,
    rule(
        r"(?!.*(^|/)\.\.(/|$))(?!.*//)(?!~)(?![A-Za-z]:)(?!.*%[0-9A-Fa-f]{2})(\./)?[^/\s\\*?$][^\s\\*?$]*|\./?",
        "a path inside the repository, such as ./platform",
    ),
]
FolderPath = Annotated[
    RepositoryPath,
    rule(r"(?!.*\.ya?ml$).*", "the path of a folder, such as ./platform, and not of a file in it"),
]
Cidr = Annotated[StrictStr, AfterValidator(_network), stated_rule("a network such as 10.0.0.0/16")]
Address = Annotated[StrictStr, AfterValidator(_address), stated_rule("an address such as 10.0.0.10")]


class Selector(Manifest):
    """Which clusters it is for: those that match every field that is set."""

    environments: tuple[ObjectName, ...] = ()
    """The environments of the clusters."""
    locations: tuple[Location, ...] = ()
    """The Azure regions of the clusters."""
    labels: Labels = Field(default_factory=dict)
    """The labels that a cluster must have in metadata.labels."""
    clusters: tuple[ClusterName, ...] = ()
    """The names of the clusters."""
