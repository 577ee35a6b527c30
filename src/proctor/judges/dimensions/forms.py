"""The forms of replies, made from the dimensions of a case: strictly typed, nothing missing, nothing beside."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from proctor.judges.dimensions.case import Dimension

__all__ = ["Rated", "rating_form"]


class Rated(BaseModel):
    """Your rating of the candidate."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, serialize_by_alias=True
    )

    @property
    def scores(self) -> dict[str, float]:
        """The scores by dimension."""
        said = self.model_dump()
        return {name: float(value) for name, value in said.items() if name not in {"reason", "cited"}}

    @property
    def reason(self) -> str:
        """Why, in the judge's words; empty where the form does not ask."""
        return str(self.model_dump().get("reason", ""))

    @property
    def cited(self) -> tuple[int, ...]:
        """The passages that the rating rests on, by number, each once; none where the form does not ask."""
        return tuple(dict.fromkeys(self.model_dump().get("cited", ())))


def _as_whole(value: object) -> object:
    """1.0 is a whole number in JSON, and in the schema that the model was given."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = Annotated[int, BeforeValidator(_as_whole)]


@lru_cache(maxsize=64)
def rating_form(
    dimensions: tuple[Dimension, ...],
    *,
    only_levels: bool = False,
    whole: bool = False,
    reason: bool = True,
    cites: bool = False,
) -> type[Rated]:
    """The form of a rating on these dimensions: any number on the scale, or one of the levels alone.

    `whole`: levels are counted (0, 1, 2 …) instead of named, so that each is one character.
    `cites`: passages that the rating rests on are named by their numbers, whichever these are.

    >>> form = rating_form((Dimension("overall", (0.0, 0.5, 1.0)),), only_levels=True, reason=False)
    >>> form.model_validate_json('{"overall": 0.5}').scores
    {'overall': 0.5}
    """
    fields: dict[str, Any] = {}
    if reason:
        why = Field(alias="reason", description="One or two sentences that give the reason.")
        fields["why"] = (str, why)
    if cites:
        about_cited = "The numbers of the passages that the rating rests on."
        fields["by"] = (list[int], Field(alias="cited", max_length=20, description=about_cited))
    for place, one in enumerate(dimensions):
        kind, about = _number(one, only_levels=only_levels, whole=whole)
        fields[f"score_{place}"] = (kind, Field(alias=one.name, **about))
    form: type[Rated] = create_model("Rating", __base__=Rated, __doc__=Rated.__doc__, **fields)
    return form


def _number(one: Dimension, *, only_levels: bool, whole: bool) -> tuple[Any, Mapping[str, Any]]:
    if whole:
        return _WHOLE, {"ge": 0, "le": len(one.levels) - 1}
    if one.is_flag:
        return _WHOLE, {"ge": 0, "le": 1}
    if not only_levels:
        return float, {"ge": one.levels[0], "le": one.levels[-1]}

    def known(value: float) -> float:
        if value not in one.levels:
            raise ValueError(f"expected one of {', '.join(f'{level:g}' for level in one.levels)}")
        return value

    return Annotated[float, AfterValidator(known)], {"json_schema_extra": {"enum": list(one.levels)}}
