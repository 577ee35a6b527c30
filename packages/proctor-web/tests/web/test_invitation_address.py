"""The address of an invitation's link: the settings', or the one that is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.core import UsageError
from proctor_web import AccountsLocation, site_store
from proctor_web.commands import _reached_at


def location(address: str = "") -> AccountsLocation:
    store = site_store("review", Path("review"), "review.yaml", "review.sqlite", None)
    return AccountsLocation(store, lambda _: pytest.fail("no database is opened"), address, "review.yaml")


def test_a_given_address_is_that_of_the_link() -> None:
    assert _reached_at(location(), "http://localhost:8080/").address == "http://localhost:8080"
    assert _reached_at(location("https://a.org"), "https://B.org").address == "https://b.org"
    assert _reached_at(location("https://a.org"), "").address == "https://a.org"


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8080",
        "ftp://a.org",
        "https://",
        "https://a.org?x=1",
        "http://[",
        "http://u:p@a.org",
        "https://a.org/reviews",  # the pages' own links begin at the root
        "https://a.org:no",
        "https://a.org/ x",
        "https://a.org\n",
    ],
)
def test_what_is_no_address_of_a_server_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is no server's: write it like https"):
        _reached_at(location(), address)
