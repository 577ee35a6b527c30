"""`proctor run` as a process: who may share a store, how it stops, and what its exit code says."""

from __future__ import annotations

import json
import re
import signal
from collections import Counter
from pathlib import Path

import pytest

from proctor.cli import STOPPED
from proctor.core import Status
from proctor.runs import Store
from tests.support.faulty_server import Fault, FaultyServer, Request
from tests.support.forked import Program
from tests.support.program import proctor, start_proctor, wait_for
from tests.support.raw_server import completion, raw_server
from tests.support.text_folder import answer_tray, item_of, write_text_folder

ITEMS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_text_folder(tmp_path / "data", ITEMS)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def command(folder: Path, store: Path, server: FaultyServer, *more: str) -> list[str | Path]:
    return [
        "run", "simulated", "--data", folder, "--store", store, "--condition", "text-only",
        "--base-url", server.url, *(more or ("--model", "local")),
    ]  # fmt: skip


def statuses(store: Path, system: str = "local") -> Counter[Status]:
    opened = Store(store, create=False)
    (run,) = [run for run in opened.runs("simulated") if run.system == system]
    found = Counter(answer.status for answer in opened.answers(run).values())
    opened.close()
    return found


def recorded(store: Path) -> set[str]:
    opened = Store(store, create=False)
    (run,) = [run for run in opened.runs("simulated") if run.system == "local"]
    found = opened.settled(run)
    opened.close()
    return found


def one_line(stderr: str) -> str:
    """The last line, which is the reason; everything before it is notes."""
    lines = [line for line in stderr.splitlines() if line]
    assert "Traceback" not in stderr
    return lines[-1]


def read_until(process: Program, words: str) -> None:
    """Reads on standard error until there is a line with these words, or the process has ended."""
    assert any(words in line for line in process.stderr)


def test_two_processes_share_a_store_for_two_models(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, latency_s=0.05) as server:
        both = [start_proctor(*command(folder, store, server, "--model", name)) for name in ("alpha", "beta")]
        ends = [process.communicate(timeout=600) for process in both]
        asked = Counter((request.model, item_of(request)) for request in server.requests)
    assert [process.returncode for process in both] == [0, 0], ends
    assert len(asked) == 2 * ITEMS
    assert set(asked.values()) == {1}
    for name in ("alpha", "beta"):
        assert statuses(store, name) == {Status.ANSWERED: ITEMS}


def test_the_same_run_twice_is_refused_in_one_line(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, holds_after=2) as server:
        first = start_proctor(*command(folder, store, server), "--concurrency", "1")
        wait_for(lambda: server.count >= 3, first)
        second = proctor(*command(folder, store, server))
        assert first.poll() is None, "the first run was over before the second one began"
        server.release()
        said, complained = first.communicate(timeout=600)
        asked = Counter(map(item_of, server.requests))
    assert second.returncode == 1
    assert second.stdout == ""
    reason = one_line(second.stderr)
    assert reason.startswith(f"proctor: {store}: run of local under text-only: found process {first.pid} on ")
    assert reason.endswith("at work on it, expected one process a run: wait for it, or stop it")
    assert (first.returncode, f"Asked {ITEMS}: {ITEMS} answered; in {store}\n") == (0, said), complained
    assert set(asked.values()) == {1}


def test_ctrl_c_lets_answers_come_in_and_the_next_run_goes_on(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, holds_after=15) as server:
        process = start_proctor(*command(folder, store, server))
        wait_for(lambda: server.count >= 20, process)
        process.send_signal(signal.SIGINT)
        read_until(process, "stopping:")
        server.release()
        said, complained = process.communicate(timeout=600)
        there, asked = recorded(store), {item_of(request) for request in server.requests}
        assert process.returncode == 130
        assert 20 <= len(there) < ITEMS
        assert there == asked, "an answer that was under way was lost"
        assert said == f"Asked {len(there)}: {len(there)} answered; in {store}\n"
        left = ITEMS - len(there)
        assert one_line(complained) == f"{left} items still to be asked: run the same command again."

        again = proctor(*command(folder, store, server))
        assert again.returncode == 0
        assert again.stdout == f"Asked {left}: {left} answered; in {store}\n"
        assert f"{len(there)} answers there already; {left} to ask." in again.stderr
        assert set(Counter(map(item_of, server.requests)).values()) == {1}
    assert statuses(store) == {Status.ANSWERED: ITEMS}


def test_a_second_ctrl_c_stops_at_once(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, holds_after=0) as server:
        process = start_proctor(*command(folder, store, server))
        wait_for(lambda: server.count >= 8, process)
        process.send_signal(signal.SIGINT)
        read_until(process, "stopping: waiting for the answers under way (again to stop at once)")
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=600)
    assert process.returncode == 130
    assert one_line(complained) == STOPPED
    assert recorded(store) == set()


def test_failures_that_stay_are_shown_and_exit_with_3(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, faults=1.0, kinds=[Fault.SERVER_ERROR]) as server:
        arguments = [*command(folder, store, server), "--retries", "0"]
        broken = proctor(*arguments)
        assert broken.returncode == 3
        assert statuses(store).keys() == {Status.FAILED}
        failed = statuses(store)[Status.FAILED]
        assert broken.stdout == f"Asked {failed}: {failed} failed; in {store}\n"
        assert "gave up after 50 failures in a row: local: HTTP 500: The server had an error" in broken.stderr
        assert one_line(broken.stderr) == (
            f"{failed} answers failed (local: HTTP 500: The server had an error): "
            "run the same command again to ask them again."
        )
        server.faults = 0.0
        healed = proctor(*arguments)
    assert healed.returncode == 0
    assert healed.stdout == f"Asked {ITEMS}: {ITEMS} answered; in {store}\n"
    assert statuses(store) == {Status.ANSWERED: ITEMS}


def test_answers_that_cannot_be_read_are_counted_with_an_example(folder: Path, store: Path) -> None:
    def reply(request: Request) -> str:
        return "I can't say." if int(item_of(request)[1:]) % 3 else answer_tray(request)

    with FaultyServer(reply) as server:
        done = proctor(*command(folder, store, server))
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "can't be read" in line]
    assert re.match(rf"40 of {ITEMS} can't be read and count as wrong, for example q\d\d\d: .*I can't say", said)


def test_replies_that_the_token_limit_cut_off_are_counted(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, script=[Fault.LENGTH] * 3) as server:
        done = proctor(*command(folder, store, server), "--concurrency", "1")
    assert done.returncode == 0, done.stderr
    told = f"3 of {ITEMS} replies were cut off by the model's token limit (--settings max_tokens=…)"
    assert told in done.stderr.splitlines()
    item = item_of(server.requests[0])
    shown = proctor("show", "simulated", item, "--system", "local", "--store", store)
    assert "cut off by the model's token limit" in shown.stdout, shown.stderr


def test_thoughts_in_the_text_and_corrections_are_counted(folder: Path, store: Path) -> None:
    def reply(request: Request) -> str:
        number, said = int(item_of(request)[1:]) % 3, answer_tray(request)
        return f"<think>{said}?</think>{said}" if number == 1 else said

    with FaultyServer(reply) as server:
        done = proctor(*command(folder, store, server))
    assert done.returncode == 0, done.stderr
    assert (
        f"20 of {ITEMS} replies had thoughts in their text; they were left out (start the server with --reasoning-parser)"
    ) in done.stderr.splitlines()
    assert "correct their answer" not in done.stderr


def test_failures_are_grouped_by_cause(folder: Path, store: Path) -> None:
    script = [Fault.SERVER_ERROR] * 7 + [Fault.UNAVAILABLE] * 3
    with FaultyServer(answer_tray, script=script) as server:
        done = proctor(*command(folder, store, server), "--retries", "0", "--concurrency", "1")
    assert done.returncode == 3
    said = done.stderr.splitlines()
    assert "7 × local: HTTP 500: The server had an error" in said
    assert "3 × local: HTTP 503: The engine is loading" in said
    assert [line[:3] for line in said if " × " in line] == ["7 ×", "3 ×"]  # the most frequent first
    assert "10 answers failed (see above): run the same command again to ask them again." in said


def test_a_server_that_rejects_all_alike_stops_after_a_few(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, faults=1.0, kinds=[Fault.NO_REASON]) as server:
        done = proctor(*command(folder, store, server), "--concurrency", "2")
        assert done.returncode == 1
        said = one_line(done.stderr)
        assert said.startswith("proctor: local: HTTP 400: Bad request (the same for the first ")
        assert said.endswith("items asked, and no answer: change the settings or the server)")
        assert "again" not in said
        assert statuses(store)[Status.FAILED] == len(server.requests) <= 6
        server.faults = 0.0
        assert proctor(*command(folder, store, server)).returncode == 0
    assert statuses(store) == {Status.ANSWERED: ITEMS}


def test_what_the_server_would_reject_again_is_not_advised_again(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, script=[None, Fault.NO_REASON, Fault.NO_REASON]) as server:
        done = proctor(*command(folder, store, server), "--concurrency", "1")
    assert done.returncode == 3
    assert one_line(done.stderr) == (
        "2 answers failed, since the server rejected the request (for example q020: local: HTTP 400: Bad request): "
        "the same request is rejected again; see what it is by proctor show --prompt."
    )
    assert "again to ask" not in done.stderr


def test_the_model_that_answered_is_shown_where_it_is_another(folder: Path, store: Path) -> None:
    reply = completion("Answer: 1").replace(b'"model": "m"', b'"model": "tiny-model-1b"')
    with raw_server(lambda _: reply) as url:
        asked: list[str | Path] = ["run", "simulated", "--data", folder, "--store", store, "--condition", "text-only"]
        done = proctor(*asked, "--model", "medical-vlm-72b", "--base-url", url)
    assert done.returncode == 0, done.stderr
    note = "medical-vlm-72b: asked medical-vlm-72b, answered by tiny-model-1b"
    assert note in done.stdout.splitlines()
    shown = proctor("results", "simulated", "--store", store, "--draws", "100")
    assert note in shown.stderr
    (row,) = [
        row for row in json.loads(proctor("list", "runs", "--store", store, "--format", "json").stdout) if row["model"]
    ]
    assert (row["model"], row["answered_by"]) == ("medical-vlm-72b", "tiny-model-1b")
    page = store.parent / "report.html"
    assert proctor("report", "simulated", "--store", store, "--out", page, "--draws", "100").returncode == 0
    assert f"{note}." in page.read_text(encoding="utf-8")


def test_no_access_stops_before_anything_is_recorded(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray, faults=1.0, kinds=[Fault.UNAUTHORIZED]) as server:
        done = proctor(*command(folder, store, server))
    assert done.returncode == 1
    assert one_line(done.stderr).startswith("proctor: local: HTTP 401: Incorrect API key provided")
    assert statuses(store) == {}


def test_a_changed_benchmark_is_refused_before_a_call_is_paid(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        assert proctor(*command(folder, store, server), "--limit", "5").returncode == 0
        path = folder / "questions.json"
        changed = json.loads(path.read_text())
        changed["questions"][7]["answer"] += 1
        path.write_text(json.dumps(changed))
        paid = server.count
        done = proctor(*command(folder, store, server))
        assert server.count == paid == 5
    assert done.returncode == 1
    reason = one_line(done.stderr)
    assert "changed: 1 item, first q007" in reason
    assert reason.endswith("expected the same items: use another --store for the changed benchmark")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--model", "local", "--settings", "temperatur=0"], 1, "model setting 'temperatur'"),
        (["--model", "local", "--condition", "vidoe"], 1, "unknown condition 'vidoe': expected one of "),
        (["--system", "randm"], 1, "unknown system 'randm': expected one of "),
        ([], 2, "Nothing to ask. Give --system NAME"),
        (["--model", "local", "--concurrency", "0"], 2, "--concurrency 0 can't be used: give at least 1."),
    ],
)
def test_bad_arguments_write_nothing(arguments: list[str], code: int, reason: str, folder: Path, store: Path) -> None:
    base: list[str | Path] = [
        "run",
        "simulated",
        "--data",
        folder,
        "--store",
        store,
        "--base-url",
        "http://127.0.0.1:9/v1",
    ]
    conditions = [] if "--condition" in arguments else ["--condition", "text-only"]
    done = proctor(*base, *conditions, *arguments)
    assert done.returncode == code
    assert reason in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not store.exists()


def test_a_server_that_moved_goes_on_with_the_run_and_is_recorded(folder: Path, store: Path) -> None:
    urls = []
    for count in ("20", "60"):
        with FaultyServer(answer_tray) as server:
            urls.append(server.url)
            done = proctor(*command(folder, store, server), "--limit", count)
        assert done.returncode == 0, done.stderr
    assert "20 answers there already; 40 to ask." in done.stderr
    opened = Store(store, create=False)
    (run,) = [run for run in opened.runs("simulated") if run.system == "local"]
    opened.close()
    assert run.settings["servers"] == urls
    assert statuses(store) == {Status.ANSWERED: ITEMS}


def test_several_servers_are_one_model_and_one_of_them_may_die(folder: Path, store: Path, tmp_path: Path) -> None:
    with FaultyServer(answer_tray) as one, FaultyServer(answer_tray) as two:
        urls = [one.url, two.url]
        command_of_two = [*command(folder, store, one), "--base-url", two.url, "--retries", "0"]
        assert proctor(*command_of_two, "--limit", "20").returncode == 0
        assert min(one.count, two.count) > 0
        alone = tmp_path / "alone.db"
        assert proctor(*command(folder, alone, one)).returncode == 0
    with FaultyServer(answer_tray, port=int(urls[1].split(":")[2].split("/")[0])) as two:
        gone = proctor(*command_of_two)
        assert f"nobody answers at {urls[0]}" in gone.stderr  # before anything is asked, which may be a typing error
        done = proctor(*command(folder, store, two))  # the same run
    assert done.returncode == 0, done.stderr
    assert statuses(store) == {Status.ANSWERED: ITEMS}
    opened = Store(store, create=False)
    (run,) = [run for run in opened.runs("simulated") if run.system == "local"]
    opened.close()
    assert run.settings["servers"] == urls
    hashes = [proctor("results", "simulated", "--hash", "--store", one) for one in (store, alone)]
    assert hashes[0].stdout == hashes[1].stdout != ""


def test_other_settings_are_taken_while_nothing_is_answered_and_refused_from_then_on(folder: Path, store: Path) -> None:
    def run(server: FaultyServer, temperature: str) -> tuple[int, str]:
        done = proctor(
            *command(folder, store, server), "--limit", "5", "--retries", "0", "--settings", f"temperature={temperature}"
        )  # fmt: skip
        return done.returncode, one_line(done.stderr)

    with FaultyServer(answer_tray, script=[Fault.SERVER_ERROR] * 5) as server:
        assert run(server, "0.1")[0] == 3
        assert statuses(store) == {Status.FAILED: 5}
        assert run(server, "0.2")[0] == 0
        code, said = run(server, "0.3")
    assert code == 1
    assert "other settings (system.model_settings.temperature 0.2 then, 0.3 now)" in said
    assert "base_url" not in said
    assert {request.body["temperature"] for request in server.requests[5:]} == {0.2}


def test_a_server_that_is_not_there_is_named_at_once(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        pass
    done = proctor(*command(folder, store, server))
    assert done.returncode == 1
    assert one_line(done.stderr).startswith(f"proctor: nobody answers at {server.url} (")
    assert one_line(done.stderr).endswith(": is the server running, and is --base-url right?")
    assert not store.exists()


@pytest.mark.parametrize("option", ["--model", "--system"])
def test_who_is_named_twice_is_refused(option: str, folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        done = proctor(*command(folder, store, server, option, "random", option, "random"))
    assert (done.returncode, server.count) == (2, 0)
    assert f"{option} random is given twice: give each once." in " ".join(done.stderr.split())


def test_two_systems_of_one_name_are_refused_before_anything_is_asked(tmp_path: Path, store: Path) -> None:
    for number, said in enumerate(("yes", "no")):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}" / "agent.py").write_text(f"async def ask(question):\n    return {said!r}\n", "utf-8")
    questions = tmp_path / "tiny.csv"
    questions.write_text("id,question,answer,patient\nq1,Is it?,yes,p1\nq2,Is it?,yes,p2\n", "utf-8")
    both = [word for number in (0, 1) for word in ("--system", f"{tmp_path}/v{number}/agent.py:ask")]
    command = ("run", questions, "--condition", "text-only", "--store", store)
    done = proctor(*command, *both)
    assert done.returncode == 2
    assert one_line(done.stderr) == (
        "proctor: Two systems would both be stored as 'ask'. Run them one after the other, with another --name."
    )
    assert not store.exists()
    for row, name in ((both[:2], "first"), (both[2:], "second")):
        proctor(*command, *row, "--name", name).check_returncode()
    made = Store(store)
    told = {run.system: {one.text for one in made.answers(run).values()} for run in made.runs("tiny")}
    assert (told["first"], told["second"]) == ({"yes"}, {"no"})


def test_an_address_without_v1_is_hinted_at(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        url = server.url.removesuffix("/v1")
        done = proctor("run", "simulated", "--data", folder, "--store", store, "--condition", "text-only",
                       "--model", "local", "--base-url", url)  # fmt: skip
    assert done.returncode == 1
    assert one_line(done.stderr).endswith(f"at {url}: did you mean --base-url {url}/v1?")


def costs(store: Path, system: str = "local") -> set[float | None]:
    opened = Store(store, create=False)
    (run,) = [run for run in opened.runs("simulated") if run.system == system]
    found = {answer.usage.cost_usd for answer in opened.answers(run).values()}
    assert "price" not in json.dumps(run.settings)
    opened.close()
    return found


def test_an_own_price_is_recorded_and_changes_no_run(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        free = proctor(*command(folder, store, server), "--limit", "5")
        assert (free.returncode, costs(store)) == (0, {None})
        for limit, price in (("10", "1000/0"), ("15", "0/0")):
            done = proctor(*command(folder, store, server), "--limit", limit, "--price", price)
            assert done.returncode == 0, done.stderr
        each = command(folder, store, server, "--model", "cheap", "--model", "dear", "--price", "0/0", "--price", "0/9")
        assert proctor(*each, "--limit", "1").returncode == 0
        three = proctor(*each, "--price", "1/1")
    paid = {cost for cost in costs(store) if cost}
    assert None in costs(store)
    assert 0.0 in costs(store)
    assert len(paid) == 1
    assert costs(store, "cheap") == {0.0}
    assert costs(store, "dear") not in ({0.0}, {None})
    assert three.returncode == 2
    assert (
        one_line(three.stderr)
        == "proctor: --price is given 3 times: give it once for all models, or once for each (2)."
    )


def test_a_price_that_is_none_is_told_before_anything_is_written(folder: Path, store: Path) -> None:
    with FaultyServer(answer_tray) as server:
        done = proctor(*command(folder, store, server), "--price", "cheap")
        assert server.count == 0
    expected = "give INPUT/OUTPUT in dollars for a million tokens, such as 0.15/0.60."
    assert (done.returncode, one_line(done.stderr)) == (2, f"proctor: --price 'cheap' can't be used: {expected}")
    assert not store.exists()
