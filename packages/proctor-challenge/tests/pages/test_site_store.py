"""Where the store of a review or a challenge is: one setting for all commands, and never a second store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from proctor.core import InputError
from proctor.runs import open_engine
from proctor_web.site_tables import prepare_accounts
from proctor_web.stores import SiteStore, site_store
from tests.support.challenge_site import made_folder
from tests.support.program import proctor
from tests.support.web_folder import invitations, review_folder


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_STORE", raising=False)


@pytest.fixture
def review(tmp_path: Path) -> Path:
    return review_folder(tmp_path / "review")


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    shutil.copytree(made_folder(), tmp_path / "challenge")
    (tmp_path / "challenge" / "challenge.sqlite").unlink(missing_ok=True)
    return tmp_path / "challenge"


OF_A_REVIEW = {
    "serve users list": "serve users list {0}",
    "serve users trail": "serve users trail {0}",
    "serve users invite": "serve users invite {0} anna",
    "serve users role": "serve users role {0} anna --role organiser",
    "serve users disable": "serve users disable {0} anna",
    "review status": "review status {0}",
    "review agreement": "review status {0} questions",
    "review export": "review export {0} questions --out {0}/out.csv",
    "review export sheet": "review export {0} questions --what sheet --reader anna --out {0}/out.csv",
    "review reassign": "review update {0} --reassign anna --study questions",
}


@pytest.mark.parametrize("command", OF_A_REVIEW)
def test_a_command_on_a_review_without_a_store_makes_none(review: Path, command: str) -> None:
    before = sorted(review.iterdir())
    done = proctor(*OF_A_REVIEW[command].format(review).split())
    assert done.returncode == 1
    assert done.stderr == (
        f"proctor: {review / 'review.sqlite'}: found no such file, expected the store of this review (proctor serve and "
        "proctor serve users add make it; if it is elsewhere, write store: … into review.yaml)\n"
    )
    assert sorted(review.iterdir()) == before


OF_A_CHALLENGE = {
    "serve users list": "serve users list {0}",
    "status": "challenge status {0}",
    "boards": "challenge status {0} pre-evaluation",
    "teams": "challenge team list {0}",
    "submissions": "challenge submission list {0}",
    "close": "challenge phase close {0} pre-evaluation",
    "worker": "worker {0} --once --executor process",
    "rerun": "challenge submission rescore {0} --why corrected",
}


@pytest.mark.parametrize("command", OF_A_CHALLENGE)
def test_a_command_on_a_challenge_without_a_store_makes_none(challenge: Path, command: str) -> None:
    before = sorted(challenge.iterdir())
    done = proctor(*OF_A_CHALLENGE[command].format(challenge).split())
    assert done.returncode == 1
    assert f"{challenge / 'challenge.sqlite'}: found no such file, expected the store of this challenge" in done.stderr
    assert sorted(challenge.iterdir()) == before


def test_a_store_of_something_else_is_no_review_to_who_reads(review: Path, tmp_path: Path) -> None:
    answers = tmp_path / "runs.db"
    open_engine(answers, create=True).dispose()
    done = proctor("serve", "users", "list", review, "--store", answers)
    assert (done.returncode, f"{answers}: found no review, expected the store of this review" in done.stderr) == (
        1,
        True,
    )


def test_one_variable_names_the_store_for_every_command(review: Path, challenge: Path, tmp_path: Path) -> None:
    for folder, reads in ((review, ("review", "status")), (challenge, ("challenge", "status"))):
        store = str(tmp_path / f"{folder.name}.db")
        assert proctor("serve", "users", "add", folder, "anna", PROCTOR_STORE=store).returncode == 0
        assert "anna" in proctor("serve", "users", "list", folder, PROCTOR_STORE=store).stdout
        assert proctor(*reads, folder, PROCTOR_STORE=store).returncode == 0
        assert proctor(*reads, folder).returncode == 1, "without the variable there is none"
        assert not list(folder.glob("*.sqlite"))


def test_the_settings_name_the_store_for_all(review: Path, postgres_url: str) -> None:
    text = (review / "review.yaml").read_text()
    (review / "review.yaml").write_text(f"store: {postgres_url}\n{text}")
    links = invitations(review)
    assert proctor("review", "update", review).returncode == 0
    assert proctor("review", "status", review).returncode == 0
    assert "anna" in proctor("serve", "users", "list", review).stdout
    assert len(links) == 3
    assert not list(review.glob("*.sqlite"))


def test_a_file_in_the_settings_is_in_the_folder(review: Path) -> None:
    text = (review / "review.yaml").read_text()
    (review / "review.yaml").write_text(f"store: people.db\n{text}")
    first = proctor("serve", "users", "add", review, "anna")
    assert (
        f"{review / 'people.db'} is new. If the server has another store, write that one into review.yaml"
        in first.stderr
    )
    assert "is new" not in proctor("serve", "users", "add", review, "ben").stderr
    assert (review / "people.db").is_file()


def test_a_second_store_beside_the_first_is_refused(review: Path, tmp_path: Path) -> None:
    """The variable may be meant for the answers of an evaluation."""
    invitations(review)
    answers = tmp_path / "runs.db"
    open_engine(answers, create=True).dispose()
    for store in (answers, tmp_path / "new.db"):
        done = proctor("serve", "users", "add", review, "dora", PROCTOR_STORE=str(store))
        assert done.returncode == 1
        assert done.stderr == (
            f"proctor: {store}: found no review, expected the store of this review, which is {review / 'review.sqlite'}: "
            "unset PROCTOR_STORE, or name that one by --store; to start over elsewhere, move that one away\n"
        )
        assert proctor("serve", "users", "list", review, PROCTOR_STORE=str(store)).stderr == done.stderr
        served = proctor("serve", review, "--store", store)
        assert (served.returncode, "leave out --store" in served.stderr) == (1, True)
    assert not (tmp_path / "new.db").exists()
    assert "dora" not in proctor("serve", "users", "list", review).stdout


def test_another_way_to_the_same_store_is_no_second_one(review: Path, tmp_path: Path) -> None:
    invitations(review)
    link = tmp_path / "link.db"
    link.symlink_to(review / "review.sqlite")
    assert proctor("serve", "users", "add", review, "dora", "--store", link).returncode == 0
    assert "dora" in proctor("serve", "users", "list", review).stdout


def test_an_account_of_its_own_may_reach_a_database_server(tmp_path: Path, postgres_url: str) -> None:
    """The scorer and the server log in under different names: two URLs, one database."""
    engine = open_engine(postgres_url, create=True)
    prepare_accounts(engine)
    engine.dispose()
    location = site_store(
        "challenge", tmp_path, "challenge.yaml", "postgresql+psycopg://scorer@127.0.0.1:1/c", postgres_url
    )
    location.opened(create=True).dispose()
    file = SiteStore("challenge", tmp_path, "challenge.yaml", "postgresql+psycopg://scorer@127.0.0.1:1/c", "new.db")
    with pytest.raises(
        InputError, match="found no challenge, expected the store of this challenge, which is postgresql"
    ):
        file.opened(create=True)
