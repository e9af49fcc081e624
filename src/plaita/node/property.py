"""``Property``: a declared type as an object, for programs that build or look at one."""

from __future__ import annotations

from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from plaita.base.documents import Documented, as_written
from plaita.base.json import Json
from plaita.engine import types
from plaita.engine.expression.scope import ABSENT


class Property(BaseModel, Documented):
    """A declared type. Every field answers to all its documented spellings.

    ``children`` are the members of an object (by name, or a list of named ones) or, as a list, those of an array of
    fixed length; ``item_type`` is the type of every element. It may stand wherever a flow or a node takes a type.
    """

    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)

    data_type: str = Field(validation_alias=AliasChoices("data_type", "dataType", "type"))
    name: str | None = None
    label: str | None = Field(None, validation_alias=AliasChoices("label", "title"))
    desc: str | None = Field(None, validation_alias=AliasChoices("desc", "description"))
    is_required: bool = Field(False, validation_alias=AliasChoices("is_required", "isRequired", "required"))
    default_value: Any = Field(None, validation_alias=AliasChoices("default_value", "defaultValue", "default"))
    item_type: Property | None = Field(None, validation_alias=AliasChoices("item_type", "itemType", "items"))
    children: dict[str, Property] | list[Property] = Field(
        default_factory=list, validation_alias=AliasChoices("children", "properties")
    )

    @classmethod
    def from_json(cls, content: Any) -> Self | None:
        """A property from its document or JSON text; ``None`` for nothing. Raises ``InputError`` for what is none."""
        if not content:
            return None
        return cls._of(types.parse_property(content))

    @classmethod
    def _of(cls, found: types.Property) -> Self:
        members: Any = []
        if found.children is not None:
            members = {name: cls._of(child) for name, child in found.children}
        elif found.positions is not None:
            members = [cls._of(child) for child in found.positions]
        return cls(
            data_type=found.data_type,
            name=found.name,
            label=found.label,
            desc=found.description,
            is_required=found.required,
            default_value=None if found.default is ABSENT else found.default,
            item_type=None if found.items is None else cls._of(found.items),
            children=members,
        )

    def document(self) -> Json:
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        found = {name: value for name, value in fields.items() if value not in (None, "", [], {}, False)}
        for name in ("item_type", "children"):
            if name in found:
                found[name] = _written(found[name])
        if self.default_value is not None:
            found["default_value"] = self.default_value
        return found


def _written(value: Any) -> Json:
    if isinstance(value, dict):
        return {key: as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_written(item) for item in value]
    return as_written(value)
