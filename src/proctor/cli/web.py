"""`proctor serve`, `review` and `users`: sites in the browser, their studies and accounts."""

from __future__ import annotations

from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from proctor.cli.output import Output, OutputFormat, note, print_json, say, show
from proctor.core import ConfigurationError, InputError, Option, UsageError, count_of, pip_install
from proctor.shell import names_in

if TYPE_CHECKING:
    from proctor.web import AccountsPlace, InvitationLink, Listening, Site, StudyUpdate

ReviewFolder = Annotated[Path, Option("The folder with review.yaml or challenge.yaml.", metavar="DIR", argument=True)]

ReviewStore = Annotated[
    str | None,
    Option("A file or SQLAlchemy URL. [default: PROCTOR_STORE, or as review.yaml or challenge.yaml says]", "--store"),
]

_PAGES = ("argon2", "fastapi", "h11", "itsdangerous", "python_multipart", "uvicorn")

_NEEDED = {"web": ("pages in the browser need", _PAGES), "challenge": ("challenges need", (*_PAGES, "cryptography"))}


def check_extra(extra: Literal["web", "challenge"] = "web") -> None:
    """Raises `ConfigurationError` if the extra is not installed."""
    what, names = _NEEDED[extra]
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise ConfigurationError(f"{what} {', '.join(missing)}: {pip_install(extra)}")


def accounts_of(folder: Path, store: str | None) -> AccountsPlace:
    """The accounts of the review or challenge in a folder."""
    check_extra()
    if holds_challenge(folder):
        from proctor.challenges import challenge_accounts

        return challenge_accounts(folder, store)
    from proctor.web import review_accounts

    return review_accounts(folder, store)


def holds_challenge(folder: Path) -> bool:
    """Whether a folder is that of a challenge; otherwise it is that of a review."""
    return (folder / "challenge.yaml").is_file()


def serve(
    folder: ReviewFolder,
    host: Annotated[str, Option("The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, Option("The port; 0 takes a free one.", low=0, high=65535)] = 8000,
    store: ReviewStore = None,
    tls_cert: Annotated[Path | None, Option("The certificate (PEM): pages by https.")] = None,
    tls_key: Annotated[Path | None, Option("The certificate's key (PEM).")] = None,
    proxy: Annotated[str, Option("Addresses or networks of proxies with TLS.")] = "",
    same_user: Annotated[bool, Option("Serve a challenge as the user who can open its sealed part.")] = False,
) -> None:
    """Serve a review or a challenge.

    For a review (DIR/review.yaml), studies are updated first: new items are added and assigned; readings stay. A
    challenge (DIR/challenge.yaml) is not served by a user who can open its sealed part, unless --same-user is given,
    for a trial. Other machines can connect by TLS only. Slow senders are disconnected, and the number of connections
    follows ulimit -n; behind --proxy, the visitors' own addresses count.

    Example: proctor serve my-review --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    check_extra()
    from proctor.web import Listening, bound
    from proctor.web import serve as run

    listening = Listening(host, port, tls_cert, tls_key, proxy)
    site = _opened(folder, store, listening, same_user=same_user)
    with bound(listening) as opened:
        shown = f"[{host}]" if ":" in host else host
        scheme = "http" if tls_cert is None else "https"
        if proxy and listening.in_clear:
            note(f"Behind a proxy {host} is served without TLS: let a firewall keep others than {proxy} from this port")
        say(f"Serving {site.title} at {scheme}://{shown}:{opened.getsockname()[1]} (Ctrl+C stops)")
        run(site, listening, [opened])


def _opened(folder: Path, store: str | None, listening: Listening, *, same_user: bool) -> Site:
    if holds_challenge(folder):
        from proctor.challenges import open_challenge

        return open_challenge(folder, store, listening, same_user=same_user)
    from proctor.web import open_review

    try:
        review, updates = open_review(folder, store, listening, to_serve=True)
    except InputError as error:
        if (folder / "review.yaml").is_file():
            raise
        found = "no review.yaml and no challenge.yaml" if folder.is_dir() else "no such folder"
        expected = "the folder of a review, or of a challenge (proctor challenge new)"
        raise InputError(folder, found=found, expected=expected) from error
    for study_update in updates:
        told_update(study_update)
    return review


def told_update(study_update: StudyUpdate) -> None:
    """Print the changes to a study."""
    tally = study_update.items
    if study_update.fault:
        stay = f"its {count_of(tally.same, 'item')} stay as they are"
        note(f"{study_update.name} is not updated, {stay}: {study_update.fault}")
        return
    told = f"{count_of(tally.new, 'new item')}, {tally.changed} changed, {tally.same} as before"
    say(f"{study_update.name}: {told}, {count_of(study_update.assigned, 'assignment')} made")
    if tally.gone:
        gone = count_of(tally.gone, "item")
        note(f"{study_update.name}: {gone} no longer in the source, kept with all that was said about it")
    if study_update.disabled:
        out = f"no new work for {', '.join(study_update.disabled)} (disabled)"
        note(f"{study_update.name}: {out}; proctor review reassign DIR {study_update.name} NAME passes on what is open")
    if study_update.disabled and study_update.waiting:
        note(
            f"{study_update.name}: {count_of(study_update.waiting, 'item')} waiting until enough of the plan's people may log in"
        )


StudyName = Annotated[str, Option("The study's name.", metavar="STUDY", argument=True)]

PersonName = Annotated[str, Option("The account's name.", metavar="NAME", argument=True)]
Address = Annotated[str, Option("The server's address, for the link. [default: that in the settings]", metavar="URL")]


def update(folder: ReviewFolder, store: ReviewStore = None) -> None:
    """Update studies and assign work.

    As `proctor serve` does at its start: new items are added and assigned, and a changed item gets a new version.

    Example: proctor review update my-review
    """
    check_extra()
    from proctor.web import open_review

    review, updates = open_review(folder, store)
    review.engine.dispose()
    for study_update in updates:
        told_update(study_update)


def status(folder: ReviewFolder, store: ReviewStore = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the progress of studies and people.

    People are shown by pseudonym; `proctor users list` has their names.

    Example: proctor review status my-review
    """
    check_extra()
    from proctor.web import progress_tables

    studies, people = progress_tables(folder, store)
    show(output, studies.records, studies, people)


def agreement(
    folder: ReviewFolder, study: StudyName, store: ReviewStore = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show how far readers agree.

    By dimension (percent, Cohen's and Fleiss' kappa, Gwet's AC1, Krippendorff's alpha; F1 of boxes and times), by
    reader with gold items, by two readers, over time, and the most disputed and slowest items. Intervals are over
    groups. Only items that all readers have submitted count.

    Example: proctor review agreement my-review questions
    """
    check_extra()
    from proctor.web import agreement_of

    found, tables = agreement_of(folder, study, store)
    if output is OutputFormat.JSON:
        print_json([asdict(found)])
        return
    blocks = tables or ("No item is submitted by all its readers yet.",)
    show(output, tables[0].records if tables else [], *blocks)


def export(
    folder: ReviewFolder,
    study: StudyName,
    out: Annotated[Path, Option("The file: .jsonl, .csv, .parquet; .md for a datasheet.")],
    what: Annotated[
        str, Option("readings, consensus or datasheet.", names=names_in("proctor.web:EXPORTS"))
    ] = "readings",
    store: ReviewStore = None,
) -> None:
    """Export readings, or the consensus.

    Writes every submitted reading with pseudonym, version and time; the consensus with the adjudicator and the final item;
    or a section on the review for a datasheet.

    Example: proctor review export my-review questions --out readings.parquet
    """
    check_extra()
    from proctor.web import export_study

    say(f"{count_of(export_study(folder, study, what, out, store), 'row')} of {what} in {out}")


def scores(
    folder: ReviewFolder, study: StudyName, store: ReviewStore = None, output: Output = OutputFormat.TABLE
) -> None:
    """Turn ratings of answers into scores.

    Ratings become scores by human:PSEUDONYM in the review's store, so that proctor audit compares judges with them.
    Pairwise choices are shown as strengths of systems (Bradley-Terry).

    Example: proctor review scores my-review answers
    """
    check_extra()
    from proctor.web import ratings_to_scores

    count, tables = ratings_to_scores(folder, study, store)
    if tables:
        show(output, tables[0].records, *tables)
    else:
        say(f"{count_of(count, 'score')} by people")


def sheet(
    folder: ReviewFolder,
    study: StudyName,
    name: PersonName,
    out: Annotated[Path, Option("The CSV file to write.")],
    store: ReviewStore = None,
) -> None:
    """Write a person's open items as CSV.

    For people without a browser: one item per row, with empty cells to fill in; an adjudicator's rows show the readings
    that differ. Orders, rationales, boxes and moments need the browser.

    Example: proctor review sheet my-review questions anna --out anna.csv
    """
    check_extra()
    from proctor.web import sheet_for

    say(f"{count_of(sheet_for(folder, study, name, out, store), 'item')} in {out}")


def decisions(
    folder: ReviewFolder,
    study: StudyName,
    name: PersonName,
    file: Annotated[Path, Option("The filled-in CSV file.", metavar="FILE", argument=True)],
    store: ReviewStore = None,
) -> None:
    """Submit the decisions of a filled-in sheet.

    All of them become final, or none if a row is invalid or was saved in the browser since. Rows without a decision stay
    open, with their comment as a draft. In an adjudicator's row the comment is the reason.

    Example: proctor review decisions my-review questions anna anna.csv
    """
    check_extra()
    from proctor.web import decisions_from

    tally = decisions_from(folder, study, name, file, store)
    kept = f", {tally.comments} of them with a comment, which is kept" if tally.comments else ""
    say(f"{tally.sealed} submitted, {tally.before} submitted before, {tally.left} left open{kept}")


def reassign(folder: ReviewFolder, study: StudyName, name: PersonName, store: ReviewStore = None) -> None:
    """Give a person's open work to others.

    Assigns it to readers of the plan who do not have it yet, those with the least work first. Submitted readings stay.

    Example: proctor review reassign my-review questions ben
    """
    check_extra()
    from proctor.web import reassign_work

    tally = reassign_work(folder, study, name, store)
    passed_on, gold = count_of(tally.passed_on, "item"), count_of(tally.gold, "gold item")
    say(f"{passed_on} passed on, {gold} taken away, {tally.stay} kept")
    if tally.stay:
        note("add a reader to the plan for what is kept: all others have them already")


Name = Annotated[str, Option("The account's name.", metavar="NAME", argument=True)]


def add(
    folder: ReviewFolder,
    name: Name,
    role: Annotated[
        str, Option("What the person may do. [default: reviewer, participant]", names=names_in("proctor.web:ROLES"))
    ] = "",
    language: Annotated[str, Option("The language of the pages: en, de.")] = "en",
    address: Address = "",
    store: ReviewStore = None,
) -> None:
    """Add a person; print the invitation.

    The link sets the account's password, once, within seven days. Send it to that person only.

    Example: proctor users add my-review anna --role reviewer --language de
    """
    from proctor.web import add_person

    place = _reached_at(accounts_of(folder, store), address)
    is_new = place.store.is_new
    _print_invitation(place, add_person(place, name, role or place.newcomer, language))
    if is_new:
        other = f"If the server has another store, write that one into {place.settings} (store: …)"
        note(f"{place.store.shown} is new. {other}")


def invite(folder: ReviewFolder, name: Name, address: Address = "", store: ReviewStore = None) -> None:
    """Print a new invitation.

    For a person whose invitation expired, or who lost the password. The old link becomes invalid; the old password
    works until the new link is used.

    Example: proctor users invite my-review anna
    """
    from proctor.web import invite_person

    place = _reached_at(accounts_of(folder, store), address)
    _print_invitation(place, invite_person(place, name))


def list_users(folder: ReviewFolder, store: ReviewStore = None, output: Output = OutputFormat.TABLE) -> None:
    """List the people with an account.

    With role, pseudonym (which exports show in place of the name), state, and the day of the last login.

    Example: proctor users list my-review
    """
    from proctor.web import people_table

    table = people_table(accounts_of(folder, store))
    show(output, table.records, table)


def set_role(
    folder: ReviewFolder,
    name: Name,
    role: Annotated[str, Option("The new role.", metavar="ROLE", names=names_in("proctor.web:ROLES"), argument=True)],
    store: ReviewStore = None,
) -> None:
    """Change what a person may do.

    The person has to log in again.

    Example: proctor users role my-review cleo adjudicator
    """
    from proctor.web import change_role

    change_role(accounts_of(folder, store), name, role)
    say(f"{name} is {role} from the next login on")


def disable(
    folder: ReviewFolder,
    name: Name,
    undo: Annotated[bool, Option("Enable the account again.", "--undo")] = False,
    store: ReviewStore = None,
) -> None:
    """Disable an account at once.

    The person's readings stay.

    Example: proctor users disable my-review ben
    """
    from proctor.web import disable_person

    disable_person(accounts_of(folder, store), name, undo=undo)
    say(f"{name} may log in again" if undo else f"{name} is logged out and may not log in")


def show_trail(folder: ReviewFolder, store: ReviewStore = None, output: Output = OutputFormat.TABLE) -> None:
    """Show who changed what; check the trail.

    Each entry contains the hash of the previous one, so changed or removed entries are detected. Keep the newest hash
    elsewhere to detect later whether entries were removed from the end.

    Exit code 1 where an entry is not as recorded. Example: proctor users trail my-review
    """
    from proctor.web import read_trail

    found = read_trail(accounts_of(folder, store))
    show(output, found.entries.records, found.entries)
    if found.fault is not None:
        note(f"entry {found.fault} was changed, or does not follow the one before")
        raise typer.Exit(1)
    note(f"all entries are as recorded; the newest hash is {found.head}")


def _print_invitation(place: AccountsPlace, invitation: InvitationLink) -> None:
    say(invitation.link)
    if not invitation.reachable:
        note(
            f"The link's address is a guess: {place.settings} has none. Give the server's by --address URL, or by `address:` "
            f"in {place.settings}"
        )


def _reached_at(place: AccountsPlace, address: str) -> AccountsPlace:
    """The accounts with links to this address. Raises `UsageError` for what is no address of a server (see `address:` in
    the settings)."""
    from proctor.web import is_address

    if not address:
        return place
    whole = address.removesuffix("/")
    if not is_address(whole):
        raise UsageError(f"--address {repr(address)[:80]} is no server's: write it like https://review.example.org")
    return replace(place, address=whole.casefold())
