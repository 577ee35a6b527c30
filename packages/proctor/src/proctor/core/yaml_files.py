"""Reading YAML settings files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from proctor.core.errors import InputError
from proctor.core.field_problems import expected_fields, problem_message
from proctor.core.files import input_text

if TYPE_CHECKING:
    import yaml

_MAX_CHARS = 1_000_000


def read_yaml(file: Path, expected: str = "a YAML file") -> dict[str, Any]:
    """The fields of a YAML file in UTF-8; {} for an empty file.

    Tags, aliases (which can make a small file large) and duplicate keys are refused. Raises `InputError` with the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.yaml"
    ...     _ = file.write_text("title: Abdomen\\nseed: 3\\n")
    ...     read_yaml(file)
    {'title': 'Abdomen', 'seed': 3}
    """
    text = input_text(file, expected, encoding="utf-8-sig")
    if len(text) > _MAX_CHARS:
        raise InputError(file, found=f"{len(text):,} characters", expected=f"at most {_MAX_CHARS:,}")
    import yaml

    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                location = "" if event.start_mark is None else f"line {event.start_mark.line + 1}"
                raise InputError(file, location, found="an alias (*name)", expected="each value where it belongs")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            _refuse_duplicate_keys(file, node)
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        location = "" if mark is None else f"line {mark.line + 1}"
        raise InputError(
            file, location, found=str(getattr(error, "problem", "") or "broken YAML"), expected="YAML"
        ) from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise InputError(file, found=f"a {type(content).__name__}", expected="fields with values")
    return content


def _refuse_duplicate_keys(file: Path, node: yaml.Node) -> None:
    """Raise `InputError` for a duplicate key, of which the YAML reader would silently take the last."""
    import yaml

    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                location = f"line {key.start_mark.line + 1}"
                raise InputError(file, location, found=f"{name!r} twice", expected="each field once")
            seen.add(name)
            _refuse_duplicate_keys(file, value)
    elif isinstance(node, yaml.SequenceNode):
        for entry in node.value:
            _refuse_duplicate_keys(file, entry)


def problem_texts(error: ValidationError, model: type[BaseModel] | None = None) -> list[str]:
    """All problems of a validation error, each with its field; positions in lists are counted from 1. Of an unknown
    field the known ones are named, where the `model` is given.

    >>> from pydantic import BaseModel
    >>> class Study(BaseModel):
    ...     readers: list[int]
    >>> try:
    ...     Study.model_validate({"readers": [1, "x"]})
    ... except ValidationError as error:
    ...     print(problem_texts(error))
    ['readers 2: expected a whole number']
    """
    return [
        _problem_text(problem["loc"], problem["type"], problem_message(problem), model)
        for problem in error.errors(include_url=False)
    ]


def _problem_text(position: tuple[int | str, ...], kind: str, message: str, model: type[BaseModel] | None) -> str:
    words: list[str] = []
    for part in position:
        if isinstance(part, int) and words:
            words[-1] += f" {part + 1}"
        else:
            words.append(str(part))
    if kind == "extra_forbidden":
        message = expected_fields(model, position).replace("name", "name is expected", 1)
    return f"{', '.join(words)}: {message}" if words else message
