"""The problems that pydantic finds in a value, in words that need no knowledge of pydantic."""

from __future__ import annotations

import re
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from proctor.core.formatting import one_of


class FieldProblem(NamedTuple):
    """An invalid field: its name, what was found, what was expected, and a message for a line of its own.

    >>> print(FieldProblem("number", "'x'", "a whole number", "expected a whole number"))
    number: expected a whole number
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
    'x' at number: expected a whole number
    """
    first = error.errors(include_url=False)[0]
    message = problem_message(first)
    if first["type"] == "json_invalid":
        return FieldProblem("", f"broken JSON ({first['ctx']['error']})", "JSON", message)
    expected = expected_fields(model, first["loc"]) if first["type"] == "extra_forbidden" else expected_words(first)
    return FieldProblem(".".join(str(part) for part in first["loc"]), found_words(first), expected, message)


def found_words(problem: ErrorDetails) -> str:
    """What one of pydantic's problems found, in words: a short value itself, else its kind.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({"number": [1, 2]})
    ... except ValidationError as error:
    ...     print(found_words(error.errors()[0]))
    a list
    """
    value = problem["input"]
    if problem["type"].startswith("missing"):
        return "nothing"
    if isinstance(value, str | int | float | bool | None):
        return repr(value)[:80]
    if isinstance(value, list | tuple | dict):
        kind = "object" if isinstance(value, dict) else "list"
        return f"a{'n' if kind == 'object' else ''} {kind}" if value else f"an empty {kind}"
    return f"a {type(value).__name__}"


_EXPECTED = {
    "missing": "a value",
    "finite_number": "a finite number",
    "model_type": "an object",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "multiple_of": "a multiple of {multiple_of}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_unicode": "a text that UTF-8 can hold",
    "string_not_ascii": "ASCII characters only",
    "string_pattern_mismatch": "a text of the form {pattern}",
    "bytes_too_short": "at least {min_length} bytes",
    "bytes_too_long": "at most {max_length} bytes",
    "bytes_invalid_encoding": "bytes in {encoding}",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
    "extra_forbidden": "no field of this name",
    "invalid_key": "a text as the name of each field",
    "int_parsing_size": "a whole number of fewer digits",
    "none_required": "no value",
    "json_invalid": "JSON",
    "union_tag_invalid": "one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "the field {discriminator}",
    "date_past": "a date in the past",
    "date_future": "a date in the future",
    "date_from_datetime_inexact": "a date without a time of day",
    "datetime_past": "a time in the past",
    "datetime_future": "a time in the future",
    "timezone_naive": "a time without a time zone",
    "timezone_aware": "a time with its time zone, such as 2026-07-15T00:00:00Z",
    "timezone_offset": "a time {tz_expected} s from UTC",
    "url_scheme": "an address that begins with {expected_schemes}",
    "url_too_long": "an address of at most {max_length} characters",
    "uuid_version": "a UUID of version {expected_version}",
    "decimal_max_digits": "at most {max_digits} digits",
    "decimal_max_places": "at most {decimal_places} decimals",
    "decimal_whole_digits": "at most {whole_digits} digits before the point",
    "time_delta_type": "a length of time in seconds",
    "time_delta_parsing": "a length of time in seconds",
    "frozen_set_type": "a list",
    "frozen_dict_type": "an object",
    "frozen_field": "no change",
    "frozen_instance": "no change",
    "no_such_attribute": "the attribute {attribute}",
    "get_attribute_error": "an object whose fields can be read",
    "needs_python_object": "a Python object",
    "default_factory_not_called": "the fields before it",
    "recursion_loop": "an object that does not hold itself",
    "recursion_depth_exceeded": "fewer objects within each other",
    "set_item_not_hashable": "entries that can be compared",
    "is_instance_of": "a {class}",
    "is_subclass_of": "a kind of {class}",
    "unexpected_keyword_argument": "no argument of this name",
    "unexpected_positional_argument": "fewer arguments",
    "multiple_argument_values": "each argument once",
}
"""What was expected, by the kind of problem, filled in with its context."""

_KINDS = {
    "json": "a JSON text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "fraction": "a number",
    "complex": "a number",
    "bool": "true or false",
    "string": "a text",
    "bytes": "bytes",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "deque": "a list",
    "iterable": "a list",
    "iteration": "a list",
    "arguments": "a list",
    "dict": "an object",
    "mapping": "an object",
    "counter": "an object",
    "ordered": "an object",
    "model": "an object",
    "dataclass": "an object",
    "named": "an object",
    "date": "a date, such as 2026-07-15",
    "datetime": "a date and a time, such as 2026-07-15T09:30:00Z",
    "time": "a time, such as 09:30",
    "url": "an address, such as https://example.org",
    "uuid": "a UUID",
    "callable": "a function",
    "missing": "a value",
}
"""The same by the first word of a kind, for kinds that say no more than which type was expected."""


def expected_words(problem: ErrorDetails) -> str:
    """What one of pydantic's problems expected, in words that need no knowledge of pydantic: of a validator of ours its
    own words.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({"number": "x"})
    ... except ValidationError as error:
    ...     print(expected_words(error.errors()[0]))
    a whole number
    """
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in {"string_too_short", "too_short"} and context.get("min_length") == 1:
        return "a text that is not empty" if kind == "string_too_short" else "one or more entries"
    if kind in _EXPECTED:
        return _EXPECTED[kind].format_map(_Context(context))
    own = _own_words(problem)
    if own is None:
        return _KINDS[kind.partition("_")[0]]
    error = _OF_A_PARSE_ERROR.fullmatch(own)
    return error["expected"] if error else own


def problem_message(problem: ErrorDetails) -> str:
    """A problem as a message without its field and what was found there: our own validators' words, else what was
    expected.

    >>> class Frame(BaseModel):
    ...     number: int
    >>> try:
    ...     Frame.model_validate({})
    ... except ValidationError as error:
    ...     print(problem_message(error.errors()[0]))
    missing
    """
    if problem["type"] == "missing":
        return "missing"
    if problem["type"] == "json_invalid":
        return f"Invalid JSON: {problem['ctx']['error']}"
    return f"expected {expected_words(problem)}" if (own := _own_words(problem)) is None else own


class _Context(dict[str, Any]):
    """The context of a problem; what it lacks is left out."""

    def __missing__(self, key: str) -> str:
        return "…"


_OF_A_PARSE_ERROR = re.compile(r"expected (?P<expected>.+?)(?:, found .*)?", re.DOTALL)


def _own_words(problem: ErrorDetails) -> str | None:
    """The words of a validator of ours; None for pydantic's own kinds of problems."""
    kind = problem["type"]
    if kind in _EXPECTED or kind.partition("_")[0] in _KINDS:
        return None
    said = str(problem.get("ctx", {}).get("error") or problem["msg"])
    return said.removeprefix("Value error, ").removeprefix("Assertion failed, ")


def expected_fields(model: type[BaseModel] | None, position: tuple[int | str, ...]) -> str:
    """What was expected instead of an unknown field: the known ones, unless its part may have several forms."""
    forms: list[Any] = [model]
    for part in position[:-1]:
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
    return f"no field of this name ({one_of(known, str(position[-1]))})" if known else "no field of this name"


def _fields_of(kind: Any) -> dict[str, FieldInfo]:
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _forms(kind: Any) -> list[Any]:
    """The types that a value may have, without metadata and None."""
    if get_origin(kind) is Annotated:
        return _forms(get_args(kind)[0])
    if get_origin(kind) in {Union, UnionType}:
        return [form for one in get_args(kind) if one is not NoneType for form in _forms(one)]
    return [kind]
