"""Language tags of files and streams as two-letter codes."""

from __future__ import annotations

import re

# ISO 639-1 codes, and the three-letter codes that media containers use.
_TWO = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw "
    "ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_THREE = {
    "ara": "ar", "bul": "bg", "ces": "cs", "chi": "zh", "cze": "cs", "dan": "da", "deu": "de",
    "dut": "nl", "ell": "el", "eng": "en", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de",
    "gre": "el", "heb": "he", "hin": "hi", "hun": "hu", "ind": "id", "ita": "it", "jpn": "ja",
    "kor": "ko", "nld": "nl", "nor": "no", "per": "fa", "pol": "pl", "por": "pt", "ron": "ro",
    "rum": "ro", "rus": "ru", "spa": "es", "swe": "sv", "tha": "th", "tur": "tr", "ukr": "uk",
    "vie": "vi", "zho": "zh",
}  # fmt: skip
_CODES = {**{code: code for code in _TWO.split()}, **_THREE}


def language_code(tag: str | None) -> str | None:
    """Return the two-letter code of a tag: `pt` for `pt-BR` and `por`; None for any other
    string.
    """
    return _CODES.get(re.split("[-_]", (tag or "").lower())[0])
