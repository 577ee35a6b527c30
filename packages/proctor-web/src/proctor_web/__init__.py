"""Web: sites in the browser, of which the review is one. Routes parse and render; this room's functions do the work."""

from typing import TYPE_CHECKING

from proctor.lazy import export_lazily

if TYPE_CHECKING:
    from proctor_web.accounts import (
        AccountsLocation,
        InvitationLink,
        TrailReport,
        account_names,
        add_person,
        change_role,
        disable_person,
        erase_person,
        find_account,
        invite_person,
        people_table,
        read_trail,
    )
    from proctor_web.busy import BusyError, WriterGate
    from proctor_web.pages import confirm, page
    from proctor_web.review import (
        EXPORTS,
        StudyUpdate,
        agreement_of,
        decisions_from,
        export_study,
        open_review,
        progress_tables,
        ratings_to_scores,
        reassign_work,
        sample_study,
        sheet_for,
    )
    from proctor_web.schema import ROLES, new_token, utc_text
    from proctor_web.server import serve
    from proctor_web.sessions import Visitor, current, require, site_of, visitor_of
    from proctor_web.settings import is_address, review_accounts
    from proctor_web.site import Listening, Site, bound, private_store, signing_key
    from proctor_web.site_kinds import SITE_KINDS, SiteKind, kind_of
    from proctor_web.site_tables import ACCOUNT_TABLES, REVIEW_TABLES, prepare_accounts
    from proctor_web.stores import SiteStore, site_store
    from proctor_web.trail import first_fault, newest_change, pseudonym_of
    from proctor_web.trail import head as trail_head
    from proctor_web.trail import record as record_change
    from proctor_web.uploads import NoRoomError, Upload, receive_upload, remove_unfinished
    from proctor_web.view.server import OpenView, open_view, serve_view
else:
    export_lazily(__name__)

__all__ = [
    "ACCOUNT_TABLES", "EXPORTS", "REVIEW_TABLES", "ROLES", "SITE_KINDS", "AccountsLocation", "BusyError",
    "InvitationLink", "Listening", "NoRoomError", "OpenView", "Site", "SiteKind", "SiteStore", "StudyUpdate",
    "TrailReport", "Upload", "Visitor", "WriterGate", "account_names", "add_person", "agreement_of", "bound",
    "change_role", "confirm", "current", "decisions_from", "disable_person", "erase_person", "export_study",
    "find_account", "first_fault", "invite_person", "is_address", "kind_of", "new_token", "newest_change",
    "open_review", "open_view", "page", "people_table", "prepare_accounts", "private_store", "progress_tables",
    "pseudonym_of", "ratings_to_scores", "read_trail", "reassign_work", "receive_upload", "record_change",
    "remove_unfinished", "require", "review_accounts", "sample_study", "serve", "serve_view", "sheet_for",
    "signing_key", "site_of", "site_store", "trail_head", "utc_text", "visitor_of",
]  # fmt: skip
