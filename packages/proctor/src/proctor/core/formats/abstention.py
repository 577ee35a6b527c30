"""Abstentions: replies that say, in the declared words, that a question can't be answered; and replies that decline in
words of their own.

What counts is the declared form (`abstains`): the word `ABSTAINED_WORD`, or its counterpart in another language, where an
answer would stand. It is found like any answer: in a JSON field, a tag or a box, after "Answer:", or alone,
and the last declared answer counts. `declines` finds other refusals. It is a reading of free words with an error rate
that is measured (`tests/core/test_abstentions.py`): no status and no score depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from proctor.core.errors import ParseError
from proctor.core.formats.base import Format, StrictFormat, bare
from proctor.core.formats.markup import PLAIN
from proctor.core.formats.reply import Statement, answer_text, read_reply
from proctor.core.text import deferred

ABSTAINED_WORD = "UNANSWERABLE"
"""The word that a model is asked to write where it can't answer."""

ABSTAINED_WORDS = {
    "en": ("unanswerable", "not answerable", "cannot be answered", "can not be answered", "can't be answered"),
    "de": ("unbeantwortbar", "nicht beantwortbar", "nicht zu beantworten", "kann nicht beantwortet werden"),
    "fr": ("sans réponse", "impossible de répondre", "sans réponse possible", "ne peut pas être répondue"),
    "es": ("sin respuesta", "no se puede responder", "no se puede contestar", "no respondible", "irrespondible"),
    "zh": ("无法回答", "無法回答", "不可回答", "无法作答", "無法作答", "不能回答"),
}
"""The declared words by language, the first one as a prompt in that language would ask for it."""

_KEYS = ("order", "letter", "choice", "option", "count", "percentage", "classes", "intervals", "time", "times", "timestamp", "boxes", "point")  # fmt: skip
_WORDS = "|".join(re.escape(word) for words in ABSTAINED_WORDS.values() for word in words)
_LEAD = (
    r"(?:(?:the|this) question (?:is|was)\s|(?:it|this|that) is\s|(?:die|diese) frage (?:ist\s)?|(?:la|cette) question (?:est\s)?"
    r"|(?:la|esta) pregunta (?:es\s)?|(?:该|此|这个|本)?(?:问题|题)(?:是)?)?"
)
_ABSTAINS = deferred(
    rf"[\W_]{{0,6}}{_LEAD}(?:{_WORDS})(?![\w-]|['’]\w)"
    r"(?:[\"'’”»)\]*_`]{0,4}(?:\s{0,3}(?:$|[.,;:!(–—-])|[ \t]{0,3}\n|\s{1,3}(?:because\b|since\b|as\b|given\b|from\b|without\b|weil\b|da\b|denn\b|car\b|puisque\b"
    r"|faute\b|porque\b|ya que\b|pues\b)|因为|由于)|(?<=[\u4e00-\u9fff])(?=[\u4e00-\u9fff，。]))",
    re.IGNORECASE,
)
_STILL_ANSWERS = deferred(
    r"\b(?:but|however|still|if i had to|otherwise|aber|jedoch|wenn ich|mais|toutefois|pero|sin embargo)\b[^\n]{0,60}?"
    r"\b(?:guess|answer|choose|pick|option|likely|rate|raten|antwort|wähle|choisi\w{0,15}|réponse|elij\w{0,15}|elegir\w{0,15}|respuesta|diría)\b"
    r"|(?:但|不过|如果)[^\n]{0,30}(?:选|答案|猜)|\bbest guess\b|\bmy guess (?:is|would be)\b|\bi(?:'d| would) (?:guess|choose|pick|go with)\b",
    re.IGNORECASE,
)

_BARE = {"free_text", "pattern", "ratings"}  # formats that are asked for without "Answer:"


def abstention_instruction(form: Format, abstain: str) -> str:
    """The sentence that a prompt adds to the instruction of a format: with "allow" the form in which to abstain, with
    "forbid" that abstaining is wrong; "" for "".

    >>> from proctor.core.formats import ChoiceFormat
    >>> print(abstention_instruction(ChoiceFormat(), "allow"))
    If the question can't be answered from what is shown, write "Answer: UNANSWERABLE" instead.
    """
    if abstain == "forbid":
        return "Always answer: a reply that the question can't be answered is wrong."
    if abstain != "allow":
        return ""
    alone = getattr(form, "kind", "") in _BARE or (isinstance(form, StrictFormat) and form.strict)
    said = f"reply with {ABSTAINED_WORD} and nothing else" if alone else f'write "Answer: {ABSTAINED_WORD}" instead'
    return f"If the question can't be answered from what is shown, {said}."


def abstains(text: str, form: Format, options: Sequence[str] = ()) -> bool:
    """Whether a reply abstains in the declared form.

    The last declared answer counts, as of any reply, and so does what takes it back. A strict format takes the word and
    nothing else. A reply that goes on to guess ("… but I would choose B"), and the word where it is one of the item's
    options or classes, are no abstention.

    >>> from proctor.core.formats import ChoiceFormat
    >>> [abstains(text, ChoiceFormat(), ("liver", "spleen")) for text in ("Answer: UNANSWERABLE", "Answer: B", "B is unanswerable")]
    [True, False, False]
    >>> abstains("Answer: unanswerable", ChoiceFormat(), ("liver", "Unanswerable"))
    False
    """
    labels = (*options, *getattr(form, "classes", ()))
    if any(_is_word(label) for label in labels):
        return False
    if isinstance(form, StrictFormat) and form.strict:
        return _is_word(text)
    plain = answer_text(text)
    opening = _ABSTAINS.match(plain)  # of words in which a cue for an answer stands: "sans réponse"
    if opening is not None and not _opens(plain):
        return False
    try:
        return bool(
            read_reply(text if opening is None else plain[opening.end() :], _read, expected="an answer", keys=_KEYS)
        )
    except ParseError:
        return opening is not None


def _is_word(text: str) -> bool:
    return is_abstention(bare(text))


def is_abstention(text: str) -> bool:
    """Whether a text is one of the declared words and nothing else, in any case: as the reference in a spreadsheet.

    >>> is_abstention("Unanswerable"), is_abstention("无法回答"), is_abstention("the question is unanswerable")
    (True, True, False)
    """
    plain = " ".join(text.translate(PLAIN).split()).casefold()
    return any(plain == word for words in ABSTAINED_WORDS.values() for word in words)


def _opens(text: str) -> bool:
    """Whether a text begins with a declared word, and does not go on to guess."""
    hit = _ABSTAINS.match(text)
    return hit is not None and _STILL_ANSWERS.search(text, hit.end() - 1) is None


def _read(statement: Statement) -> bool | None:
    """True for an abstention; False for a statement that says something else where the answer stands."""
    if _opens(statement.text):
        return True
    return False if statement.sure else None


# ------------------------------------------------------------------------------------------- declined in other words

_SENTENCES = re.compile(r"(?<=[.!?。！？；])\s*(?=\S)|\n+")
_ACTOR = deferred(
    r"\b(?:surgeons?|operators?|sonographers?|learners?|students?|trainees?|nurses?|clinicians?|physicians?|assistants?|examiners?|patients?"
    r"|he|she|they|chirurg\w{0,15}|operateur\w{0,15}|untersucher\w{0,15}|lernende\w{0,15}|assisten\w{0,15}|patient\w{0,15}|er|chirurgien\w{0,15}|échographiste|étudiante?"
    r"|élève|il(?! m'| n'y| est (?:impossible|difficile))|elle|cirujan\w{0,15}|ecografista|alumn\w{1,15}|él|ella|médic[oa]s?(?= (?:no )?(?:puede|gira)))\b"
    r"|术者|医生(?=[看旋])|检查者|学员|操作者|助手",
    re.IGNORECASE,
)
_EVIDENCE = (
    r"(?:videos?|clips?|images?|pictures?|frames?|footage|recordings?|stills?|photos?|screen|media|view|question|answers?|options?|evidence|information"
    r"|details?|basis|context|bild\w{0,15}|standbild\w{0,15}|aufnahme\w{0,15}|frage|antwort\w{0,15}|optionen|aussage|material|ton|vidéos?|extrait|enregistrement"
    r"|réponse|éléments|vídeos?|imágenes|imagen|fragmento|pregunta|respuesta|opciones|información|pantalla|audio)"
)
_KNOW = (
    r"(?:determin\w{1,15}|tell|say|answer|identif\w{1,15}|judge|assess|confirm|decide|know|interpret|pick|choose|count|establish|settle|conclude|verify|state"
    r"|make (?:that|this|a) (?:determination|judg\w{1,15}|call)|provide an? (?:answer|diagnosis|assessment)|help|respond|comment|see|view|access|diagnose)"
)
_FIRST = deferred(
    # English
    rf"\b(?:i|we)(?:'m|'d| am| are| was| would)? ?(?:\w{{1,20}} )?(?:can(?:no|')?t|can not|could(?: not|n't)|unable|not able|(?:do|did)(?: not|n't)"
    rf"|(?:will|would)(?: not|n't)|won't)\b[^.!?\n]{{0,60}}?\b{_KNOW}\b"
    rf"|\b(?:i|we) (?:have|see|find|was given|received?|got) (?:no|nothing|not enough|insufficient|too little)\b|\bi(?:'d| would) (?:rather|prefer) not\b"
    rf"|\bi(?:'d| would)(?: have)? (?:need\b|have to (?:see|leave|hear))|\bi have to leave\b|\b(?:do(?: not|n't)|did(?: not|n't)) (?:have|see|receive|get) (?:any|an?|the|enough|sufficient|access)\b"
    r"|\bas an ai\b|\bi have no (?:idea|way|basis)\b|\bi(?:'m| am) not (?:sure|certain|qualified)\b"
    # German
    r"|\b(?:kann|könnte|vermag|darf|möchte|will)\b[^.!?\n]{0,20}\bich\b[^.!?\n]{0,80}\b(?:nicht|keine?n?|nichts)\b|\bich\b[^.!?\n]{0,60}\b(?:kann|könnte|vermag"
    r"|darf|möchte|weiß|sehe|habe|erkenne)\b[^.!?\n]{0,80}\b(?:nicht|keine?[nr]?|nichts)\b|\b(?:kann|weiß|möchte|sehe|darf) ich\b[^.!?\n]{0,60}\b(?:nicht|keine?n?|nichts)\b"
    r"|\b(?:vermag|kann|möchte)\b[^.!?\n]{0,40}\bich (?:leider )?nicht|\bich\b[^.!?\n]{0,80}\bnicht (?:sagen|beurteilen|beantworten|erkennen|feststellen|entscheiden|bestimmen|bestätigen|zu beantworten)\b"
    r"|\braten möchte ich nicht|\bkeine ahnung\b|\bmir (?:fehlt|fehlen|liegen? kein)\b|\bals ki\b"
    # French
    r"|\bje ne (?:peux|puis|saurais|sais|suis pas (?:en mesure|capable|certain|sûr)|vois|distingue|parviens|dispose|souhaite)|\bje n'(?:ai|arrive|y ai|en sais|aperçois|ose)\b[^.!?\n]{0,20}\b(?:pas|aucune?|rien)\b"
    r"|\bje n'ai (?:pas|aucune?|reçu)|\bil m'est (?:impossible|difficile)|\bje préfère ne pas\b|\ben tant qu'ia\b|\bne m'a (?:pas )?été\b"
    # Spanish
    r"|\bno (?:puedo|sé|logro|consigo|dispongo|tengo|veo|alcanzo|me es posible|soy capaz|estoy seguro|estoy segura|quiero)\b|\bme (?:resulta|es) (?:imposible|difícil)"
    r"|\bprefiero no\b|\bcomo (?:modelo de )?(?:ia|inteligencia)\b"
    # Chinese
    r"|(?:我|本人)[^。！？\n]{0,12}(?:无法|不能|没办法|没法|看不|不知道|不确定|不想|不清楚|分辨不|判断不|回答不|难以|没有收到|未收到)|作为(?:一个)?(?:人工智能|AI|语言模型)",
    re.IGNORECASE,
)
_IMPERSONAL = deferred(
    # English
    rf"\b(?:it(?:'s| is)|it was) (?:\w{{1,20}} )?(?:not possible|impossible|unclear|unknown|impractical|difficult)\b[^.!?\n]{{0,30}}?\b(?:to {_KNOW}|whether|which|how|what|when)\b"
    rf"|\bthere(?:'s| is| are|(?:'s| is) simply)(?:n't)? (?:no way|not enough|nothing|insufficient|no basis|anything|no \w{{1,15}} (?:evidence|information|indication))\b"
    rf"|\b(?:can(?:no|')?t|can not|could not|couldn't) be (?:\w{{1,20}} )?(?:determin|establish|answer|told|confirm|assess|known|count|identif|judg|ascertain|decid|seen|inferr|verif)\w{{0,15}}"
    rf"|\b(?:insufficient|not enough|too little|inadequate|lacks?(?: the)?)\b[^.!?\n]{{0,30}}?\b{_EVIDENCE}\b|\b{_EVIDENCE}\b[^.!?\n]{{0,50}}?\b(?:is|are) (?:insufficient|not (?:enough|sufficient|provided|attached|available|visible))\b"
    rf"|\b{_EVIDENCE}\b[^.!?\n]{{0,40}}?\b(?:do(?:es)?(?: not|n't)|did(?: not|n't)|never) (?:show|contain|allow|provide|permit|reveal|include|let|indicate|give|answer)\w{{0,15}}"
    rf"|\bnone of the {_EVIDENCE}\b|\bno {_EVIDENCE}\b[^.!?\n]{{0,30}}?\b(?:attached|provided|available|visible|shown|received|included|uploaded|supplied|came)\b|\bno {_EVIDENCE} to\b"
    rf"|\b(?:please|could you|can you)\b[^.!?\n]{{0,30}}?\b(?:upload|provide|attach|share|send|consult)\b|\b(?:undetermined|indeterminate|inconclusive|undeterminable)\b|\banybody's guess\b"
    # German
    r"|\b(?:lässt|lassen) sich\b[^.!?\n]{0,60}\b(?:nicht|kaum)\b[^.!?\n]{0,30}\b(?:sagen|feststellen|beurteilen|bestimmen|erkennen|beantworten|ableiten|entscheiden)"
    r"|\b(?:nicht|kaum) (?:zu )?(?:möglich|erkennen|beurteilen|beantworten|feststellen|bestimmen|sagen|entscheiden|hervor|erkennbar|beurteilbar|feststellbar|bestimmbar)\b|\breich(?:t|en)\b[^.!?\n]{0,60}\bnicht aus\b"
    r"|\b(?:geht|gehen)\b[^.!?\n]{0,40}\bnicht hervor\b|\bkeine (?:aussage|antwort|beurteilung)\b|\bunklar\b|\bbleibt\b[^.!?\n]{0,40}\boffen\b|\bkeine? (?:video|bilder|aufnahme)\b[^.!?\n]{0,20}\b(?:angehängt|übermittelt|vorhanden|erhalten)"
    r"|\bnicht beantwortet werden\b|\bbitte (?:laden|senden|stellen|wenden)\b"
    # French
    r"|\bne (?:permet|permettent|suffi\w{1,15}|montre\w{0,15}) pas\b|\bimpossible de (?:\w{1,20} )?(?:dire|trancher|répondre|savoir|déterminer|juger|choisir|se prononcer|conclure|compter)\b|\bon ne (?:voit|peut|distingue|sait)\b"
    r"|\b(?:reste|demeure)\b[^.!?\n]{0,20}\b(?:indéterminée?|sans réponse|incertaine?)\b|\brien (?:dans|ne|n')\b|\baucune? (?:vidéo|image|élément)\b|\bn'appara(?:ît|issent) pas\b|\bveuillez\b|\bpourriez-vous\b|\bn'(?:est|a) pas (?:possible|été fourni\w{0,15})"
    # Spanish
    r"|\bno (?:es posible|hay (?:manera|forma|modo|suficiente\w{0,15}|información)|se (?:puede|pueden|ha|aprecia|adjunt\w{1,15}|distingue))\b[^.!?\n]{0,50}|\bno (?:muestra|muestran|permite|permiten|basta|bastan|indica)\b|\bsin (?:determinar|poder determinar)\b"
    r"|\bnada (?:de lo|en)\b|\bharía falta\b|\b(?:imposible|difícil) (?:de )?(?:saber|decir|determinar|contestar|responder)\b|\b¿?podría (?:subir|enviar|adjuntar)|\bconsulte\b|\binsuficientes?\b"
    # Chinese
    r"|(?:无法|不能|没办法|没法|难以|不足以|无从|不好)(?:[^。！？\n，]{0,8})(?:判断|确定|确认|回答|得出|作答|选择|作出|识别|分辨|下结论|说|看出|推断)|(?:看不清|看不出|分辨不出|给不出|回答不了|判断不了|说不准)|(?:信息|依据|证据|细节)(?:不足|不够)|缺乏(?:依据|证据|信息)"
    r"|(?:没有|未)(?:收到|提供|看到|附上|显示|出现)[^。！？\n]{0,10}(?:视频|图像|图片|画面|影像|内容)|未(?:能)?显示|请(?:重新)?(?:上传|提供)|请咨询|不清楚",
    re.IGNORECASE,
)
_ANYWAY = deferred(
    r"\b(?:but|however|even so|still|yet|nevertheless|nonetheless|though|although|so i(?:'d| would)|best guess|most likely|probably|appears? to|aber|jedoch|doch|trotzdem|auch wenn|zwar|dennoch|eher"
    r"|mais|cependant|toutefois|même si|pourtant|plutôt|pero|sin embargo|aunque|no obstante|más bien)\b|但|不过|然而|可是|尽管|虽然|应该是",
    re.IGNORECASE,
)
_MOST_SENTENCES = 40


def declines(text: str, form: Format, options: Sequence[str] = ()) -> bool:
    """Whether a reply without an answer declines in words of its own ("I can't tell from these frames"), in English,
    German, French, Spanish or Chinese.

    For replies in which the format finds no value. Any text is a value of free text: there every sentence with words of
    inability has to speak of the writer, the media or the question and of no actor in the scene, and the reply must not go
    on to answer. This is a reading with a measured error rate, for counts that are shown beside the score; no status
    depends on it. False for an abstention in the declared form (`abstains`), which is one.

    >>> from proctor.core.formats import BinaryFormat, FreeTextFormat
    >>> declines("I can't tell whether a clip is visible: the screen is black.", BinaryFormat())
    True
    >>> declines("The surgeon cannot see the posterior wall.", FreeTextFormat()), declines("Answer: yes", BinaryFormat())
    (False, False)
    """
    if abstains(text, form, options):
        return False
    try:
        form.parse(text, options)
    except ParseError:
        return _has_refusal(answer_text(text))
    return form.any_text and _is_all_refusal(answer_text(text))


def _has_refusal(text: str) -> bool:
    return any(_FIRST.search(one) or _refuses(one) for one in _sentences(text))


def _refuses(sentence: str) -> bool:
    return _IMPERSONAL.search(sentence) is not None and _ACTOR.search(sentence) is None


def _is_all_refusal(text: str) -> bool:
    """Whether the first or last sentence of a free text refuses, and nothing in it answers all the same."""
    sentences = _sentences(text)
    if not sentences or _ANYWAY.search(text):
        return False
    named = re.compile(rf"\b{_EVIDENCE}\b|视频|图像|图片|画面|问题|信息|答案|选项", re.IGNORECASE)
    ends = (sentences[0], sentences[-1])
    return any(
        bool(named.search(one)) and (bool(_FIRST.search(one)) or _refuses(one)) and not _ACTOR.search(one)
        for one in ends
    )


def _sentences(text: str) -> list[str]:
    return [one for one in _SENTENCES.split(text) if one.strip()][:_MOST_SENTENCES]
