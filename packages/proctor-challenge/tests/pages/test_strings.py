"""Texts of pages: every language has all of them, with the same {names}, and no page asks for one that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from proctor.audits.items.baselines import rule_baselines
from proctor.audits.items.options import OptionTable, right_options
from proctor.core import Item, Reference
from proctor.core.formats import ChoiceFormat
from proctor_build.pipeline import FORBIDDEN, KEY_STANDS_OUT
from proctor_challenge.pages.site import ChallengeSite
from proctor_challenge.states import PhaseState, SubmissionState
from proctor_challenge.submissions import REASONS
from proctor_web import pages, strings
from tests.support.web_site import site

WEB = Path(strings.__file__).parent
ROOMS: dict[Path, Path | None] = {WEB: None, ChallengeSite.texts.parent: ChallengeSite.texts}
"""Where pages are made, and the folder of their own texts beside those of all sites."""

in_each_room = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.parent.name)


def texts(language: str, room: Path) -> dict[str, str]:
    return strings._texts(language, ROOMS[room])


def names(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@in_each_room
@pytest.mark.parametrize("language", strings.languages())
def test_every_language_says_everything(language: str, room: Path) -> None:
    english = texts("en", room)
    assert texts(language, room).keys() == english.keys()
    assert {key: names(text) for key, text in texts(language, room).items()} == {
        key: names(text) for key, text in english.items()
    }


@pytest.mark.parametrize(("language", "key"), [("en", "Shift+N"), ("de", "Umschalt+N")])
def test_the_help_for_boxes_names_the_key_of_a_new_box(language: str, key: str) -> None:
    assert key in texts(language, WEB)["boxes.help"], "N alone goes to another item"


@in_each_room
def test_no_text_is_in_the_other_language_by_mistake(room: Path) -> None:
    english = texts("en", room)
    same = [key for key, text in texts("de", room).items() if text == english[key] and len(text.split()) > 2]
    assert same == []


def sources(room: Path) -> dict[Path, str]:
    files = [*room.rglob("*.html"), *room.rglob("*.py"), *room.rglob("*.js"), *room.parent.glob("board_charts.py")]
    return {file: file.read_text(encoding="utf-8") for file in files}


@in_each_room
def test_every_text_that_a_template_names_is_there(room: Path) -> None:
    english = texts("en", room)
    known = set(english) | {key.rpartition(".")[0] for key in english if key.endswith((".one", ".other"))}
    for file, source in sources(room).items():
        if file.suffix == ".html":
            missing = set(re.findall(r"\bt\(\s*\"([\w.]+)\"\s*[,)]", source)) - known
            assert missing == set(), file


@in_each_room
def test_no_text_is_left_that_nobody_says(room: Path) -> None:
    """A key is named whole, or its beginning is (`"error.e" ~ code`)."""
    said = "\n".join(sources(room).values())
    quoted = set(re.findall(r"[\"']([a-z]\w*(?:\.\w*)+)[\"']", said)) | {"language"}
    unsaid = [
        key
        for key in set(texts("en", room)) - (set(texts("en", WEB)) if room != WEB else set())
        if key not in quoted
        and re.sub(r"\.(one|other)$", "", key) not in quoted
        and not any(key.startswith(start) and start.count(".") for start in quoted)
    ]
    assert unsaid == []


def test_a_reason_and_a_state_are_said_in_every_language() -> None:
    """What the queue writes into the database comes to the pages as a key."""
    for language in strings.languages():
        known = strings._texts(language, ChallengeSite.texts)
        for name in REASONS:
            assert f"reason.{name}" in known
        for state in SubmissionState:
            assert f"state.{state}" in known
        for phase in PhaseState:
            assert f"phase.state.{phase}" in known
    english = strings._texts("en", ChallengeSite.texts)
    assert {name: english[f"reason.{name}"] for name in REASONS} == {**REASONS}


def test_what_the_rules_of_questions_say_is_said_in_every_language() -> None:
    choice = Item(
        id="q", group="g", question="What?", answer=ChoiceFormat(), options=("a", "bc"), reference=Reference(answer="A")
    )
    table = OptionTable([choice, choice.model_copy(update={"id": "r"})], 0)
    rules = [one.name for one in rule_baselines(table, right_options(table), 1) if not one.name.startswith("always-")]
    broken = [*FORBIDDEN, "options", "an option twice", "the answer in the stem", "not in the events", KEY_STANDS_OUT]
    assert len(rules) > 30
    for language in strings.languages():
        known = strings._texts(language)
        assert {f"guess.rules.{name.replace('-', '_')}" for name in rules} <= known.keys()
        assert {f"guess.broken.{re.sub('[ -]', '_', name)}" for name in broken} <= known.keys()


def test_every_action_of_the_trail_has_words() -> None:
    """Where an action is recorded, it is followed by its subject, such as `item 12`."""
    subjects = r"account|item|study|team|submission|phase"
    found = set()
    for room in (WEB, ChallengeSite.texts.parents[1]):
        for file in room.rglob("*.py"):
            source = file.read_text(encoding="utf-8")
            found |= set(re.findall(rf'"([a-z][a-z ]+)", (?:_subject\(|f"(?:{subjects}) )', source))
            found |= {
                one for pair in re.findall(r'action = "([a-z ]+)" if .* else "([a-z ]+)"', source) for one in pair
            }
    assert {"seal", "add account", "leave team", "remove member", "disqualify", "import items"} <= found
    assert {f"trail.did.{name.replace(' ', '_')}" for name in found} <= strings._texts("de").keys()


def test_no_visitor_waits_for_templates_or_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    review = site(tmp_path)
    for cached in (pages._environment, strings._texts):
        cached.cache_clear()
    pages.prepare_pages(review)
    monkeypatch.setattr(strings, "read_yaml", lambda path: pytest.fail(f"{path} was read"))
    monkeypatch.setattr("jinja2.Environment.compile", lambda *given, **more: pytest.fail("a template was compiled"))
    assert strings.text("de", "language", more=review.texts) != strings.text("en", "language")
    assert pages._environment(review.templates).get_template("login.html")
