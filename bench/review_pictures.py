"""The pictures of the page on reviewing: a review of simulated procedures in a real browser, at the widths of a screen,
a tablet and a phone, in light and dark.

python bench/review_pictures.py        # docs/images/review-*.jpg; needs Chromium
"""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from itsdangerous import Signer
from PIL import Image
from sqlalchemy import select

sys.path[0] = str(Path(__file__).resolve().parents[1])

from proctor_web import add_person, open_review, review_accounts, schema
from proctor_web.accounts import find_account
from proctor_web.readings import Save, save_draft, seal
from proctor_web.review import ReviewSite
from proctor_web.sessions import start_session
from tests.support.chromium import Page, find_chromium, open_page
from tests.support.web_keys import served, until

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PEOPLE = {"anna": "reviewer", "ben": "reviewer", "cleo": "adjudicator", "olga": "organiser"}
REVIEW = """title: Simulated procedures, first round
media: sim/videos
studies:
  - {name: questions, title: Questions, form: question, items: questions.jsonl, plan: &plan}
  - {name: boxes, title: Boxes, form: boxes, items: boxes.jsonl, plan: &plan}
""".replace("&plan", "{readings: 2, readers: [anna, ben], adjudicators: [cleo], seed: 1}")
CHECKS = {"pictures": True, "one_right": True, "distractors": True, "clinical": True}
ACCEPT: dict[str, Any] = {"decision": "accept", "checks": CHECKS}
REJECT: dict[str, Any] = {
    "decision": "reject",
    "checks": CHECKS | {"one_right": False},
    "reason": "Two of these are put down at another place.",
}


class Shot(NamedTuple):
    """A picture: who sees which page, how wide, in which scheme."""

    name: str
    who: str
    path: str
    width: int
    scheme: str


def made(folder: Path) -> tuple[ReviewSite, dict[str, int]]:
    """The review, with people and some readings; items by study and number."""
    words = ["new", "simulated", "sim", "--videos", "4", "--seconds", "20", "--questions", "2", "--seed", "3"]
    subprocess.run([sys.executable, "-m", "proctor", *words], cwd=folder, check=True, capture_output=True)
    asked = json.loads((folder / "sim" / "questions.json").read_text(encoding="utf-8"))["questions"]
    questions, boxes = [], []
    for one in asked:
        about = {"group": one["video"], "media": [{"source": f"{one['video']}.mp4", "start": 0, "end": 20}]}
        if one["options"]:
            body = {"stem": one["question"], "options": one["options"], "key": ord(one["answer"]) - ord("A")}
            questions.append({"id": one["id"], **about, "body": body})
        else:
            kinds = ["clip", "gallstone", "needle", "specimen bag", "sponge"]
            boxes.append({"id": one["id"], **about, "body": {"classes": kinds}})
    for name, lines in (("questions", questions), ("boxes", boxes)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "review.yaml").write_text(REVIEW, encoding="utf-8")
    for name, role in PEOPLE.items():
        add_person(review_accounts(folder), name, role, "en")
    review, _ = open_review(folder)
    with review.writing() as connection:
        rows = connection.execute(select(schema.study_items).order_by(schema.study_items.c.id)).mappings().all()
        mine = [row["id"] for row in rows if row["study"] == 1]
        for name, said in (("anna", ACCEPT), ("ben", REJECT)):
            account = find_account(connection, name)["id"]
            seal(connection, account, mine[0], Save(1, 0, dict(said), "", 40), review.now())
            for item in mine[1:-1]:
                seal(connection, account, item, Save(1, 0, dict(ACCEPT), "", 25), review.now())
        anna = find_account(connection, "anna")["id"]
        save_draft(connection, anna, mine[-1], Save(1, 0, {"checks": {"pictures": True}}, "", 9), review.now())
        return review, {"settle": mine[0], "read": mine[-1], "boxes": next(r["id"] for r in rows if r["study"] == 2)}


def shots(items: dict[str, int]) -> list[Shot]:
    read = f"/item/{items['read']}"
    return [
        Shot("item-1280-light", "anna", read, 1280, "light"),
        Shot("item-820-dark", "anna", read, 820, "dark"),
        Shot("item-390-light", "anna", read, 390, "light"),
        Shot("boxes-1280-dark", "anna", f"/item/{items['boxes']}", 1280, "dark"),
        Shot("adjudicate-1280-light", "cleo", f"/item/{items['settle']}", 1280, "light"),
        Shot("organise-820-light", "olga", "/organise/study/questions", 820, "light"),
        Shot("home-390-dark", "anna", "/", 390, "dark"),
    ]


async def take(page: Page, review: ReviewSite, address: str, shot: Shot) -> None:
    with review.writing() as connection:
        token = start_session(connection, find_account(connection, shot.who)["id"], review.now())
    cookie = Signer(review.key, salt="session").sign(token).decode()
    await page.call("Network.setCookie", name="proctor", value=cookie, url=address)
    await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": shot.scheme}])
    await page.resize(shot.width, 900)
    await page.open(address + shot.path)
    await until(page, "[...document.images].every((one) => one.complete)")
    await asyncio.sleep(2)  # the player draws its first picture
    told = await page.call("Page.captureScreenshot", format="png")
    with Image.open(BytesIO(base64.b64decode(told["data"]))) as picture:
        picture.convert("RGB").save(IMAGES / f"review-{shot.name}.jpg", quality=85, optimize=True)
    print(f"docs/images/review-{shot.name}.jpg")


async def main() -> None:
    program = find_chromium()
    if program is None:
        sys.exit("Chromium is needed")
    with tempfile.TemporaryDirectory() as folder:
        review, items = made(Path(folder))
        with served(review) as address:
            for shot in shots(items):
                async with open_page(program) as page:
                    await take(page, review, address, shot)
        review.engine.dispose()


if __name__ == "__main__":
    asyncio.run(main())
