"""Replies of models are read by the answer formats alone: no other module cuts, splits or matches the text of a reply.

Found by the syntax tree: a slice of something that is named as a reply, and a call that takes texts apart with it. Values of
a requested form (`reply.value`, its fields) are no text to read: pydantic has checked them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.paths import modules, source_name

ALLOWED = {
    "cli/benchmarks.py": "shows a value only where it is not the text itself",
    "proctor_build/pipeline/screening.py": "what is kept of a reply, beside what the format reads of it",
    "interchange/inspect_logs.py": "the first words of an answer that can't be read, for the error in the log",
    "interchange/tasks.py": "the same, for the explanation of a score",
    "metrics/graded.py": "the first intervals of an answer that is read already",
    "models/provider.py": "the first words of a reply that is no completion, for the error",
    "models/speech.py": "JSON of a speech server's answer over HTTP",
    "models/vision.py": "what a child process found wrong with a network",
    "systems/model_system.py": "asks the readers of core.formats whether a reply corrects itself",
    "proctor_build/clinicalskillqa/project/rationales.py": "the spaces of a field, a checker's reason",
    "proctor_train/mediqa_eval/classifier/judge.py": "the spaces of a field, a picture's caption",
    "testing/metric_checks.py": "the first words of an answer, for the name of a failed check",
}
"""Modules that do so for something else than reading an answer, and what for."""

READING = frozenset(
    [
        "search",
        "match",
        "fullmatch",
        "finditer",
        "findall",
        "split",
        "partition",
        "rpartition",
        "rsplit",
        "splitlines",
        "startswith",
        "endswith",
        "removeprefix",
        "removesuffix",
        "loads",
        "load_json",
        "json_values",
        "declared_answers",
        "bare",
    ]
)
REPLIES = frozenset(
    ["reply", "replied", "response", "completion", "prediction", "model_prediction", "raw_reply", "reply_text"]
)
OF_TEXT = frozenset({"answer", *REPLIES})


def is_reply(node: ast.AST) -> bool:
    """Whether an expression has a reply, or the text of one."""
    return any(
        (isinstance(one, ast.Name) and one.id in REPLIES)
        or (isinstance(one, ast.Attribute) and one.attr in REPLIES)
        or (
            isinstance(one, ast.Attribute)
            and one.attr == "text"
            and isinstance(one.value, ast.Name)
            and one.value.id in OF_TEXT
        )
        for one in ast.walk(node)
    )


def readings(source: str) -> Iterator[str]:
    """The expressions that read a reply."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and is_reply(node.value):
            yield ast.unparse(node)
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            taken = [*node.args, *([called.value] if isinstance(called, ast.Attribute) else [])]
            if name in READING and any(map(is_reply, taken)):
                yield ast.unparse(node)


def test_no_other_module_reads_a_reply() -> None:
    found = {
        source_name(file): list(readings(file.read_text(encoding="utf-8")))
        for file in modules().values()
        if "core/formats" not in file.as_posix()
    }
    reading = {name: some for name, some in found.items() if some}
    assert {name: some for name, some in reading.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() - reading.keys() == set()


@pytest.mark.parametrize(
    "source",
    [
        "letter = reply[:1]",
        "letter = reply.text.strip()[:1].upper()",
        "said = answer.text.split('Answer:')[-1]",
        "found = re.search(r'[A-D]', reply.text)",
        "found = _LETTER.match(response)",
        "value = json.loads(result.completion)",
        "if prediction.startswith('A'): pass",
    ],
)
def test_a_reading_is_found(source: str) -> None:
    assert list(readings(source))


@pytest.mark.parametrize("source", ["item.answer.parse(reply.text, shown)", "reply.value.order", "text.split()"])
def test_what_is_no_reading_is_not(source: str) -> None:
    assert not list(readings(source))
