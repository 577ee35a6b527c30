"""The problems that pydantic finds in a value, in words that need no knowledge of pydantic."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from proctor.core.words import one_of


class FieldProblem(NamedTuple):
    """An invalid field: its name, what was found, what was expected, and pydantic's message.

    >>> print(FieldProblem("number", "'x'", "a whole number", "Input should be a valid integer"))
    number: Input should be a valid integer
    """

    field: str
    found: str
    expected: str
    message: str

    def __str__(self) -> str:
        """The message without what was found, which may be secret or long."""
        return f"{self.field}: {self.message}" if self.field else self.message


def first_problem(error: ValidationError, model: type[BaseModel] | None = None) -> FieldProblem:
    """The first problem of a validation error; of an unknown field with the known ones, where the `model` is given.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({"number": "x"})
    ... except ValidationError as error:
    ...     print(first_problem(error).found, "at", first_problem(error))
    'x' at number: Input should be a valid integer, unable to parse string as an integer
    """
    first = error.errors(include_url=False)[0]
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return FieldProblem("", f"broken JSON ({first['ctx']['error']})", "JSON", message)
    plain = isinstance(first["input"], str | int | float | bool | None)
    found = repr(first["input"]) if plain else f"a {type(first['input']).__name__}"
    expected = expected_fields(model, first["loc"]) if first["type"] == "extra_forbidden" else expected_words(first)
    return FieldProblem(
        ".".join(str(part) for part in first["loc"]),
        "nothing" if first["type"] == "missing" else found[:80],
        expected,
        message,
    )


_EXPECTED = {
    "missing": "a value",
    "finite_number": "a finite number",
    "model_type": "an object",
    "dict_type": "an object",
    "string_type": "a text",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "string_pattern_mismatch": "a text of the form {pattern}",
}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "list": "a list", "tuple": "a list"}


def expected_words(problem: ErrorDetails) -> str:
    """What one of pydantic's problems expected, in words that need no knowledge of pydantic; else its message.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({"number": "x"})
    ... except ValidationError as error:
    ...     print(expected_words(error.errors()[0]))
    a whole number
    """
    kind, message = problem["type"], problem["msg"].removeprefix("Value error, ")
    if kind in {"string_too_short", "too_short"} and problem["ctx"]["min_length"] == 1:
        return "a text that is not empty" if kind == "string_too_short" else "one or more entries"
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(**problem.get("ctx", {}))
    name, _, rest = kind.partition("_")
    return _KINDS[name] if name in _KINDS and rest in {"type", "parsing", "from_float", "parsing_size"} else message


def expected_fields(model: type[BaseModel] | None, place: tuple[int | str, ...]) -> str:
    """What was expected in place of an unknown field: the known ones, unless its part may have several forms."""
    forms: list[Any] = [model]
    for part in place[:-1]:
        tagged = [
            form for form in forms if len(forms) > 1 and part in [each.default for each in _fields_of(form).values()]
        ]
        if tagged:  # the part is the name of one of several forms
            forms = tagged
        elif fields := _fields_of(forms[0]) if len(forms) == 1 else {}:
            forms = _forms(fields[str(part)].annotation) if str(part) in fields else []
        else:  # the entries of a list or a mapping
            inner = get_args(forms[0]) if len(forms) == 1 else ()
            forms = _forms(inner[-1 if isinstance(part, str) else 0]) if inner else []
    known = [field.alias or name for name, field in _fields_of(forms[0]).items()] if len(forms) == 1 else []
    return f"no field of this name ({one_of(known, str(place[-1]))})" if known else "no field of this name"


def _fields_of(kind: Any) -> dict[str, FieldInfo]:
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _forms(kind: Any) -> list[Any]:
    """The types that a value may have, without metadata and None."""
    if get_origin(kind) is Annotated:
        return _forms(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return [form for one in get_args(kind) if one is not NoneType for form in _forms(one)]
    return [kind]
