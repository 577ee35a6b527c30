"""The pages of a view: what each shows, its data, what an address may ask for."""

from __future__ import annotations

import csv
import io
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import JsonValue
from starlette.testclient import TestClient

from proctor.core import Answer, Score
from proctor.judges import UNRESOLVED
from proctor_web.view.compare import Names, compute_pair
from proctor_web.view.judges import compute_judges
from proctor_web.view.overview import compute_board
from proctor_web.view.server import OpenView
from tests.support.repeated_store import repeated_store
from tests.support.report_store import a_store
from tests.support.view_site import opened

ONE = "/b/toy/answers/q007/guesser/video/0"


def texts(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def links(page: str, part: str) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"]*)"', page) if part in unescape(one)]


def data(client: TestClient, address: str) -> Any:
    answer = (
        client.get(address, params={"format": "json"}) if "?" not in address else client.get(f"{address}&format=json")
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_overview_shows_each_run_with_its_counts(client: TestClient) -> None:
    page = client.get("/b/toy").text
    assert page.count('class="bar"') == 12
    assert "4 runs of baselines, done" in texts(page), "these are folded"
    assert "47 / 48" in texts(page)
    assert "stopped, 1 to do" in texts(page)
    rows = {(row["system"], row["condition"]): row for row in data(client, "/b/toy")["runs"]}
    looker = rows["looker", "video"]
    assert (looker["expected"], looker["settled"], looker["failed"], looker["left"]) == (48, 47, 1, 1)
    assert looker["cost_usd"] == pytest.approx(0.048)
    assert looker["state_right"] + looker["state_wrong"] + looker["state_timed_out"] + looker["state_failed"] == 48
    assert not looker["working"]
    assert rows["random", "video"]["cost_usd"] is None, "no request was made"


def test_what_needs_somebody_says_why_and_leads_to_the_answers(client: TestClient) -> None:
    page = client.get("/b/toy").text
    said = texts(page)
    assert "4 answers of looker under black, shuffled, text-only, video failed : 4 × connection reset ." in said
    assert "Not counted as wrong. The same proctor run command, given again, asks them again." in said
    (link,) = links(page, "result=failed")
    assert data(client, link)["answers"] == 4
    (refused,) = links(page, "result=refused")
    assert {row["state"] for row in data(client, refused)["rows"]} == {"refused"}


def test_answers_that_were_cut_off_are_told_apart(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = store.start_run("toy", "endless", "video", {})
    cut: dict[str, JsonValue] = {"finish_reason": "length", "cut_off": True}
    problem = "expected one of the letters, found 'First, I'"
    whole: dict[str, JsonValue] = {"finish_reason": "stop", "cut_off": False}
    for number, extra in ((0, cut), (1, cut), (2, whole)):
        answer = Answer(item_id=f"q{number:03d}", text="First, I", problem=problem, extra=extra)
        store.write(run, [(answer, [Score(item_id=answer.item_id, metric="accuracy", value=0.0)])])
    read = Answer(item_id="q003", text="Answer: D, since", parsed="D", extra=cut)
    store.write(run, [(read, [Score(item_id="q003", metric="accuracy", value=1.0)])])
    with opened(tmp_path / "toy.db") as (_, client):
        page = client.get("/b/toy").text
        said = texts(page)
        assert "2 answers of endless under video were cut off : 2 × expected one of the letters, found … ." in said
        assert "1 answer of endless under video can't be read" in said
        assert "the model's token limit ended the reply before its answer" in said
        (link,) = [one for one in links(page, "result=cut_off") if "endless" in one]
        found = data(client, link)
        assert [row["state"] for row in found["rows"]] == ["cut_off", "cut_off"]
        assert '<option value="cut_off" selected>cut off</option>' in client.get(link).text
        wrong = data(client, "/b/toy/answers?system=endless&result=wrong")
        assert wrong["answers"] == 3, "they are wrong, as the others that can't be read"
        row = next(row for row in data(client, "/b/toy")["runs"] if row["system"] == "endless")
        assert (row["state_cut_off"], row["state_unreadable"], row["state_right"]) == (2, 1, 1)
        for name in ("q000", "q003"):
            one = texts(client.get(f"/b/toy/answers/{name}/endless/video/0").text)
            assert "Cut off the model's token limit ended the reply" in one
        assert "✗ cut off, counts as wrong" in texts(client.get("/b/toy/answers/q000/endless/video/0").text)
        assert "cut off, counts as wrong 2" in texts(client.get(f"/r/{run.id}").text)


def test_the_board_is_that_of_the_report(seen: tuple[OpenView, TestClient]) -> None:
    view, client = seen
    board = compute_board(view.view, "toy")
    view.view.desk.get(("board", "toy"), view.view.state("toy").settled_stamp, lambda: board, 60)
    page = client.get("/b/toy").text
    assert f"<h1><bdi>{board.story.headline}</bdi></h1>" in page
    assert board.html in page
    assert board.leader == ("looker", "video")
    assert 'class="chart' in board.html
    assert "style=" not in page, "the policy allows no inline style"
    for loss in links(page, "result=wrong"):
        rows = data(client, loss)["rows"]
        assert rows
        assert {(row["system"], row["condition"]) for row in rows} == {("looker", "video")}


def test_a_filter_is_an_address(client: TestClient) -> None:
    found = data(client, "/b/toy/answers?system=guesser&condition=video&result=wrong&phase=repair")
    assert found["answers"] == len(found["rows"]) > 3
    assert {(row["system"], row["condition"]) for row in found["rows"]} == {("guesser", "video")}
    assert {row["state"] for row in found["rows"]} <= {"wrong", "unreadable", "refused"}
    assert all(int(row["item"][1:]) % 2 for row in found["rows"]), "repair is every second item"
    page = client.get("/b/toy/answers?system=guesser&condition=video&result=wrong&phase=repair").text
    assert f"{found['answers']} of 576 answers" in texts(page)
    for name, value in (("system", "guesser"), ("phase", "repair"), ("result", "wrong")):
        chosen = re.search(rf'<select name="{name}".*?</select>', page, re.DOTALL)
        assert chosen is not None
        assert f'<option value="{value}" selected>' in chosen[0]


def test_pages_of_a_list_follow_each_other_without_a_gap(client: TestClient) -> None:
    address, found = "/b/toy/answers?result=wrong", []
    every = data(client, f"{address}&sort=system")["rows"]
    address += "&sort=system"
    while True:
        page = client.get(address).text
        found += re.findall(r'data-key="([^"]+)"', page)
        more = re.search(r'<a href="([^"]+)" id="more">', page)
        if more is None:
            break
        address = unescape(more[1])
        assert dict(parse_qsl(urlsplit(address).query))["sort"] == "system"
    assert len(found) == len(set(found)) == len(every) > 100


def test_an_opened_answer_has_all_that_belongs_to_it(client: TestClient) -> None:
    page = client.get(f"{ONE}?result=right").text
    said = texts(page)
    assert '<h1 dir="auto">Describe step 7.</h1>' in page
    assert "Reference the clip is placed" in said
    assert "By its tip" not in said
    assert "The store has no record of what was shown." in said
    assert "Helpful (0–2)" in said
    assert "contradiction" in said, "the flag of the judgement"
    assert "explanation" in said
    assert "the-judge" in said
    assert "$0.0010 · 900 tokens in, 20 out" in said
    assert re.search(r"\d+ of \d+", said)
    assert data(client, ONE)["opened"]["runs"][0]["system"] == "guesser"


def test_neighbours_are_those_of_the_filter(client: TestClient) -> None:
    address = "/b/toy/answers?system=looker&condition=video&result=wrong"
    rows = [row["item"] for row in data(client, address)["rows"]]
    walked, page = [], client.get(address).text
    while True:
        walked.append(re.search(r'data-link="/b/toy/answers/(q\d+)/', page)[1])  # type: ignore[index]
        following = re.search(r'data-next="([^"]*)"', page)
        if following is None or not following[1]:
            break
        page = client.get(unescape(following[1])).text
    assert walked == rows


def test_another_run_stands_beside(client: TestClient) -> None:
    page = client.get(f"{ONE}?beside=random%2Fblack").text
    assert page.count('<article class="ans">') == 2
    assert '<option value="random/black" selected>' in page
    assert client.get(f"{ONE}?beside=nobody%2Fvideo").status_code == 404


def test_two_runs_are_compared_with_interval_and_cells(client: TestClient) -> None:
    address = "/b/toy/compare?a=guesser%2Fvideo&b=random%2Fvideo"
    found = data(client, address)
    for _ in range(200):  # the figures come from another thread
        if found["comparison"] is not None:
            break
        found = data(client, address)
    comparison = found["comparison"]
    assert comparison["metric"] == "accuracy"
    assert comparison["n"] == 42
    assert comparison["ci_low"] < comparison["difference"] < comparison["ci_high"]
    assert sum(found["cells"].values()) == 48
    page = client.get(address).text
    assert re.search(
        r"Accuracy: guesser minus random is \+\S+ pts \(95 % CI \S+ to \S+; p [<\d. ]+, adjusted", texts(page)
    )
    said = texts(page)
    assert "guesser and random under video" in said
    assert "above 0, guesser is better." in said
    only, other = found["cells"]["only-a"], found["cells"]["only-b"]
    assert f"{only} only guesser right {other} only random right" in said
    assert f"{only} items, only guesser right ." in said
    assert said.count("guesser ✓ right :") == said.count("random ✗ wrong :") == only, (
        "each side says whose it is, and what"
    )
    conditions = texts(client.get("/b/toy/compare?a=guesser%2Fvideo&b=guesser%2Fblack").text)
    assert "guesser under video and under black" in conditions
    assert "only video right" in conditions
    for cell, count in found["cells"].items():
        assert len(data(client, f"{address}&cell={cell}")["rows"]) == min(50, count)
    swap = [link for link in links(page, "cell=only-b") if dict(parse_qsl(urlsplit(link).query))["a"] == "random/video"]
    swapped = data(client, swap[0])
    assert (swapped["a"], swapped["cells"]["only-b"]) == ("random/video", found["cells"]["only-a"])


def test_a_run_that_lacks_answers_has_both_readings(seen: tuple[OpenView, TestClient]) -> None:
    view = seen[0].view
    index = view.state("toy").index
    pair = compute_pair(view, index, index.column("looker", "video"), index.column("guesser", "video"))
    assert pair.comparison is not None
    wrong, excluded = pair.comparison.if_wrong.value, pair.comparison.if_excluded.value
    assert wrong is not None
    assert excluded is not None
    said = f"+{100 * wrong:.1f} pts with missing answers as wrong and +{100 * excluded:.1f} pts without them"
    assert said in pair.sentence(Names("looker", "guesser", ""))


def test_items_that_few_have_right_come_first(client: TestClient) -> None:
    found = data(client, "/b/toy/items")
    shares = [row["right"] / (row["right"] + row["wrong"]) for row in found["rows"]]
    assert found["items"] == 48
    assert shares == sorted(shares)
    assert {row["right"] + row["wrong"] + row["missing"] for row in found["rows"]} == {2}, "two systems, under video"
    every = data(client, "/b/toy/items?system=random&system=looker&condition=black&condition=video&sort=easiest")
    assert {row["right"] + row["wrong"] + row["missing"] for row in every["rows"]} == {4}
    page = client.get("/b/toy/items/q000").text
    assert page.count("data-row") == 12
    assert "✓ key" in texts(page)


def test_a_run_has_its_settings_and_how_answers_ended(client: TestClient) -> None:
    page = texts(client.get("/r/1").text)
    assert "looker / video" in page
    assert "looker was run by hand" in page
    assert "timed out, counts as wrong 1" in page


def test_csv_is_safe_and_json_is_whole(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/b/toy/answers?format=csv&system=looker").text)))
    assert len(rows) == 192
    assert {row["system"] for row in rows} == {"looker"}
    for address in ("/b/toy", "/b/toy/items", "/b/toy/compare"):
        assert len(client.get(f"{address}?format=csv").text.splitlines()) > 1, address
    assert client.get("/b/toy?format=xml").status_code == 404


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/nope", "address: found /nope, expected a page of this view"),
        ("/b/none", "benchmark: found 'none', expected one of toy"),
        ("/b/toy/nope", "expected a page of this view"),
        ("/r/99", "run: found 99, expected the number of a run in this store"),
        ("/b/toy/answers?nonsense=1", "filter: found 'nonsense', expected one of system"),
        ("/b/toy/answers?system=nobody", "system: found 'nobody', expected one of guesser"),
        ("/b/toy/answers?result=rigth", "result: found 'rigth', expected one of right"),
        ("/b/toy/answers?sort=random", "sort: found 'random', expected one of item"),
        ("/b/toy/answers/q000/looker/video", "expected ITEM/SYSTEM/CONDITION/REPETITION"),
        ("/b/toy/answers/q000/looker/video/9", "run: found 'looker / video, repetition 9'"),
        ("/b/toy/answers/q999/looker/video/0", "item: found 'q999', expected an item of toy"),
        ("/b/toy/compare?a=x&b=y", "run: found 'x', expected one of"),
        ("/b/toy/answers?q=" + "x" * 501, "q: found 501 characters, expected at most 500"),
        ("/b/toy/answers?part=../../base", "part: found '../../base', expected one of"),
    ],
)
def test_what_is_not_there_is_one_line(client: TestClient, address: str, said: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert said in texts(answer.text)
    plain = client.get(address, headers={"accept": "*/*"})
    assert said in plain.text
    assert "\n" not in plain.text


def test_addresses_that_nobody_writes_do_no_harm(client: TestClient) -> None:
    odd = ("/b/toy/answers?after=x.y.z", "/b/toy/answers?after=1.2", "/b/toy/answers?after=-1.-1.-1", "/b/toy/items?after=-3",
           "/b/toy/answers?after=99999999999.1.0", "/b//answers", "//", "/b/%2e%2e/answers", "/b/toy/picture/q000/looker/video/0/x/y",
           "/b/toy/picture/q000/looker/video/0/99999/9", "/b/toy/answers?q=%00", "/b/toy/answers?q=%25%5C_", "/b/toy/items/%FF",
           "/static/../app.py", "/static/%2e%2e/app.py", "/live?b=%00", "/r/%E2%82%AC")  # fmt: skip
    for address in odd:
        assert client.get(address).status_code in {200, 404}, address


def test_scorers_are_counted_and_compared(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    run = next(run for run in store.runs("toy") if (run.system, run.condition) == ("looker", "video"))
    given = {row.item_id: row.value for row in store.score_rows(run, metric="helpful")}
    second = [
        Score(item_id=name, metric="helpful", scorer="another", value=2.0 if number else 2.0 - value)
        for number, (name, value) in enumerate(given.items())
    ]
    store.add_scores(run, second)
    with opened(tmp_path / "toy.db") as (view, _):
        found = compute_judges(view.view, "toy")
    helpful = next(each for each in found if each.metric.startswith("Helpful"))
    assert [(one.scorer, one.n) for one in helpful.scorers] == [("another", len(given)), ("the-judge", 12 * 6)]
    equal = sum(value == score.value for value, score in zip(given.values(), second, strict=True)) / len(given)
    (pair,) = helpful.pairs
    assert (pair.first, pair.second, pair.n, pair.share) == ("another", "the-judge", len(given), equal)
    assert pair.ci_low is not None
    assert pair.ci_high is not None
    assert pair.ci_low < equal < pair.ci_high
    assert helpful.matrix == [("another", [None, pair]), ("the-judge", [pair, None])]
    assert "Krippendorff's alpha" in helpful.sentence
    assert {one.metric.name for each in found for one in each.scorers} == {"accuracy", "helpful"}


def test_repetitions_that_differ_are_counted_and_found(tmp_path: Path) -> None:
    said = {"steady": "AAA", "flips": "ABA", "other": "BCB", "unread": "-B-", "waits": "A!."}
    repeated_store(tmp_path, said).close()
    with opened(tmp_path / "again.db") as (view, client):
        board = compute_board(view.view, "again")
        view.view.desk.get(("board", "again"), view.view.state("again").settled_stamp, lambda: board, 60)
        (one,) = data(client, "/b/again")["repetitions"]
        assert (one["system"], one["repetitions"]) == ("m", 3)
        assert (one["answers"][0], one["answers"][2:]) == ("75.0 %", [4, 3]), "of items with two answers"
        assert (one["results"][0], one["results"][2:]) == ("25.0 %", [4, 3])
        page = client.get("/b/again").text
        assert "Answers differ 95 % CI Of items Results differ" in texts(page)
        answers, results = (unescape(link) for link in links(page, "differ="))
        assert {row["item"] for row in data(client, answers)["rows"]} == {"flips", "other", "unread"}
        assert {row["item"] for row in data(client, results)["rows"]} == {"flips"}
        assert [row["state"] for row in data(client, results)["rows"]] == ["right", "wrong", "right"]
        chosen = re.search(r'<select name="differ".*?</select>', client.get(results).text, re.DOTALL)
        assert chosen is not None
        assert '<option value="result" selected>results differ</option>' in chosen[0]
        assert [row["item"] for row in data(client, "/b/again/items?differ=result")["rows"]] == ["flips"]
        assert client.get("/b/again/answers?differ=reply").status_code == 404
        assert "repetition 1 and repetition 2 of m under video" in texts(
            client.get("/b/again/compare?a=m%2Fvideo&b=m%2Fvideo%2F1").text
        )


def test_a_matrix_says_who_scored_which_run_and_what_has_no_verdict(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    runs = {(run.system, run.condition): run for run in store.runs("toy")}
    first = [row.item_id for row in store.score_rows(runs["looker", "video"], metric="helpful")]
    store.declare_metrics("toy", [UNRESOLVED])
    given = {name: Score(item_id=name, metric="helpful", scorer="second", value=2.0) for name in first}
    verdicts = ["no verdict", "no verdict", "tie", "resolved"]
    scores = [given[name] for name in first[3:4]]
    scores += [
        Score(item_id=name, metric="unresolved", scorer="second", value=float(label != "resolved"), label=label)
        for name, label in zip(first, verdicts, strict=False)
    ]
    store.add_scores(runs["looker", "video"], scores)
    store.add_scores(runs["guesser", "black"], list(given.values()))
    with opened(tmp_path / "toy.db") as (view, client):
        found = compute_judges(view.view, "toy")
        helpful = next(each for each in found if each.metric.startswith("Helpful"))
        rows = {
            (run.system, run.condition): [one and (one.scored, one.answers, one.waiting) for one in cells]
            for run, cells in helpful.runs
        }
        assert helpful.names == ["second", "the-judge"]
        assert rows["looker", "video"] == [(1, 6, 2), (6, 6, 0)], "three have no verdict, two were not judged"
        assert rows["guesser", "black"] == [(6, 6, 0), (6, 6, 0)]
        assert rows["random", "video"] == [(0, 6, 6), (6, 6, 0)]
        causes = {(scorer, cause): (count, systems) for scorer, cause, count, systems, _ in helpful.causes}
        assert causes == {
            ("second", "no judgement"): (62, "guesser, looker, random"),
            ("second", "no verdict"): (2, "looker"),
            ("second", "tie"): (1, "looker"),
        }
        accuracy = next(each for each in found if each.metric == "Accuracy")
        assert (accuracy.runs, accuracy.causes) == ([], []), "code alone scores it"
        view.view.desk.get(("judges", "toy"), view.view.state("toy").settled_stamp, lambda: found, 60)
        said = texts(client.get("/b/toy/judges").text)
        assert "Which runs they have scored System Condition second the-judge" in said
        assert "○ 1 of 6 6 of 6" in said
        assert "second no verdict 2 looker the judge declined, or its reply had another form" in said
        coverage = data(client, "/b/toy/judges")["coverage"]
        assert sum(one["scored"] for one in coverage if one["scorer"] == "second") == 7


def test_judges_have_a_page(client: TestClient) -> None:
    for _ in range(200):  # computed in another thread
        found = data(client, "/b/toy/judges")
        if found["scorers"]:
            break
    assert {row["scorer"] for row in found["scorers"]} == {"code", "the-judge"}
    said = texts(client.get("/b/toy/judges").text)
    assert "the-judge 72" in said
