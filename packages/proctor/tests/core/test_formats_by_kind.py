"""Answer formats are read by their kind, each from its own module, as pydantic reads a union told apart by `kind`."""

from __future__ import annotations

import functools
import json
import operator
import subprocess
import sys
from typing import Annotated, Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from proctor.core import Item
from proctor.core.formats import EVERY_KIND, AnswerFormat, ChoiceFormat, Format, format_of_kind
from proctor.testing import example_items

_CLASSES: list[Any] = [format_of_kind(kind) for kind in EVERY_KIND]
_ANY: Any = Annotated[functools.reduce(operator.or_, _CLASSES), Field(discriminator="kind")]
_UNION: TypeAdapter[Format] = TypeAdapter(_ANY)
_BY_KIND: TypeAdapter[Format] = TypeAdapter(AnswerFormat)


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_table_names_the_class_of_each_kind(kind: str) -> None:
    assert format_of_kind(kind).model_fields["kind"].default == kind
    (item,) = example_items([kind])
    written = item.model_dump_json()
    assert type(item.answer) is format_of_kind(kind)
    assert json.loads(written)["answer"] == json.loads(_UNION.dump_json(item.answer))
    assert Item.model_validate_json(written) == Item.model_validate(json.loads(written)) == item
    assert _BY_KIND.validate_python(item.answer) is item.answer


@pytest.mark.parametrize(
    "given",
    [
        *({"kind": kind, "unknown": 1} for kind in EVERY_KIND),
        {"kind": "ordering"},
        {"kind": "ordering", "labels": "AB"},
        {"kind": "scale", "low": 3, "high": 1},
        {"kind": "pattern", "pattern": "("},
        {"kind": "multiple"},
        {"kind": 3},
        {"kind": None},
        {"labels": ["A", "B"]},
        {},
        5,
        "choice",
        ["choice"],
        None,
    ],
    ids=str,
)
def test_a_fault_is_told_as_a_union_tells_it(given: Any) -> None:
    faults = []
    for adapter in (_UNION, _BY_KIND):
        with pytest.raises(ValidationError) as told:
            adapter.validate_python(given)
        faults.append(told.value.errors(include_url=False, include_context=False))
    assert faults[0] == faults[1]


def test_an_object_of_no_kind_is_no_format() -> None:
    class Own(ChoiceFormat):
        kind: Any = "own"

    with pytest.raises(ValidationError, match="Input tag 'own' found using 'kind'"):
        _BY_KIND.validate_python(Own())


def test_an_item_loads_its_own_format_alone() -> None:
    code = (
        "import sys\nfrom proctor.core import Item\n"
        "Item.model_validate({'id': 'q', 'group': 'g', 'question': '?', 'answer': {'kind': 'count'}})\n"
        "print(*(one for one in sys.modules if one.startswith('proctor.core.formats.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    homes = {kind: format_of_kind(kind).__module__ for kind in EVERY_KIND}
    expected = {homes["count"], homes["choice"]}  # an item knows how many letters options have
    assert {home for home in homes.values() if home in loaded} == expected
