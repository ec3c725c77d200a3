"""Replies in other languages, with their declaring phrases translated into English.

Only phrases that declare, deny, join and excuse are translated, in the reply and in the options
alike, because the rules of `extract` have English patterns. The language of a reply is recognised
by its script, or by a word that declares an answer in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_SIGNS = str.maketrans(
    {"。": ". ", "、": ", ", "，": ", ", "،": ", ", "؛": "; ", "؟": "? ", "۔": ". "}
)


@dataclass(frozen=True, kw_only=True)
class ReplyLanguage:
    """Phrases of a language and their English.

    `sign`: pattern that only this language has. `phrases`: pattern -> English, longer ones first.
    `spaced`: the script has spaces between words.
    """

    sign: str
    phrases: tuple[tuple[str, str], ...]
    spaced: bool = True

    @cached_property
    def _patterns(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        edges = (r"(?<!\w)(?:", r")(?!\w)") if self.spaced else ("(?:", ")")
        return tuple(
            (re.compile(phrase.join(edges), re.IGNORECASE), f" {english} ")
            for phrase, english in self.phrases
        )

    def to_english(self, text: str) -> str:
        """Return the text with the phrases of this language in English."""
        text = text.translate(_SIGNS)
        for pattern, english in self._patterns:
            text = pattern.sub(english, text)
        return re.sub(r" {2,}", " ", text).replace(" ,", ",").replace(" .", ".")


CHINESE = ReplyLanguage(
    sign=r"[\u4e00-\u9fff]",
    spaced=False,
    phrases=(
        ("(?:抱歉|对不起)", "sorry"),
        (r"(?:回答|解答)(?=\s*:)", "answer"),
        (r"(?<=[:(])\s*(?:对|是)(?![\u4e00-\u9fff])", "correct"),
        (r"(?<=[:(])\s*(?:不对|错|否|不是)(?![\u4e00-\u9fff])", "incorrect"),
        ("(?:无法|不能|難以|难以)(?:回答|确定|判断|確定)?", "cannot answer"),
        ("(?:既|也)?(?:没有|沒有|并未)", "not"),
        ("而是", "but it is"),
        ("才?是(?:正确|正確)的?(?:答案|选项|選項)", "is the correct answer"),
        ("(?:正确|最终|最佳|最好|正確)的?(?:答案|选项|選項)", "correct answer"),
        ("答案", "answer"),
        ("[并既也]?不(?:应该|应)?(?:是|为|选)", "is not"),
        ("(?:选项|選項|项)?(?:是)?(?:不正确|不对|错误)的?", "is incorrect"),
        ("(?:选项|選項|项)?(?:是)?(?:正确|正確|对)的", "is correct"),
        ("(?:选项|選項|项)?(?:是)?(?:正确|正確)", "is correct"),
        ("(?:应该|应)(?:是|为)", "should be"),
        ("(?:可能|也许)是?", "maybe"),
        ("(?:故|我|所以|应该|应)*(?:选择|選擇|选(?!项)|認為是|认为是)", "i choose"),
        ("(?:选项|選項)", "option"),
        ("(?:排除)", "rule out"),
        ("(?:或者?|还是)", "or"),
        ("(?:和|与|及)", "and"),
        ("(?:因为|由于|因為)", "because"),
        ("但是?", "but"),
        ("(?:是|为)", "is"),
    ),
)
JAPANESE = ReplyLanguage(
    sign=r"正解|答え|(?=[\s\S]*[\u3040-\u30ff])(?:解答|回答|選択肢|正しい)",
    spaced=False,
    phrases=(
        ("が(?:正解|答え|正しい(?:答え|選択肢)?)(?!では)", "is the correct answer"),
        ("正しい(?:答え|選択肢|もの)は?", "correct answer is"),
        ("(?:正解|答え|解答|回答)は?", "answer is"),
        ("選択肢の?", "option"),
        ("(?:ではありません|ではない)", "is not the answer"),
        ("かもしれません|かもしれない|可能性がある", "maybe"),
        ("です", ""),
    ),
)
KOREAN = ReplyLanguage(
    sign=r"정답|(?<!\w)답(?:은|안은|\s*:)",
    spaced=False,
    phrases=(
        ("(?:정?답(?:은|는|안은)?)", "answer is"),
        ("(?:아닙니다|아니다)", "is not the answer"),
        ("(?:일 수도 있습니다|일 수도)", "maybe"),
        ("(?:입니다|이다)", ""),
    ),
)
ARABIC = ReplyLanguage(
    sign=r"[\u0620-\u06ff]",
    phrases=(
        ("عذرا[ً]?|آسف", "sorry"),
        ("لا (?:أستطيع|يمكن(?:ني)?) (?:ال)?(?:إجابة|تحديد|معرفة)", "cannot answer"),
        ("لا أعتقد أن", "i do not think that"),
        ("(?:ال)?[إا]جابة|(?:ال)?جواب", "answer"),
        ("غير صحيحة?|خاطئة?|خطأ", "is incorrect"),
        ("(?:هو |هي )?صحيحة?", "is correct"),
        ("ال(?:صحيح|نهائي|أفضل)ة?", "correct"),
        ("ليست?", "is not"),
        ("بل", "but it is"),
        ("هو|هي", "is"),
        ("و?(?:ال)?(?:خيار|اختيار)", "option"),
        ("أ?ختار|اخترت", "i choose"),
        ("لأن[هـها]*", "because"),
        ("ربما", "maybe"),
        ("و?لكن", "but"),
        ("أو", "or"),
        ("و", "and"),
    ),
)
GERMAN = ReplyLanguage(
    sign=r"\b(?:antwort(?:möglichkeit)?|lösung|lautet|wähle|richtige?|korrekte?|beantworten)\b",
    phrases=(
        ("(?:richtige|korrekte|beste) (?:antwort(?:möglichkeit)?|lösung)", "correct answer"),
        ("antwort(?:möglichkeit)?|lösung", "answer"),
        ("lautet(?: also| daher| somit)?", "is"),
        ("ist die", "is the"),
        ("(?:es )?(?:könnte|kann)(?: aber)?(?: auch)?|vielleicht|möglicherweise", "maybe"),
        ("es ist", "it is"),
        ("ich (?:wähle|nehme)", "i choose"),
        ("nicht beantworten", "cannot answer"),
        ("richtige?|korrekte?", "correct"),
        ("falsche?", "incorrect"),
        ("ist", "is"),
        ("nicht", "not"),
        ("weil|denn", "because"),
        ("sondern", "but it is"),
        ("aber", "but"),
        ("oder", "or"),
        ("und", "and"),
    ),
)
FRENCH = ReplyLanguage(
    sign=r"\b(?:r[ée]ponse|choisis|répondre)\b|\bl'option\b",
    phrases=(
        ("(?:ce |cela )?(?:pourrait|peut)(?: aussi| également)? être|peut-être", "maybe"),
        ("(?:bonne|meilleure) r[ée]ponse", "correct answer"),
        ("r[ée]ponse", "answer"),
        ("je choisis", "i choose"),
        ("ne peux pas r[ée]pondre", "cannot answer"),
        ("n'est pas", "is not"),
        ("est", "is"),
        ("l'option", "option"),
        ("correcte?|exacte?", "correct"),
        ("fausse|faux|incorrecte?", "incorrect"),
        ("parce qu(?:e|'il|'elle)|car", "because"),
        ("mais", "but"),
        ("ou", "or"),
        ("et", "and"),
    ),
)
SPANISH = ReplyLanguage(
    sign=r"\b(?:respuesta|elijo|opción)\b",
    phrases=(
        ("respuesta correcta", "correct answer"),
        ("respuesta", "answer"),
        ("(?:también )?(?:podría|puede)(?: también)? ser|quizás?|tal vez", "maybe"),
        ("elijo|escojo", "i choose"),
        ("no es", "is not"),
        ("es", "is"),
        ("(?:la )?opción", "option"),
        ("incorrecta", "incorrect"),
        ("correcta", "correct"),
        ("porque", "because"),
        ("sino", "but it is"),
        ("pero", "but"),
        ("o", "or"),
        ("y", "and"),
    ),
)
OTHERS = ReplyLanguage(  # the declaration alone, of Italian, Portuguese and Russian
    sign=r"\b(?:risposta|resposta|ответ)\b",
    phrases=(
        (
            "(?:la |a )?(?:risposta|resposta)(?: (?:corretta|giusta|esatta|correta|certa))?",
            "answer",
        ),
        ("(?:правильный|верный) ответ|ответ", "answer"),
        ("non è|não é", "is not"),
        ("не", "not"),
        ("(?:è|é)(?: la| a)?", "is"),
        ("(?:l')?opzione|opção|вариант", "option"),
        ("potrebbe(?: anche)? essere|poderia(?: também)? ser|может быть|возможно", "maybe"),
    ),
)
LANGUAGES = (JAPANESE, KOREAN, CHINESE, ARABIC, GERMAN, FRENCH, SPANISH, OTHERS)


def reply_language(reply: str) -> ReplyLanguage | None:
    """Return the language in which a reply declares its answer, or None for English."""
    matching = (one for one in LANGUAGES if re.search(one.sign, reply, re.IGNORECASE))
    return next(matching, None)
