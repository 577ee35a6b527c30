"""Workers that know nothing but a store: they join what is open there, and what they lack they say and leave alone."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from sqlalchemy import make_url, update

import proctor as python
from proctor.core import Answer, InputError, Item
from proctor.runs import (
    ItemClaims,
    Limits,
    Order,
    Store,
    delete_runs,
    evaluation_content,
    open_orders,
    put_order,
    read_parcel,
    schema,
)
from proctor.runs.engine import ask_all
from proctor.shell import arrange, work_async
from proctor.shell.workers import Worked
from tests.runs.test_engine import Scripted
from tests.runs.test_item_leases import job_of, opened, say_two, url  # noqa: F401 - a fixture
from tests.support.faulty_server import FaultyServer
from tests.support.flaky_link import flaky_link
from tests.support.program import proctor
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 30
PROMPT = "Of the trays: {{ question }} {{ instruction }}\n"


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with FaultyServer(answer_tray) as running:
        yield running


def text_options(tmp_path: Path, server: FaultyServer, store: str, items: int = ITEMS) -> dict[str, Any]:
    prompt = tmp_path / "trays.txt.j2"
    prompt.write_text(PROMPT)
    asked = {"model": "local", "base_url": server.url, "settings": {"temperature": 0}, "prompt": str(prompt)}
    data = write_text_folder(tmp_path / "data", items)
    return {**asked, "data": data, "conditions": "text-only", "store": store, "baselines": False, "timeout_s": 600.0}


def kept_rows(benchmark: str | Path = "simulated", **options: Any) -> None:
    """Keeps a run in its store, and asks nothing."""

    async def row() -> None:
        prepared = await arrange(benchmark, **options, share=True).prepare()
        async with prepared.arranged.access.closing():
            prepared.store.close()

    asyncio.run(row())


def worked(store: str | Store, **options: Any) -> tuple[Worked, list[str]]:
    said: list[str] = []
    given = {"concurrency": 2, **options}
    return asyncio.run(work_async(store=store, once=True, report=said.append, **given)), said


def content(store: str | Path) -> dict[str, Any]:
    opened = Store(store, create=False)
    try:
        return asdict(evaluation_content(opened, opened.benchmark_names()[0]))
    finally:
        opened.close()


def test_workers_come_and_go_and_have_the_hash_of_one_alone(
    url: str,  # noqa: F811
    tmp_path: Path,
    server: FaultyServer,
) -> None:
    options = text_options(tmp_path, server, str(tmp_path / "alone.db"))
    python.run("simulated", **options).store.close()
    alone = Counter(item_of(one) for one in server.requests)
    server.requests.clear()
    kept_rows(**{**options, "store": url})
    shutil.rmtree(tmp_path / "data")  # the store is all that workers have
    Path(options["prompt"]).unlink()

    async def together() -> list[Worked]:
        leaving, shared = asyncio.Event(), Store(url, create=False)

        def leave(tally: Any) -> None:
            if tally.done == 5:
                leaving.set()

        first = asyncio.create_task(work_async(store=shared, once=True, concurrency=2, stop=leaving, on_change=leave))
        await leaving.wait()
        found = [await work_async(store=shared, once=True, concurrency=3), await first]
        assert open_orders(shared) == []
        shared.close()
        return found

    found = asyncio.run(together())
    assert 5 <= found[1].tally.done <= 7
    assert sum(one.tally.done for one in found) == ITEMS
    assert Counter(item_of(one) for one in server.requests) == alone == Counter({f"q{n:03d}": 1 for n in range(ITEMS)})
    assert all("Of the trays: How many" in one.text for one in server.requests)
    assert content(url) == content(tmp_path / "alone.db")


def test_a_partition_ends_no_worker_and_lets_no_stale_answer_in(request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url")  # noqa: F811
    store, run = opened(url, ITEMS)
    with flaky_link(int(make_url(url).port or 0)) as link:
        far, _ = opened(make_url(url).set(port=link.port).render_as_string(hide_password=False), ITEMS)
        slow = ItemClaims(far, lease_s=1.0)
        asked_far: list[str] = []
        cut, mended = asyncio.Event(), asyncio.Event()

        class Cut(Scripted):
            """Loses the network while it has an answer for the sixth time."""

            async def answer(self, item: Item, view: Any) -> Answer:
                asked_far.append(item.id)
                if len(asked_far) == 6:
                    await asyncio.to_thread(link.cut)
                    cut.set()
                if cut.is_set() and not mended.is_set():
                    await mended.wait()
                    return Answer(item_id=item.id, text="from the far side")
                return say_two(item)

        async def both() -> None:
            far_side = asyncio.create_task(
                ask_all([job_of(far, run, Cut(say_two))], far, limits=Limits(concurrency=2), claims=slow)
            )
            await cut.wait()
            near = Scripted(say_two)
            claims = ItemClaims(store, lease_s=1.0)
            await ask_all([job_of(store, run, near)], store, limits=Limits(concurrency=2), claims=claims)
            link.mend()
            mended.set()
            await far_side

        asyncio.run(both())
    answers = store.answers(run)
    assert len(answers) == ITEMS
    assert {one.text for one in answers.values()} == {"2"}
    assert 1 <= slow.stale <= 2  # what was under way when the network went
    assert len(asked_far) <= 7  # what waited was not asked
    assert link.drops > 0


def test_what_a_worker_lacks_it_says_and_leaves_to_others(tmp_path: Path) -> None:
    rows = [
        f"q{number},Is it red?,{'yes' if number < 3 else 'no'},{'red' if number < 3 else 'blue'}.png"
        for number in range(6)
    ]
    (tmp_path / "questions.csv").write_text("\n".join(["id,question,answer,image", *rows]))
    there, here = tmp_path / "there", tmp_path / "here"
    for color in ("red", "blue"):
        there.mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), color).save(there / f"{color}.png")
    how: dict[str, Any] = {
        "data": tmp_path / "questions.csv",
        "media": there,
        "baselines": False,
        "cache": tmp_path / "frames",
    }
    store, alone = tmp_path / "runs.db", tmp_path / "alone.db"
    python.run(tmp_path / "questions.csv", "random", **{**how, "data": None}, store=alone).store.close()
    kept_rows(tmp_path / "questions.csv", system="random", **{**how, "data": None}, store=str(store))
    there.rename(tmp_path / "elsewhere")
    here.mkdir()
    for name in ("red.png", "blue.png"):
        shutil.copy(tmp_path / "elsewhere" / "red.png", here / name)
    found, said = worked(str(store), media=here)
    assert found.tally.done == 3
    why = "1 media lacking here, their questions were left to others: blue.png"
    assert said[-1] == f"{why} (another content)"
    (here / "blue.png").unlink()
    assert worked(str(store), media=here)[1][-1] == f"{why} (not found)"
    shutil.copy(tmp_path / "elsewhere" / "blue.png", here)
    assert worked(str(store), media=here)[0].tally.done == 3
    assert content(alone) == content(store)


def test_a_key_goes_to_no_server_that_only_the_store_names(
    tmp_path: Path, server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "runs.db")
    kept_rows(**text_options(tmp_path, server, store, 3))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    found, said = worked(store)
    assert (found.runs, found.tally.done, server.requests) == (0, 0, [])
    why = f"the key in OPENAI_API_KEY would go to {server.url}, which the store names: allow it by --base-url, or"
    assert said == [f"not joined: simulated (local / text-only): {why} unset the key"]
    refused = proctor("worker", "--store", store, "--once", OPENAI_API_KEY="secret")
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (
        1, "proctor: nothing could be joined (see above)",
    )  # fmt: skip
    done = proctor("worker", "--store", store, "--once", "--base-url", server.url, OPENAI_API_KEY="secret")
    assert (done.returncode, done.stdout) == (0, "Asked 3: 3 answered\n")


def test_the_key_of_another_provider_goes_to_no_such_server_either(
    tmp_path: Path, server: FaultyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    store = str(tmp_path / "runs.db")
    kept_rows(**text_options(tmp_path, server, store, 3) | {"model": "anthropic:claude-opus-4-5"})
    found, said = worked(store)
    assert (found.runs, server.requests) == (0, [])
    why = (
        f"the key for anthropic:claude-opus-4-5 would go to {server.url}, which the store names: allow it by --base-url"
    )
    assert said == [f"not joined: simulated (anthropic:claude-opus-4-5 / text-only): {why}"]


def with_order(store: str, order: Order, **changed: Any) -> None:
    """Puts a changed order into a store."""
    opened = Store(store)
    put_order(opened, order.model_copy(update=changed), [], [(run, 3) for run in opened.runs("simulated")])
    opened.close()


def test_an_order_by_somebody_else_is_read_and_never_believed(tmp_path: Path, server: FaultyServer) -> None:
    store = str(tmp_path / "runs.db")
    kept_rows(**text_options(tmp_path, server, store, 3))
    opened = Store(store)
    order, run = open_orders(opened)[0].order, opened.runs("simulated")[0]
    opened.close()
    for options, why in (
        ({"store": "postgresql://elsewhere"}, "store"),
        ({"timeout_s": "soon"}, "soon"),
        ({"max_frames": 0}, "max_frames"),
        ({"settings": {"temperature": 1}}, "system.model_settings.temperature 0 then, 1 now"),
        ({"settings": {"api_key": "x"}}, "looks like a secret"),
        ({"seed": 1}, "seed 0 then, 1 now"),
    ):
        with_order(store, order, options={**order.options, **options})
        found, said = worked(store)
        assert (found.runs, server.requests) == (0, []), options
        assert why in said[0]
    for changed, why in (
        ({"systems": ("mine.py:answer",)}, "mine.py:answer is code, which does not travel"),
        ({"systems": ("no-such",)}, "no-such"),
        ({"prompt": ("../../x", order.prompt[1] if order.prompt else "")}, "expected the name of a file"),
        ({"prompt": ("x.txt.j2", "0" * 64)}, "parcel 000000000000: found nothing"),
        ({"prompt": None}, "system.prompt"),
        ({"scorers": (("code", "elegance"),)}, "elegance is scored by code that comes with the files of simulated"),
    ):
        with_order(store, order, **changed)
        found, said = worked(store)
        assert (found.runs, server.requests) == (0, []), changed
        assert why in said[0]
    opened = Store(store)
    assert run.settings == opened.runs("simulated")[0].settings
    opened.close()


def test_a_parcel_of_another_content_is_a_damaged_store(tmp_path: Path, server: FaultyServer) -> None:
    path = str(tmp_path / "runs.db")
    kept_rows(**text_options(tmp_path, server, path, 3))
    store = Store(path)
    key = open_orders(store)[0].key
    with store.writing() as connection:
        connection.execute(update(schema.parcels).where(schema.parcels.c.sha256 == key).values(body="{}"))
    with pytest.raises(InputError, match="found another text, expected the text with this hash"):
        read_parcel(store, key)
    delete_runs(store, store.runs("simulated"))
    assert open_orders(store) == []
    store.close()


def test_an_order_survives_its_own_reading(tmp_path: Path) -> None:
    order = Order(benchmark="b", systems=("one",), options={"seed": 0}, left_out=("q1",), scorers=(("code", "x"),))
    assert Order.model_validate_json(order.model_dump_json()) == order
    with pytest.raises(ValueError, match="form"):
        Order.model_validate(json.loads(order.model_dump_json()) | {"form": 2})
