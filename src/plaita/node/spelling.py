"""Every field answers to its snake_case and its camelCase name."""

from __future__ import annotations

from functools import cache

from pydantic import AliasChoices, BaseModel
from pydantic.alias_generators import to_camel


def either(*names: str) -> AliasChoices:
    """Both spellings of each name, the first name first."""
    words = [spelling for name in names for spelling in (name, to_camel(name))]
    return AliasChoices(*dict.fromkeys(words))


@cache
def spellings(model: type[BaseModel]) -> frozenset[str]:
    """Every key a model's document may use."""
    known: set[str] = set()
    for name, info in model.model_fields.items():
        known.add(name)
        alias = info.validation_alias
        if isinstance(alias, AliasChoices):
            known.update(str(choice) for choice in alias.choices)
        elif isinstance(alias, str):
            known.add(alias)
    return frozenset(known)
