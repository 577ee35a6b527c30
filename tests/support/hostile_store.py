"""A store in which every text is hostile: names, questions, options, answers, judgements, settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.core import ACCURACY, Answer, Benchmark, Item, Judgement, Reference, Score, Timing
from proctor.core.formats import ChoiceFormat
from proctor.runs import Store

_DO = "document.documentElement.dataset.pwned=1"
TEXTS = {
    "script": f"</script><script>{_DO}</script>",
    "image": f'"><img src=x onerror="{_DO}"><!--',
    "svg": f"<svg onload={_DO}><title>",
    "style": "</style><style>body{display:none}</style>",
    "link": f'<a href="javascript:{_DO}" autofocus onfocus={_DO}>click</a>',
    "template": "{{ 7 * 7 }} {% raw %} ${7*7}",
    "direction": "safe \u202etxet sdrawkcab\u2066 after",
    "control": "a\x00b\x1b[31mc\x85d",
    "lines": "one\u2028two\u2029three\r\nfour",
    "math": r"$\frac{1}{0$ _^ $\undefined$ & &amp; &lt;",
    "surrogate": "half \ud83d of a pair".encode("utf-8", "replace").decode(),
    "other script": "结果很好 — النتيجة جيدة 🧷",
    "endless": "x" * 20_000,
    "comment": "<!-- <script> --> ]]> <![CDATA[",
}


def named(text: str) -> str:
    """As a name: a store refuses NUL in names, and in nothing else."""
    return text.replace("\x00", "\x01")


def hostile_store(folder: Path) -> Store:
    store = Store(folder / "hostile.db")
    items = tuple(
        Item(
            id=named(f"{name} {text[:60]}"),
            group=named(text[:80]) if number % 2 else "other",
            question=text,
            options=(text[:5000], f"{text[:100]} not", "C", "D"),
            answer=ChoiceFormat(),
            reference=Reference(answer="A", rationale=text),
            tags={"facet <b>": (text[:40] if number % 2 else "plain")},
        )
        for number, (name, text) in enumerate(TEXTS.items())
    )
    benchmark = Benchmark(
        name="hostile",
        title=TEXTS["script"],
        items=items,
        metrics=(ACCURACY,),
        headline="accuracy",
        facets=("facet <b>",),
        conditions=("video", TEXTS["svg"]),
        notes=tuple(text[:300] for text in TEXTS.values()),
    )
    store.add_benchmark(benchmark)
    for system in ("plain", *TEXTS.values()):
        for condition in benchmark.conditions:
            settings: dict[str, Any] = {"prompt": system[:500], "notes": [system[:200]]}
            run = store.start_run("hostile", named(system[:400]), condition[:80], settings)
            store.write(run, [_answered(store, item, text) for item, text in zip(items, TEXTS.values(), strict=True)])
    return store


def _answered(store: Store, item: Item, text: str) -> tuple[Answer, list[Score]]:
    key = f"judgement-{item.id[:20].encode().hex()}"
    store.put(Judgement(key=key, judge=text[:90], item_id=item.id, reply={text[:50]: text}, flags=(text[:30],)))
    answer = Answer(item_id=item.id, text=text, problem=text[:200], extra={"said": text}, timing=Timing(model_s=1))
    return answer, [Score(item_id=item.id, metric="accuracy", value=0, label=text[:30], judgement_key=key)]
