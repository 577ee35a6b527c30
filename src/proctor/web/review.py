"""A review that is open: the site of a folder with `review.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from proctor.runs import open_engine
from proctor.web.schema import prepare
from proctor.web.site import Site

if TYPE_CHECKING:
    from fastapi import FastAPI

STORE_FILE = "review.sqlite"
KEY_FILE = "review.key"


@dataclass(frozen=True, kw_only=True)
class ReviewSite(Site):
    """A review. Its media lie below the folder `media`."""

    slow_modules = ("sklearn.linear_model",)  # of the living item

    media: Path

    def mount(self, app: FastAPI) -> None:
        """Adds the pages of work, of organisers and of exports, and the media of items."""
        from proctor.media import MediaLibrary
        from proctor.web.routes import export, home, media, organise, work
        from proctor.web.video import ItemMedia

        app.state.item_media = ItemMedia(MediaLibrary(self.media))
        for module in (export, home, media, organise, work):
            app.include_router(module.router)


def open_store(folder: Path, store: str | None = None) -> Engine:
    """The database of a review: `review.sqlite` in its folder or the store named, with the tables of a review."""
    engine = open_engine(store or folder / STORE_FILE, create=True)
    prepare(engine)
    return engine
