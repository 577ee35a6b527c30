"""Every option of every function of the API arrives in the room below, under its name, with its value or its default.

The functions below only write down what they were called with. An option that is dropped, mixed up with another or
given another default on the way shows here, whatever it does; `tests/cli/test_options_arrive.py` holds the way from the
shell.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, get_origin
from unittest.mock import MagicMock

import pytest
from pydantic import BaseModel

import proctor
from proctor import api, core, shell
from proctor.api import analysis, evaluation, import_export
from proctor.audits import RatingsTable
from proctor.core import FailedPolicy
from proctor.results import OFFICIAL_SUMMARIES, SCORE_WRITERS
from proctor.shell import reproduction, result_options
from proctor.shell.options import (
    AnalyzeOptions,
    AuditOptions,
    CompareOptions,
    ExportOptions,
    RankOptions,
    ReportOptions,
    ReproduceOptions,
    ResultOptions,
    declared,
)
from tests.support.fuzzed_store import NAME, fuzzed

Pairs = list[tuple[str, Any]]


class Way(NamedTuple):
    """One way through a function: what is given beside the options, the functions below, of which the last one ends it,
    the options that have no part in it, with the reason, and those that have another name below."""

    function: Callable[..., Any]
    kind: Any
    below: str
    given: Mapping[str, Any] = {}
    without: Mapping[str, str] = {}
    named: Mapping[str, str] = {}


RUNS, MEDIA = "runs:chosen_runs", "have no part in it"
ONE_OF_OTHERS = dict.fromkeys(("origin", "media", "copy_media", "no_references"), "of other programs' formats")
OF_SCORES = dict.fromkeys(("template", "allow_missing"), "of submissions of scores")
WAYS = {
    "results": Way(proctor.results, ResultOptions, "results:results"),
    "summary": Way(
        shell.official_summary,
        ResultOptions,
        "part:official_summary",
        without={"two_level": "refused", "metrics": "refused"},
    ),
    "compare": Way(proctor.compare, CompareOptions, "results:compare"),
    "rank": Way(proctor.rank, RankOptions, "results:rank_runs"),
    "analyze": Way(proctor.analyze, AnalyzeOptions, "results:analyse"),
    "audit": Way(
        proctor.audit,
        AuditOptions,
        "results:compared audits:AuditReport",
        without={"power": "a plan: a test of its own", "rater_agreement": "in the plan", "columns": "refused"},
        named={"scorer": "scorers", "lead_over": "over"},
    ),
    "audit of tables": Way(
        proctor.audit,
        AuditOptions,
        "audits:compared_tables audits:AuditReport",
        {"scores": [], "ratings": RatingsTable(()), "benchmark": ""},
        {
            "power": "a plan: a test of its own", "rater_agreement": "in the plan", "all_items": "refused",
            "columns": "of files: cli/test_own_ratings_cli.py",
        },
        {"scorer": "scorers", "lead_over": "over"},
    ),
    "report": Way(
        proctor.report,
        ReportOptions,
        "results:audit_stored results:derive_guessable analysis:_library analysis:thumbnails_of reports:write_report",
        {"media": "pictures"},
        {"publish": "another page", "pseudonyms": "with --publish"},
        {"max_side": "side"},
    ),
    "public report": Way(
        proctor.report,
        ReportOptions,
        "reports:write_public_report",
        {"publish": True},
        {
            **dict.fromkeys(("media", "media_as", "max_side"), "without pictures"),
            **dict.fromkeys(("publish", "pseudonyms"), "which page, and whose names"),
        },
    ),
    "frame": Way(
        proctor.export,
        ExportOptions,
        f"{RUNS} results:export_rows",
        without={**ONE_OF_OTHERS, **OF_SCORES, "format": "a frame", "scorer": "of judgements"},
    ),
    "table": Way(
        proctor.export,
        ExportOptions,
        "results:export",
        {"out": "x", "format": "jsonl"},
        {**ONE_OF_OTHERS, **OF_SCORES, "scorer": "of judgements"},
        {"format": "form"},
    ),
    "unresolved": Way(
        proctor.export,
        ExportOptions,
        "runs:write_open",
        {"out": "x.csv", "format": "unresolved"},
        {**ONE_OF_OTHERS, **OF_SCORES, "scorer": "of all", "format": "which", "all_items": "all"},
    ),
    "judgements": Way(
        proctor.export,
        ExportOptions,
        f"{RUNS} results:judges_of results:judgements_of",
        {"out": "x.jsonl", "format": "judgements", "scorer": "given"},
        {**ONE_OF_OTHERS, **OF_SCORES, "format": "which", "all_items": "all"},
    ),
    "scores": Way(
        proctor.export,
        ExportOptions,
        f"{RUNS} results:judges_of results:scored_answers part:write_scores",
        {"out": "x.zip", "format": "scores", "scorer": "given"},
        {**ONE_OF_OTHERS, "format": "which", "all_items": "as rated"},
    ),
    "other programs": Way(
        proctor.export,
        ExportOptions,
        "import_export:form",
        {"out": "x", "format": "croissant"},
        {**OF_SCORES, "format": "which", "scorer": "of judgements", "no_references": "turned round: a test of its own"},
    ),
    "reproduce": Way(
        proctor.reproduce,
        ReproduceOptions,
        f"{RUNS} reproduction:_reproducer",
        without={"items": "afterwards", "limit": "afterwards", "on_change": "afterwards"},
    ),
}  # fmt: skip


class ReachedError(Exception):
    """The last function of a way was called."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return fuzzed(tmp_path_factory.mktemp("down"), 1, items=6).store


def options() -> Iterator[Any]:
    for name, way in WAYS.items():
        for one in declared(way.kind):
            if one not in way.without:
                yield pytest.param(way, one, id=f"{name}-{one}")


KNOWN = {"failed": ("exclude", FailedPolicy.EXCLUDE), "format": ("csv", "csv"), "origin": ({"licence": "MIT"},) * 2}


def values_of(kind: Any, default: Any, name: str) -> tuple[Any, Any]:
    """What is given, and what arrives of it."""
    if name in KNOWN:
        return KNOWN[name]
    members = get_args(kind)
    literal = next((one for one in (kind, *members) if get_origin(one) is Literal), None)
    if name == "against" and default == "":
        return "one/two", ("one", "two")
    if literal is not None:
        chosen = next(one for one in get_args(literal) if one != default)
        return chosen, chosen
    if isinstance(default, bool):
        return not default, not default
    if isinstance(default, int | float):
        return (default + 1, default + 1) if isinstance(default, int) else (default + 0.01, default + 0.01)
    if float in members or isinstance(default, Mapping):
        return (2.5, 2.5) if float in members else ({"kind": "fast"}, {"kind": "fast"})
    if isinstance(default, tuple | list):
        return ["one", "two"], ("one", "two")
    return "given", "given"


def told(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value, and what it holds, each with its name."""
    yield name, value
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from told(str(key), one)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from told(field.name, getattr(value, field.name))
    elif isinstance(value, BaseModel):
        for key in type(value).model_fields:
            yield from told(key, getattr(value, key))


def same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, tuple):
        return isinstance(found, list | tuple) and tuple(map(str, found)) == wanted
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    return bool(str(found) == wanted if isinstance(wanted, str) and isinstance(found, Path) else found == wanted)


def stands_in(where: str, pairs: Pairs, monkeypatch: pytest.MonkeyPatch, *, last: bool, gives: Any) -> None:
    """A function that writes down what it is called with; the last one ends all."""
    module, _, name = where.partition(":")
    owners = {"analysis": analysis, "reproduction": reproduction}
    owner: Any = owners.get(module) or importlib.import_module(f"proctor.{module}")
    signature = inspect.signature(getattr(owner, name))

    def called(*given: Any, **more: Any) -> Any:
        for key, value in signature.bind(*given, **more).arguments.items():
            pairs.extend(told(key, value))
            if key in {"options", "contest", "plan", "settings"} and isinstance(value, Mapping):
                pairs.extend(value.items())
        if last:
            raise ReachedError
        return gives

    monkeypatch.setattr(owner, name, called)


def recorded(way: Way, given: Mapping[str, Any], store: Any, monkeypatch: pytest.MonkeyPatch) -> Pairs:
    """The names and values that the functions of a way are called with."""
    pairs: Pairs = []

    def ended(*_: Any, **more: Any) -> Any:
        for one in _:
            pairs.extend(told("", one))
        pairs.extend(more.items())
        raise ReachedError

    reader = MagicMock()
    part = MagicMock(
        protocols=("official", "corrected"), formats=("scores",), official_summary=ended, write_scores=ended
    )
    for parts in (OFFICIAL_SUMMARIES, SCORE_WRITERS):
        monkeypatch.setattr(parts, "of", lambda _: part)
    for module in (analysis, import_export, reproduction, result_options):
        for name in ("reader_or_default", "reader_of"):
            monkeypatch.setattr(module if hasattr(module, name) else core, name, lambda *_: reader)
    rows = way.below.split()
    for row in rows:
        gives: Any = {"results:judges_of": ["given", "one"], "analysis:_library": (MagicMock(), []), RUNS: []}.get(
            row, MagicMock()
        )
        if row.split(":")[1].startswith("compared"):
            gives = (MagicMock(), ())
        if row == "import_export:form":
            from proctor.interchange import FORMATS

            monkeypatch.setattr(type(FORMATS), "get", lambda *_: MagicMock(write=ended))
        elif not row.startswith("part:"):
            stands_in(row, pairs, monkeypatch, last=row == rows[-1], gives=gives)
    source = {"scores" if way.function is proctor.audit else "source": store}
    with pytest.raises(ReachedError):
        way.function(**{**source, "benchmark": NAME, **way.given, **given})
    return pairs


@pytest.mark.parametrize(("way", "one"), list(options()))
def test_an_option_goes_down(way: Way, one: str, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, option = declared(way.kind)[one]
    given, wanted = values_of(kind, option.default, one)
    name = way.named.get(one, one)
    with monkeypatch.context() as patched:
        pairs = recorded(way, {one: given}, store, patched)
    found = [value for key, value in pairs if key == name]
    assert any(same(value, wanted) for value in found), (name, wanted, found)
    if isinstance(option.default, bool | int | float):  # and the default is that which is documented
        with monkeypatch.context() as patched:
            found = [value for key, value in recorded(way, {}, store, patched) if key == name]
        assert any(same(value, option.default) for value in found), (name, found)
        assert not any(same(value, wanted) for value in found), (name, found)


@pytest.mark.parametrize("name", ["results", "compare", "rank", "analyze", "score", "report", "export"])
def test_methods_of_an_evaluation_are_the_functions_on_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = api.Evaluation(MagicMock(), "b", ())
    module = {"score": evaluation, "export": import_export}.get(name, analysis)
    monkeypatch.setattr(module, name, function := MagicMock())
    assert getattr(made, name)(seed=3, draws=100) is function.return_value
    locations = {"report": ("report.html",), "export": (None,)}.get(name, ())
    function.assert_called_once_with(made, *locations, seed=3, draws=100)
