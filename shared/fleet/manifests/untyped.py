"""``azure.properties``: what ARM knows and the manifest has no place for yet.

It is merged last into the body. A field that has a typed place is refused here, so that there is one way
to say a thing; so is what only Azure writes, and what sounds like a secret.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from pydantic import AfterValidator, BaseModel

from shared.fleet.manifests.arm_types import SECRET


def only_untyped(
    models: Iterable[type[BaseModel]], azures: Iterable[str], instead: Mapping[str, str]
) -> AfterValidator:
    """Return the rule for the properties beside some models.

    ``azures`` are the properties that only Azure writes; ``instead`` says where a property that the
    manifest calls otherwise has its place.
    """
    typed, owned = tuple(models), {name.lower() for name in azures}
    other = {name.lower(): place for name, place in instead.items()}

    def check(value: dict[str, Any]) -> dict[str, Any]:
        for key in value:
            if key.lower() in owned:
                raise ValueError(f"{key} is written by Azure alone; remove it")
            if key.lower() in other:
                raise ValueError(f"{key} has its own place in the manifest: {other[key.lower()]}")
        _refuse_typed(value, typed, "")
        _refuse_secrets(value, "")
        return value

    return AfterValidator(check)


def _refuse_typed(value: Mapping[str, Any], models: Iterable[type[BaseModel]], path: str) -> None:
    fields = {
        (info.alias or name).lower(): (info.alias or name, info)
        for model in models
        for name, info in model.model_fields.items()
    }
    for key, inner in value.items():
        if key.lower() not in fields:
            continue
        alias, info = fields[key.lower()]
        below = tuple(models_in(info.annotation))
        if not (below and isinstance(inner, Mapping)):
            raise ValueError(f"{path}{key} has its own place in the manifest: write {path}{alias} there")
        _refuse_typed(inner, below, f"{path}{alias}.")


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a field's annotation holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from models_in(inner)


def _refuse_secrets(value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if SECRET.fullmatch(key):
                raise ValueError(f"{path}{key} sounds like a secret; a secret has no place in git")
            _refuse_secrets(inner, f"{path}{key}.")
    elif isinstance(value, list):
        for inner in value:
            _refuse_secrets(inner, path)
