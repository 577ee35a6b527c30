"""Pydantic's words never reach a user: each kind of problem that it knows has words of ours, also kinds of later
versions, and what our own validators say stays as it is."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Any, Literal, get_args

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ErrorType

from proctor.core import InputError, ParseError, expected_words, first_problem, problem_texts, refusal

_CONTEXT: dict[str, Any] = {
    "expected": "'a' or 'b'", "gt": 1, "ge": 1, "lt": 1, "le": 1, "multiple_of": 2, "min_length": 2, "max_length": 3,
    "field_type": "List", "actual_length": 9, "pattern": "^[a-z]+$", "error": "no more", "encoding": "utf-8",
    "encoding_error": "bad", "class_name": "Item", "class": "Item", "attribute": "a", "discriminator": "'kind'", "tag": "x",
    "expected_tags": "'a', 'b'", "tz_expected": 0, "tz_actual": 1, "expected_schemes": "'http'", "expected_version": 4,
    "max_digits": 3, "decimal_places": 2, "whole_digits": 1, "method_name": "m", "function_name": "f",
}  # fmt: skip
_THEIRS = re.compile(
    r"Input|Field required|should|\bvalid |Extra inputs|not permitted|Value error|Assertion|dictionary|instance|_"
)


def _problem_of(kind: str) -> ValidationError:
    """A problem of this kind in an empty field; some kinds take another type for a name of their context."""
    for more in ({}, {"expected": 1}, {"error": ValueError("no more")}):
        details: Any = {"type": kind, "loc": ("field",), "input": {}, "ctx": _CONTEXT | more}
        with suppress(TypeError):
            return ValidationError.from_exception_data("m", [details])
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", sorted(get_args(ErrorType)))
def test_every_kind_of_problem_has_words_of_ours(kind: str) -> None:
    error = _problem_of(kind)
    said = expected_words(error.errors()[0])
    assert said
    assert not _THEIRS.search(said), said
    assert "{" not in said
    assert "…" not in said, "the context has another name"
    assert not _THEIRS.search(str(refusal("a.json", "entry 2", error)).partition("found")[2]), said
    assert not _THEIRS.search(str(first_problem(error)).partition(": ")[2])
    assert not _THEIRS.search(problem_texts(error)[0].partition(": ")[2])


class Clip(BaseModel):
    """A model as those of readers."""

    source: Annotated[str, Field(min_length=1)]
    start: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    kind: Literal["video", "image"] = "video"

    @field_validator("source")
    @classmethod
    def _no_link(cls, value: str) -> str:
        if value == "parsed":
            raise ValueError(str(ParseError(expected="a file's name", found=value)))
        if value == "custom":
            raise PydanticCustomError("its_own", "a file of this folder")
        if "://" in value:
            raise ValueError("the address of a page, where a file is needed")
        return value


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"start": 1}, "field 'source': found nothing, expected a value"),
        ({"source": "a", "start": float("inf")}, "field 'start': found inf, expected a finite number"),
        ({"source": "a", "start": "soon"}, "field 'start': found 'soon', expected a number"),
        ({"source": "", "start": 1}, "field 'source': found '', expected a text that is not empty"),
        ({"source": [], "start": 1}, "field 'source': found an empty list, expected a text"),
        ({"source": {"a": 1}, "start": 1}, "field 'source': found an object, expected a text"),
        ({"source": "a", "start": -1}, "field 'start': found -1, expected at least 0"),
        ({"source": "a", "start": 1, "kind": "gif"}, "field 'kind': found 'gif', expected 'video' or 'image'"),
        ({"source": "http://a", "start": 1}, "expected the address of a page, where a file is needed"),
        ({"source": "parsed", "start": 1}, "field 'source': found 'parsed', expected a file's name"),
        ({"source": "custom", "start": 1}, "field 'source': found 'custom', expected a file of this folder"),
    ],
)
def test_a_file_is_told_what_was_expected(entry: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Clip.model_validate(entry)
    assert told in str(refusal("a.json", "entry 2", caught.value))


def test_a_line_of_its_own_needs_no_value() -> None:
    """What was found may be secret or long: a message beside it is not about it."""
    with pytest.raises(ValidationError) as caught:
        Clip.model_validate({"source": "x" * 5, "start": "sk-secret", "kind": 3})
    assert str(first_problem(caught.value)) == "start: expected a number"
    assert problem_texts(caught.value) == ["start: expected a number", "kind: expected 'video' or 'image'"]
    with pytest.raises(ValidationError) as caught:
        Clip.model_validate({})
    assert str(first_problem(caught.value)) == "source: missing"


def test_an_error_of_a_parser_says_its_place() -> None:
    error = ParseError(expected="yes or no", found="perhaps").at("a.csv", "row 3")
    assert isinstance(error, InputError)
    assert str(error) == "a.csv: row 3: found 'perhaps', expected yes or no"
