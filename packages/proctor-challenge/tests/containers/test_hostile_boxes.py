"""Programs that reply with anything but an answer: each costs its own question, and never the next one. Nothing here
needs a container: the gateway is the same for a local program."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from proctor.core import Answer, Item, Status
from proctor_challenge.containers import BoxedSystem, BoxReport, gateway
from proctor_challenge.containers.process import named
from proctor_challenge.containers.system import ERROR_CLASSES, MOST_BYTES, coarse
from tests.support.boxes import HOSTILE
from tests.support.doubles_of_boxes import LABEL, answers, boxed, question
from tests.support.planted import planted


def attack(*what: str) -> Item:
    return question("q7", json.dumps(what))


FINE = attack("nothing")


def asked(*items: Item, question_s: float = 60.0) -> tuple[list[Answer], BoxedSystem]:
    async def ask() -> tuple[list[Answer], BoxedSystem]:
        async with (system := boxed(str(HOSTILE), question_s=question_s)):
            return await answers(system, items), system

    return asyncio.run(ask())


NO_ANSWER = 'the reply is no JSON object with a text "answer"'
REPLIES = {
    "huge": "the reply has more than 1 MB",
    "endless": "the reply has more than 1 MB",
    "continue": "the reply comes in more than 2,048 pieces",
    "chunks": "the reply comes in more than 2,048 pieces",
    "long": "the answer has more than 65,536 characters",
    "endless head": "the reply is no HTTP",
    "upgrade": "the reply is no HTTP",
    "no http": "the reply is no HTTP",
    "two lengths": "the reply is no HTTP",
    "cut": "the container closed the connection before its reply was complete",
    "nothing": "the container closed the connection before its reply was complete",
    "packed": NO_ANSWER,
    "nested": NO_ANSWER,
    "number": NO_ANSWER,
    "list": NO_ANSWER,
    "redirect": "the container replied with HTTP 302, expected 200",
    "name": "the container replied with HTTP 500, expected 200",
}


def test_each_reply_costs_its_own_question_and_no_other() -> None:
    both = [item for kind in REPLIES for item in (attack("reply", kind), FINE)]
    found, system = asked(*both)
    assert {kind: one.reason for kind, one in zip(REPLIES, found[::2], strict=True)} == REPLIES
    assert {one.status for one in found[::2]} == {Status.ERROR}
    assert [one.text for one in found[1::2]] == ["yes"] * len(REPLIES)
    assert system.report().restarts == 0


def test_a_reply_that_trickles_is_late() -> None:
    found, _ = asked(attack("reply", "trickle"), question_s=0.2)
    assert found[0].status is Status.TIMED_OUT


def test_answers_to_other_questions_and_replies_sent_in_advance_count_for_nothing() -> None:
    found, _ = asked(attack("reply", "others"), attack("reply", "more"), attack("reply", "cut"), FINE)
    assert [(one.item_id, one.text) for one in found] == [("q7", "yes"), ("q7", "yes"), ("q7", ""), ("q7", "yes")]


def test_an_answer_is_a_text_that_every_store_takes() -> None:
    found, _ = asked(attack("reply", "odd"))
    assert found[0].text == "\ufffd\ufffd\x1b[2J<script>yes"


def test_the_name_of_an_error_and_what_is_printed_are_no_way_out() -> None:
    _, system = asked(attack("reply", "name"), attack("talk", "1"))
    blind, open_to_all = system.report(), system.report(public=True)
    assert blind.errors == {"other": 1}
    assert "KeyIsB" not in blind.model_dump_json()
    assert blind.log == ""
    assert open_to_all.log.endswith("the last line\n")
    assert open_to_all.blind() == blind


def test_a_blind_log_has_a_bound_whatever_happened() -> None:
    """Its fields are numbers and names of a list, and all of them at their largest have fewer bytes than the bound."""
    names = sorted(ERROR_CLASSES, key=len)[-5:]
    largest = BoxReport(
        exit_code=255, signal=64, out_of_memory=True, peak_memory=2**50, startup_s=7200, seconds=10**6, restarts=1,
        counts=dict.fromkeys(Status, 10**6), errors=dict.fromkeys([*names, "other"], 10**6),
    )  # fmt: skip
    assert len(largest.model_dump_json()) < MOST_BYTES
    for field in ("seconds", "startup_s"):  # the time of a single answer is no way out
        with pytest.raises(ValueError, match="valid integer"):
            BoxReport.model_validate({field: 1.25})
    assert (coarse(1), coarse(2**24 + 1)) == (2**24, 2**25)
    with pytest.raises(ValueError, match="expected an error class of the list"):
        BoxReport(errors={"TheKeyIsB": 1})
    with pytest.raises(ValueError, match=f"expected at most {MOST_BYTES}"):
        BoxReport(seconds=10**MOST_BYTES)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "file"])
def test_what_stands_where_the_socket_was_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It is not followed, nothing waits for it, and the program is started again."""
    monkeypatch.setattr(gateway, "_BREATH_S", 0.05)
    with planted(tmp_path / "sealed") as secret:
        found, system = asked(attack("replace_socket", kind, str(secret.unix)), FINE, FINE)
        assert secret.visits == []
    assert [one.status for one in found] == [Status.ANSWERED, Status.ERROR, Status.ANSWERED]
    assert found[1].reason == "the container did not take the question"
    assert system.report().restarts == 1


def test_what_a_program_left_behind_is_killed_with_it() -> None:
    found, _ = asked(attack("daemon"))
    assert found[0].text == "yes"
    assert [one for one in named().values() if one.startswith(f"{LABEL} ")] == []


def test_a_folder_of_boxes_that_others_can_open_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def start() -> None:
        async with boxed(str(HOSTILE)):
            pass

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asyncio.run(start())
    (folder,) = tmp_path.iterdir()
    assert oct(folder.stat().st_mode & 0o777) == "0o700"
    assert list(folder.iterdir()) == []
    folder.chmod(0o755)
    with pytest.raises(Exception, match="found something that others can open"):
        asyncio.run(start())


def test_the_attacks_find_secrets_where_nothing_holds_them_back(tmp_path: Path) -> None:
    """A local program is not held back: the same attacks that find nothing in a container (test_attacks) find it."""
    with planted(tmp_path / "sealed") as secret:
        found, _ = asked(
            attack("files_below", str(tmp_path)),
            attack("processes"),
            attack("connect_tcp", "127.0.0.1", str(secret.port)),
            attack("connect_unix", str(secret.unix)),
            attack("connect_unix", secret.abstract),
        )
        assert [secret.canary in one.text for one in found] == [True] * 5
        assert sorted(secret.visits) == ["abstract", "tcp", "unix"]
