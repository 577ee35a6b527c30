"""Routes: each module has a `router`. A route parses the request, calls the room, and renders a page."""

from typing import Annotated

from fastapi import Depends, Form, Path

from proctor_web.sessions import Visitor, require, visitor_of

# What can be no id or name is answered with 404 and never reaches the database.
RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]
StudyName = Annotated[str, Path(max_length=80, pattern=r"^[\w.-]+$")]
Text = Annotated[str, Form(max_length=1000)]

OptionalVisitor = Annotated[Visitor | None, Depends(visitor_of)]
Organiser = Annotated[Visitor, Depends(require("organiser"))]
