"""`proctor users`: who may come into a review or a challenge, and as what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from proctor.cli.output import Output, OutputFormat, note, say, show
from proctor.cli.serve import ReviewFolder, ReviewStore, accounts_of
from proctor.core import Option

if TYPE_CHECKING:
    from proctor.web import AccountsPlace, InvitationLink

Name = Annotated[str, Option("The account's name.", metavar="NAME", argument=True)]


def _roles() -> list[str]:
    from proctor.web import ROLES

    return list(ROLES)


def add(
    folder: ReviewFolder,
    name: Name,
    role: Annotated[str, Option("What the person may do. [default: reviewer, participant]", names=_roles)] = "",
    language: Annotated[str, Option("The language of the pages: en, de.")] = "en",
    store: ReviewStore = None,
) -> None:
    """Add a person; print the invitation.

    The link sets the account's password, once, within seven days. Send it to that person alone.

    Example: proctor users add my-review anna --role reviewer --language de
    """
    from proctor.web import add_person

    place = accounts_of(folder, store)
    _tell(place, add_person(place, name, role or place.newcomer, language))


def invite(folder: ReviewFolder, name: Name, store: ReviewStore = None) -> None:
    """Print a new invitation.

    For a person whose invitation ended, or who lost the password. The former link ends; a password holds until the new
    link is used.

    Example: proctor users invite my-review anna
    """
    from proctor.web import invite_person

    place = accounts_of(folder, store)
    _tell(place, invite_person(place, name))


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
    role: Annotated[str, Option("The new role.", metavar="ROLE", names=_roles, argument=True)],
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
    undo: Annotated[bool, Option("Let the person in again.", "--undo")] = False,
    store: ReviewStore = None,
) -> None:
    """Shut a person out, at once.

    What the person said stays.

    Example: proctor users disable my-review ben
    """
    from proctor.web import disable_person

    disable_person(accounts_of(folder, store), name, undo=undo)
    say(f"{name} may log in again" if undo else f"{name} is logged out and may not log in")


def show_trail(folder: ReviewFolder, store: ReviewStore = None, output: Output = OutputFormat.TABLE) -> None:
    """Show who changed what; check the trail.

    Each entry holds the hash of the one before, so that one that was changed or taken out is found. The newest hash,
    written down elsewhere, shows later that no entries were cut off the end.

    Exit code 1 where an entry is not as recorded. Example: proctor users trail my-review
    """
    from proctor.web import read_trail

    found = read_trail(accounts_of(folder, store))
    show(output, found.entries.records, found.entries)
    if found.fault is not None:
        note(f"entry {found.fault} was changed, or does not follow the one before")
        raise typer.Exit(1)
    note(f"all entries are as recorded; the newest hash is {found.head}")


def _tell(place: AccountsPlace, invitation: InvitationLink) -> None:
    say(invitation.link)
    if not invitation.reachable:
        note(f"{place.settings} has no address: put the server's in place of the link's beginning")
