"""Knowledge of procedures as files: what is known, what follows from it, and what is wrong with a broken one."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor.core import ConfigurationError, InputError
from proctor.tasks.clinicalskillqa.methods.workflow import (
    SCENARIOS,
    Workflow,
    WorkflowChoice,
    built_in,
    check_workflow,
    flaws,
    load_workflow,
)
from tests.support.program import proctor

GOOD: dict[str, Any] = {
    "name": "tea",
    "title": "making tea",
    "words": ["tea"],
    "source": ["a kitchen"],
    "facts": {
        "kettle_on": {"seen": "the kettle boils"},
        "cup_full": {"seen": "tea in the cup", "lasts": {"since": "pour", "until": "drink"}},
        "at_mouth": {"seen": "the cup is at the mouth"},
        "milk": {"seen": "milk is poured"},
    },
    "steps": [
        {"name": "boil", "title": "boil water", "shown_by": ["kettle_on"], "after": []},
        {"name": "pour", "title": "pour it", "shown_by": ["cup_full"], "never_with": ["at_mouth"], "after": ["boil"]},
        {"name": "whiten", "title": "add milk", "shown_by": ["milk"], "after": ["pour"], "optional": True},
        {"name": "drink", "title": "drink", "shown_by": ["at_mouth"], "after": ["whiten"]},
    ],
    "start": ["boil"],
    "variants": [{"free": ["pour", "whiten"], "why": "some add the milk first"}],
}


def written(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    content = json.loads(json.dumps(GOOD))
    change(content)
    file = tmp_path / "tea.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False))
    return file


def tea() -> Workflow:
    return Workflow.model_validate(json.loads(json.dumps(GOOD)))


def test_what_follows_from_after() -> None:
    known = tea()
    names = [step.name for step in known.steps]
    before = {(a, b) for a, b in permutations(names, 2) if known.precedes(a, b)}
    # All pairs of the chain but the one that the variant leaves free.
    assert before == {("boil", "pour"), ("boil", "whiten"), ("boil", "drink"), ("pour", "drink"), ("whiten", "drink")}
    assert [known.level(name) for name in names] == [0, 1, 2, 3]
    assert not known.precedes("boil", "boil")
    assert not known.precedes("boil", "no_such_step")
    assert known.step("no_such_step") is None
    with pytest.raises(KeyError):
        known.level("no_such_step")


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_built_in_has_no_flaw(name: str) -> None:
    known = built_in(name)
    assert flaws(known) == []
    assert known.name == name
    assert len(known.steps) >= 10
    assert {known.level(step.name) for step in known.steps} == set(
        range(max(map(known.level, [s.name for s in known.steps])) + 1)
    )
    for one, other in permutations([step.name for step in known.steps], 2):
        assert not (known.precedes(one, other) and known.precedes(other, one))
        if known.precedes(one, other):
            assert known.level(one) < known.level(other)


def test_precedence_by_hand() -> None:
    cpr, aed, bmv = map(built_in, SCENARIOS)
    assert cpr.precedes("check_response", "compress")
    assert not cpr.precedes("compress", "ventilate")  # thirty and two take turns
    assert cpr.precedes("ventilate", "check_again")
    assert aed.precedes("attach_pads", "analyse")
    assert not aed.precedes("shock", "analyse")
    assert bmv.precedes("assemble", "seal_mask")
    assert not bmv.precedes("squeeze", "watch")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
def test_a_cycle_is_found_exactly_where_no_order_fits(edges: list[tuple[int, int]]) -> None:
    steps = [
        {"name": f"s{k}", "title": "x", "shown_by": ["f"], "after": sorted({f"s{a}" for a, b in edges if b == k})}
        for k in range(6)
    ]
    start = [step["name"] for step in steps if not step["after"]] or ["s0"]
    made = Workflow.model_validate(
        GOOD | {"facts": {"f": {"seen": "x"}}, "steps": steps, "start": start, "variants": []}
    )
    fits = any(all(order.index(a) < order.index(b) for a, b in edges) for order in permutations(range(6)))
    assert any("a cycle" in flaw.found for flaw in flaws(made)) != fits


def step(number: int, **fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda content: content["steps"][number].update(fields)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda c: c.pop("start"), "field 'start': found nothing, expected a value"),
        (lambda c: c.update(begin=["boil"]), "field 'begin': found an unknown field, expected none of this name"),
        (step(1, name="Pour it"), "step 'Pour it', field 'name': found 'Pour it', expected a text of the form"),
        (step(2, name="pour"), "step 'pour': found it a second time, expected each step once"),
        (
            step(1, after=["boil", "stir"]),
            "step 'pour', field 'after': found the unknown step 'stir', expected a name of",
        ),
        (
            step(0, shown_by=["steam"]),
            "step 'boil', field 'shown_by': found the unknown fact 'steam', expected a name of",
        ),
        (
            step(0, after=["drink"]),
            "step 'boil', field 'after': found a cycle, boil after drink after whiten after pour after boil",
        ),
        (step(1, after=[]), "step 'pour': found no way to it from the start, expected a step that it comes after, or"),
        (
            step(1, never_with=["cup_full"]),
            "step 'pour': found 'cup_full' in shown_by and in never_with, expected one of",
        ),
        (
            lambda c: c["variants"][0].update(free=["pour", "drink"]),
            (
                "variant 1: found 'pour' and 'drink' free, with 'whiten' always between them, expected 'whiten' among the "
                "free"
            ),
        ),
        (
            lambda c: c["start"].append("pour"),
            "field 'start': found 'pour', which comes after 'boil', expected steps that",
        ),
        (
            lambda c: c["facts"].update(rain={"seen": "rain"}),
            "fact 'rain': found no step that looks at it, and it does",
        ),
        (
            lambda c: c["facts"]["cup_full"]["lasts"].update(since="fill"),
            "fact 'cup_full', field 'since': found the unknown",
        ),
        (lambda c: c.update(steps=[]), "field 'steps': found an empty list, expected at least 2 entries"),
    ],
)
def test_one_line_says_what_is_wrong(change: Callable[[dict[str, Any]], object], text: str, tmp_path: Path) -> None:
    file = written(tmp_path, change)
    first = str(check_workflow(file)[0])
    assert first.startswith(f"{file}: {text}")
    assert "\n" not in first
    with pytest.raises(InputError) as caught:
        load_workflow(file)
    assert str(caught.value) == first


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "found nothing, expected a mapping with name, title, facts, steps"),
        (b"- a\n- b\n", "found a list, expected a mapping"),
        (b"name: tea\nsteps: [a\n", "line 3: found expected ',' or ']', but got '<stream end>', expected YAML"),
        (b"name: tea\nname: coffee\n", "line 2: found the key 'name' twice, expected YAML"),
        (b"\xff\xfe\x00", "found bytes that are no UTF-8, expected a YAML file"),
        (
            b"a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n",
            "line 2: found a reference to another part, expected YAML",
        ),
        (b"name: !!int " + b"9" * 5_000, "found a value that is not what its tag says, expected YAML"),
        (b"name: !!timestamp tea", "found a value that is not what its tag says, expected YAML"),
        (b"name: !!float tea", "found a value that is not what its tag says, expected YAML"),
        (b"name: !!python/object/apply:os.system [ls]\n", "line 1: found could not determine a constructor"),
        (b"? [a, b]\n: 1\n", "line 1: found found unhashable key, expected YAML"),
        (b"[" * 100_000, "found what can't be read, expected YAML"),
        (b"#" * 200_001, "found 200001 bytes, expected at most 200000"),
    ],
)
def test_what_is_no_yaml_is_said_in_one_line(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "tea.yaml"
    file.write_bytes(content)
    found = check_workflow(file)
    assert len(found) == 1
    assert str(found[0]).startswith(f"{file}: {text}")


@pytest.mark.parametrize("name", ["2001-01-01", "1:30:00", "9" * 5_000], ids=["date", "sexagesimal", "long"])
def test_what_looks_like_a_date_or_a_long_number_is_a_text(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tea.yaml"
    file.write_text(f"name: {name}")
    assert str(check_workflow(file)[0]).startswith(f"{file}: field 'name': found '{name}'"[:60])


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert str(check_workflow(tmp_path / "no.yaml")[0]).endswith("no.yaml: found no such file, expected a YAML file")


def test_the_command_lists_everything_at_once(tmp_path: Path) -> None:
    def change(content: dict[str, Any]) -> None:
        content["steps"][0]["shown_by"] = ["steam"]
        content["steps"][3]["after"] = ["stir"]

    file = written(tmp_path, change)
    done = proctor("check", "workflow", file)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        f"{file}: step 'boil', field 'shown_by': found the unknown fact 'steam', expected a name of this file",
        f"{file}: step 'drink', field 'after': found the unknown step 'stir', expected a name of this file",
        "2 errors",
    ]
    good = proctor("check", "workflow", written(tmp_path, lambda _: None), "--format", "json")
    assert (good.returncode, json.loads(good.stdout)["errors"]) == (0, 0)


# ── what is offered for an item ──


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("frames of one recording of cardiopulmonary resuscitation, in mixed order", ["cpr"]),
        ("frames of one recording of the use of an automated external defibrillator", ["aed"]),
        ("frames of one recording of bag-mask ventilation", ["bmv"]),
        ("CPR with an AED", ["cpr", "aed"]),
        ("frames of one recording of a clinical procedure", ["cpr", "aed", "bmv"]),
        ("aedes mosquitoes", ["cpr", "aed", "bmv"]),
    ],
)
def test_the_question_says_which_workflow_is_meant(question: str, names: list[str]) -> None:
    assert [one.name for one in WorkflowChoice("m").of(question)] == names


def test_a_scenario_or_a_file_leaves_no_choice(tmp_path: Path) -> None:
    assert [one.name for one in WorkflowChoice("m", scenario="BMV").of("CPR")] == ["bmv"]
    own = WorkflowChoice("m", workflow=str(written(tmp_path, lambda _: None)))
    assert [one.name for one in own.of("CPR")] == ["tea"]
    assert list(own.settings) == ["workflows"]
    assert own.settings != WorkflowChoice("m").settings
    with pytest.raises(ConfigurationError, match=r"^m: option 'scenario': found 'ecg', expected one of cpr, aed, bmv$"):
        WorkflowChoice("m", scenario="ecg")
    with pytest.raises(ConfigurationError, match="found a workflow beside a scenario"):
        WorkflowChoice("m", scenario="cpr", workflow="x.yaml")
    with pytest.raises(InputError, match=r"tea.yaml: step 'boil': found no way"):
        WorkflowChoice("m", workflow=str(written(tmp_path, lambda c: c.update(start=["pour"]))))
