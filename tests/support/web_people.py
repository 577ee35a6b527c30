"""People of a served review, each in a browser of their own."""

from __future__ import annotations

from typing import Any

import httpx2
from starlette.testclient import TestClient

from proctor_web.review import ReviewSite
from tests.support.web_site import browser, csrf_of, join, log_in
from tests.support.web_study import new_items, study_of

ROLES = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator", "olga": "organiser", "rita": "reviewer"}


class Person:
    """Somebody in a browser of their own."""

    def __init__(self, review: ReviewSite, name: str) -> None:
        join(review, name, ROLES.get(name, name))
        self.client: TestClient = browser(review)
        log_in(self.client, name)
        self.csrf = csrf_of(self.client.get("/"))

    def post(self, path: str, value: dict[str, Any]) -> httpx2.Response:
        """A page's script sends JSON."""
        return self.client.post(path, json=value, headers={"x-csrf-token": self.csrf})

    def save(self, item: int, payload: dict[str, Any], what: str = "draft", **more: Any) -> httpx2.Response:
        """It saves, seals or settles."""
        value = {"version": 1, "revision": 0, "payload": payload} | more
        return self.post(f"/item/{item}/{what}", value)

    def next(self) -> str:
        """Where the study `s` leads to."""
        answer = self.client.get("/study/s/next")
        assert answer.status_code == 303
        return answer.headers["location"]


def items(review: ReviewSite, count: int = 1, form: str = "question", **plan: Any) -> list[int]:
    """The ids of new items of the study `s`."""
    ids = study_of(review.engine, new_items(count, form), form, **plan)
    return [ids[f"q{number:03d}"] for number in range(count)]
