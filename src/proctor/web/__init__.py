"""Web: review in the browser. Pages ask this room's functions; statistics and media are other rooms'."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor.web.people import (
        InvitationLink,
        TrailReport,
        add_person,
        change_role,
        disable_person,
        invite_person,
        people_table,
        read_trail,
    )
    from proctor.web.schema import ROLES
    from proctor.web.server import Listening, bound, open_review, serve
else:
    export_lazily(__name__)

__all__ = [
    "ROLES", "InvitationLink", "Listening", "TrailReport", "add_person", "bound", "change_role", "disable_person",
    "invite_person", "open_review", "people_table", "read_trail", "serve",
]  # fmt: skip
