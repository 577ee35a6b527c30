"""What a package or a notebook offers in the wrong form is told with the form that is expected."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor import ConfigurationError
from proctor.core import BENCHMARKS, Registry, UsageError
from proctor.metrics import SCORERS, build_scorer
from proctor.systems import SYSTEMS, build_system, prompt_for_benchmark
from tests.support.lamp_benchmark import lamps


def plain_metric(text: str) -> float:
    """A metric without its decorator."""
    return float(bool(text))


def plain_system(question: str) -> str:
    """A system without its decorator."""
    return question


class Says:
    """A system."""

    name = "says"

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def supports(self, item: proctor.Item) -> bool:
        return bool(item)

    async def answer(self, item: proctor.Item, view: object) -> proctor.Answer:
        return proctor.Answer(item_id=item.id, text=str(view))


def offer(monkeypatch: pytest.MonkeyPatch, registry: Registry[Any], name: str) -> None:
    monkeypatch.setattr(registry, "_offered", {name: EntryPoint(name, f"{__name__}:{name}", registry.group)})
    monkeypatch.setattr(registry, "_known", dict(vars(registry)["_known"]))


def test_a_function_without_its_decorator_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, SCORERS, "plain_metric")
    offer(monkeypatch, SYSTEMS, "plain_system")
    with pytest.raises(ConfigurationError) as told:
        build_scorer("plain_metric")
    assert str(told.value).endswith(
        "found the parameter 'text', expected a factory without parameters, or a function with @proctor.metric"
    )
    with pytest.raises(ConfigurationError) as told:
        build_system("plain_system")
    assert str(told.value) == (
        "plain_system: found the parameter 'question', expected those of models, options and seed that it needs "
        "(a function that answers is decorated by @proctor.system)"
    )


def test_a_class_instead_of_a_system_is_told() -> None:
    with pytest.raises(UsageError, match=r"^Says is a class\. Give an object of it: Says\(…\)$"):
        proctor.run(lamps(), Says, conditions="text-only", store=":memory:", baselines=False)


def test_a_folder_without_the_usual_prompt_has_the_general_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = BENCHMARKS.get("rexsonovqa")
    monkeypatch.setattr(type(reader), "prompts", tmp_path)
    general = prompt_for_benchmark("no such benchmark")
    assert prompt_for_benchmark("rexsonovqa").sha256 == general.sha256
    own = tmp_path / "rexsonovqa.paper.txt.j2"
    own.write_text("{% block user %}{{ question }}{% endblock %}", encoding="utf-8")
    assert prompt_for_benchmark("rexsonovqa", "paper").sha256 != general.sha256
