"""What attacks on a review need: hostile texts, every way in, a review full of hostile texts, and an eye for markup
that became part of a page."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.params import Form
from fastapi.routing import APIRoute

from proctor_web import routes
from proctor_web.forms import FORMS
from proctor_web.readings import Save, save_draft, seal
from proctor_web.review import ReviewSite
from proctor_web.settings import StudyPlan, StudySettings
from proctor_web.sources import NewItem
from proctor_web.studies import add_study, deal_study, import_items
from tests.support.web_site import join, site
from tests.support.web_study import BODIES, NOW, READINGS

TEXTS = {
    "script": "<script>alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)>",
    "template": "{{ 7 * 191 }}{% print(7 * 191) %}${7*191}#{7*191}",
    "statement": "'; drop table readings; --",
    "condition": "' or 1=1 --",
    "path": "../../../../etc/passwd\x00.mp4",
    "header": "a\r\nSet-Cookie: proctor=1\r\n\r\n<html>",
    "surrogates": "\ud800 \udfff \x00",
    "direction": "\u202egpj.exe\u2066",
    "formula": "=cmd|' /C calc'!A0",
    "json": '"},"role":"organiser",{"',
    "address": "javascript:alert(1)//",
    "number": "9" * 400,
    "long": "x" * 20_000,
}
STORED = "".join(TEXTS[name] for name in ("script", "attribute", "template", "address", "json", "condition"))
"""What stands in every text of a hostile review."""

PEOPLE = {
    "anna": "reviewer",
    "ben": "reviewer",
    "cleo": "adjudicator",
    "olga": "organiser",
    "paul": "participant",
    "rita": "reviewer",
}
"""Anna and Ben read everything and Cleo adjudicates; nothing is assigned to the others."""


@dataclass(frozen=True)
class Way:
    """A way in: a method and a path with the names of what it takes; its fields come from a form or from a script."""

    method: str
    path: str
    locations: tuple[str, ...]
    query: tuple[str, ...]
    fields: tuple[str, ...]
    by_script: bool = False

    @property
    def unsafe(self) -> bool:
        return self.method not in {"GET", "HEAD", "OPTIONS"}

    def at(self, **values: str) -> str:
        """The path with these values in their slots; 1 in the others."""
        path = self.path
        for name in self.locations:
            for written in (f"{{{name}}}", f"{{{name}:path}}", f"{{{name}:int}}"):
                path = path.replace(written, values.get(name, "1"))
        return path


def ways(package: ModuleType = routes) -> list[Way]:
    """Every method of every route of every module of a package that has a `router`."""
    found = []
    for one in pkgutil.iter_modules(package.__path__):
        router = getattr(importlib.import_module(f"{package.__name__}.{one.name}"), "router", None)
        for route in router.routes if router is not None else ():
            assert isinstance(route, APIRoute), route
            taken, asked, said = (_inputs(route.dependant, f"{kind}_params") for kind in ("path", "query", "body"))
            script = any(not isinstance(one.field_info, Form) for one in route.dependant.body_params)
            found += [Way(one, route.path, taken, asked, said, script) for one in sorted(route.methods or ())]
    return found


def _inputs(dependant: Dependant, kind: str) -> tuple[str, ...]:
    found: list[str] = []
    for parameter in getattr(dependant, kind):
        model = getattr(parameter.field_info.annotation, "model_fields", {})
        found += model or [parameter.alias]
    for needed in dependant.dependencies:
        found += _inputs(needed, kind)
    return tuple(dict.fromkeys(found))


def locations(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every location in a JSON value, with what stands there."""
    yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        yield from locations(part, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with something else at one location."""
    if not path:
        return new
    copy = deepcopy(value)
    part = copy
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = new
    return copy


def hostile_review(folder: Path) -> ReviewSite:
    """A review with one item of every form. All texts of people and files that may be free are hostile; of every item
    Anna and Ben have sealed readings that differ."""
    made, who = review_of_all_forms(folder)
    object.__setattr__(made, "title", STORED)
    for number, form in enumerate(FORMS, start=1):
        for name, payload in zip(("anna", "ben"), READINGS[form], strict=True):
            say(made, who[name], number, payload | with_text(form, STORED), STORED, sealed=True)
    return made


def review_of_all_forms(folder: Path) -> tuple[ReviewSite, dict[str, int]]:
    """A study of each form, named like it, with one item, whose texts are hostile; and people's accounts. Items are
    numbered from 1 in the order of forms."""
    made = site(folder)
    who = {name: join(made, name, role) for name, role in PEOPLE.items()}
    plan = StudyPlan(readers=("anna", "ben"), adjudicators=("cleo",))
    for form in FORMS:
        settings = StudySettings(name=form, title=STORED[:200], form=form, items="items.jsonl", plan=plan)
        item = NewItem(f"{form} {STORED}", f"video {STORED}", (), _hostile_body(form))
        with made.writing() as connection:
            study = add_study(connection, settings, NOW)
            import_items(connection, study, [item], NOW)
            deal_study(connection, study, plan, NOW)
    return made, who


def with_text(form: str, text: str) -> dict[str, Any]:
    """A field for free text of a form's reading, where it has one of its own."""
    return {"reason": text} if form in {"question", "pairwise"} else {}


def say(review: ReviewSite, account: int, item: int, payload: dict[str, Any], comment: str, *, sealed: bool) -> None:
    """A draft, which is sealed or not."""
    with review.writing() as connection:
        mine = save_draft(connection, account, item, Save(1, 0, payload, comment, 1.0), NOW)
        if sealed:
            seal(connection, account, item, Save(1, mine.revision, payload, comment, 1.0), NOW)


def _hostile_body(form: str) -> dict[str, Any]:
    """A body whose free texts are hostile, as far as the form takes them."""
    body: dict[str, Any] = BODIES[form]
    for path, value in locations(body):
        named = {"classes", "kinds", "recorded"} | ({"options", "boxes"} if form == "choice" else set())
        fixed = {*path[:1]} <= named or "frames" in path  # names of what is there
        if isinstance(value, str) and path[-1] not in {"id", "name"} and not fixed:
            body = put(body, path, f"{STORED} {path[-1]}")
    FORMS[form].read_body(body)
    return body


@cache
def markup_faults(page: str) -> list[str]:
    """What `MarkupEye` finds; many answers are the same page, which is read once."""
    return MarkupEye(page).faults


class MarkupEye(HTMLParser):
    """What in a page could run, load or lead elsewhere, and is not Proctor's own: `faults`."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in {"iframe", "object", "embed", "base", "applet", "frame"} or "http-equiv" in given:
            self.faults.append(self.get_starttag_text() or tag)
        data = given.get("type") == "application/json"
        if tag == "script" and not data and not given.get("src", "").startswith("/static/"):
            self.faults.append(self.get_starttag_text() or tag)
        if any(name.startswith("on") or name in {"style", "srcdoc"} for name in given):
            self.faults.append(self.get_starttag_text() or tag)
        for name in ("href", "src", "action", "formaction", "poster", "data", "xlink:href"):
            value = given.get(name, "/")
            if value != "data:," and (not value.startswith(("/", "#")) or value.startswith(("//", "/\\"))):
                self.faults.append(self.get_starttag_text() or tag)

    def handle_data(self, data: str) -> None:
        if "1337" in data:  # 7 · 191: a template was filled in with a template
            self.faults.append(data)
