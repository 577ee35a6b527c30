"""The smallest site: people make their accounts themselves, and one address takes files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Pattern
from typing import Annotated

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from proctor.runs import open_engine
from proctor_web.sessions import Visitor, current
from proctor_web.site import Site
from proctor_web.site_tables import prepare_accounts
from proctor_web.uploads import receive_upload
from tests.support.web_site import Clock

MOST = 3_000_000


@dataclass(frozen=True, kw_only=True)
class OpenSite(Site):
    """`/` says who asks; `/send` says what came, and keeps nothing."""

    roles = ("organiser", "participant")
    newcomer = "participant"
    registers: bool = True

    @property
    def open_registration(self) -> bool:
        return self.registers

    @property
    def uploads(self) -> Mapping[Pattern[str], int]:
        return {re.compile("/send"): MOST}

    def mount(self, app: FastAPI) -> None:
        @app.get("/")
        def who(visitor: Annotated[Visitor, Depends(current)]) -> PlainTextResponse:
            return PlainTextResponse(f"{visitor.name} {visitor.role}")

        @app.post("/send")
        async def send(request: Request) -> JSONResponse:
            async with receive_upload(request, self.folder) as upload:
                said = {"name": upload.name, "size": upload.size, "sha256": upload.sha256, "fields": upload.fields}
                return JSONResponse(said | {"kept": [one.name for one in self.folder.glob(".incoming-*")]})


def open_site(folder: Path, *, registers: bool = True) -> OpenSite:
    engine = open_engine(folder / "site.sqlite", create=True)
    prepare_accounts(engine)
    return OpenSite(
        folder=folder,
        title="Open",
        engine=engine,
        key="k" * 43,
        hosts=("review.test",),
        now=Clock(),
        registers=registers,
    )
