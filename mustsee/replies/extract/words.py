"""The English phrases by which replies declare, deny, join and refuse: the vocabulary of `extract`.

`languages` translates the phrases of other languages into these.
"""

from __future__ import annotations

import re

REASON = (
    "(?:because|since|as|due|based|given|which|where|although|but|so|is|was|for|from|considering|"
    "not|rather|instead|over|unlike)"
)
_NOT = (
    r"not|never|neither|nor|cannot|can't|isn't|wasn't|won't|wouldn't|shouldn't|couldn't|don't|"
    r"doesn't|didn't|aren't|unlikely|rather than|instead of|unlike|incorrect|wrong|false|except"
)
LABELLED = "option|choice|answer|caption|sentence|description|statement|candidate"
ORDINALS = ("first", "second", "third", "fourth", "fifth")
BY_ORDINAL = re.compile(rf"\b({'|'.join(ORDINALS)}) ({LABELLED})\b(?!s)", re.IGNORECASE)
NEGATION = re.compile(rf"(?<![a-z])(?:{_NOT})(?![a-z])", re.IGNORECASE)

_FILL = (
    r"is|are|was|be|to|would|should|must|will|can|could|may|might|has|have|seems?|appears?|looks|"
    r"like|clearly|probably|likely|most|more|definitely|certainly|surely|for|sure|obviously|"
    r"therefore|thus|hence|then|indeed|actually|really|simply|likewise|only|one|the|option|choice|"
    r"answer|letter|correct|best|right|final|labell?ed|with|that|it|it's|"
    r"i (?:think|believe|guess)|think|say|either|both|option_key|number|in|fact|of|"
    r"course|la|le|die|option[ _]?id|also|"
    r"possibly|perhaps|maybe|now|still|here|probable|plausible|suitable|appropriate|accurate|"
    r"given|as|follows|below|next"
)
_GAP = (
    rf"(?:[\s:=>,\"'(\[{{<-]|(?:{_FILL})(?![A-Za-z])(?!\s*[.)])|"
    rf"(?:{_NOT})(?![A-Za-z])){{0,24}}+"
)
_NOUN = r"answers?|ans\.?"
_WEAK = (
    r"option|choice|selection|prediction|pick|guess|verdict|response|conclusion|letter|label|"
    r"correct"
)
_STRONG = (
    r"best|correct|right|final|selected|chosen|preferred|my|proper|accurate|appropriate|"
    r"(?:most )?(?:probable|likely|suitable|plausible|fitting)"
)
_ABOUT = (
    r"(?:\s+(?:to|for|of|based|according|given|in|from|on|that|choice|option|letter|key)\b"
    r"[^.?!\n:;]{0,80}?(?=\s(?:is|would be|should be|must be)\s|\s?[:=]))?"
)
VERB = re.compile(
    r"[:=>]|(?<![A-Za-z])(?:is|are|was|be|seems?|appears?)(?![A-Za-z])", re.IGNORECASE
)
DOUBT = re.compile(
    r"(?:\b(?:don't|do not|doesn't|does not|didn't|wouldn't|would not|can't|cannot|not)\s+"
    r"(?:\w+\s+)?(?:think|believe|say|see|mean|agree|convinced|sure|certain|clear)\b|\bdoubt|"
    r"\bnot that\b|\bwhether\b)(?:(?!\b(?:but|so|yet|however|therefore|then)\b)[^.;!?\n])*$",
    re.IGNORECASE,
)
# A declaring noun with its gap. A bare "option A ..." mentions without declaring, so weak nouns
# need a strong adjective before them, or a verb or colon behind.
HEAD = re.compile(
    rf"(?<![A-Za-z])(?P<firm>(?:{_STRONG})\s+(?:(?:answer|multiple)[ -])?(?:choice |option )?"
    rf"(?:{_NOUN}|{_WEAK})|(?:{_NOUN}))(?![A-Za-z]){_ABOUT}{_GAP}"
    rf"|(?<![A-Za-z])(?:{_WEAK}|(?:the|most|more) (?:correct|right|best|likely|probable) one)"
    rf"(?![A-Za-z]){_ABOUT}(?=\s*(?:[:=]|-+>|(?:is|was|would|should|must|seems|appears|has)\b))"
    rf"{_GAP}",
    re.IGNORECASE,
)
CHOOSING = re.compile(
    rf"(?<![A-Za-z])(?:choos(?:e|ing)|chose|pick(?:ed|ing)?|select(?:ed|ing)?|opt(?:ed|ing)? for|"
    r"go(?:ing)? (?:with|for)|went with|vot(?:e|ing) for|settl(?:e|ing) on|answer with|"
    r"respond with|reply with|(?:would|'d|i) (?:say|guess|answer)|conclud(?:e|ing)(?: that)?|"
    r"down to|lead(?:s|ing)? (?:me |us )?to|point(?:s|ing)? to|leaves?(?: me| us)?(?: with)?|"
    r"(?:consistent with|correspond(?:s|ing)? to)(?= (?:the )?(?:option|choice)))"
    rf"(?![A-Za-z]){_GAP}",
    re.IGNORECASE,
)
IT_IS = re.compile(
    r"(?<![A-Za-z])(?:it|that|this)(?:'s| is| must be| would be| should be| has to be| seems to be|"
    rf" appears to be| could be| might be)(?![A-Za-z]){_GAP}",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"(?:^|[.!?;,\n]\s*|\b(?:and|but|is)\s)(?:so|thus|therefore|hence|i think|i believe|i guess|"
    r"i'd say|my guess|probably|definitely|certainly|clearly|most likely|likely|maybe|perhaps|"
    rf"actually|finally|must be|final)(?![A-Za-z]){_GAP}",
    re.IGNORECASE,
)
# A declaration that only calls an option possible; it never overrides a firm one.
POSSIBLE = re.compile(
    r"\b(?:could|might|may|maybe|perhaps|possibly|conceivably|seems?|appears?|looks|sounds|"
    r"plausible)\b",
    re.IGNORECASE,
)
# The words of its sentence before a declaration that is another's, or a first impression.
OF_OTHERS = re.compile(
    r"\b(?:some|others?|(?<!the )one|you|people|viewers?|many|(?:some|any)(?:one|body)|"
    r"observers?)\b(?: \w+){0,3}? (?:say|think|claim|argue|believe|guess|choose|pick|select|"
    r"answer|assume|prefer|go (?:for|with))s?\b[^.;!?\n]{0,40}$"
    r"|\b(?:could|might|may) be (?:that|argued)\b[^.;!?\n]{0,40}$|\bat (?:a )?(?:first|quick)\b"
    r"[^.;!?\n]*$|\b(?:initially|tempt(?:ed|ing))\b[^.;!?\n]*$"
    r"|\bi (?:first|initially|originally) (?:thought|guessed|assumed)\b[^.;!?\n]*$",
    re.IGNORECASE,
)
AT_FIRST = re.compile(r"[^.;!?\n]{0,20}\bat (?:a )?(?:first|quick) (?:glance|sight|look)\b", re.I)
TURNS = re.compile(r"[.!?;:\n]|\b(?:but|so|yet|however|therefore|thus|hence)\b", re.IGNORECASE)
BUT = re.compile(  # the option chosen after a denial: "not A, B or C, but D"
    r"\bbut\s+(?:(?:rather|instead|it's|it is|option|answer)\s+)*[(\[\"']*", re.IGNORECASE
)
NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|simply)\b", re.IGNORECASE)
_BETWEEN = (
    r"(?:the|a|an|my|our|indeed|clearly|definitely|probably|most|only|one|more|actually|likely|"
    r"therefore|thus|also|obviously|certainly|to|be|single)"
)
_GOOD = (
    r"(?:correct|right|best|true|answer|accurate|appropriate|likely|probable|suitable|plausible|"
    r"proper|fitting|valid|choice)"
)
POSITIVE_TAIL = re.compile(
    r"[)\]\"']*,?\s+(?:(?:is|was|seems|appears|looks|sounds|must be|would be|should be|"
    rf"remains)\s+(?:{_BETWEEN}\s+)*{_GOOD}(?![\w-])(?!\s+to be (?:wrong|incorrect|false))"
    r"(?!\s+(?:next|behind|hand))"
    r"|(?:best|correctly|accurately|most accurately)\s+\w+s\b|makes (?:the )?most sense"
    r"|(?:fits|matches|describes|captures|explains)\s+(?:[\w']+\s+){0,4}?"
    r"(?:best|better|accurately|correctly|exactly|perfectly|what)\b|remains\b(?!\s+\w))"
    r"(?!\s*\?)",
    re.IGNORECASE,
)
NEGATIVE_TAIL = re.compile(
    r"[)\]\"']*,?\s+(?:(?:is|was|seems|appears|looks|would be|can be|could be|are|does|do|did|"
    r"will|should|must)\s+(?:(?:clearly|definitely|also|both|likely|to be|be|probably)\s+)*"
    r"(?:not|incorrect|wrong|out|false|unlikely|eliminated|ruled out|implausible|inaccurate|"
    r"irrelevant|excluded|impossible|a distractor)\b|(?:isn't|wasn't|doesn't|can't|cannot|won't|"
    r"aren't|don't|wouldn't|couldn't)\b)",
    re.IGNORECASE,
)
ELIMINATED = re.compile(
    r"(?<![A-Za-z])(?:rul(?:e|ed|ing) out|eliminat(?:e|ed|ing)|exclud(?:e|ed|ing)|"
    r"discard(?:ed|ing)?|not)\s+(?:option |choice |answer )?[(\[\"']*",
    re.IGNORECASE,
)
JOIN = (
    r"(?:(?:,|/|&|\+|;|\band/or\b|\band\b|\bor\b)\s*){1,2}(?:(?:maybe|possibly|perhaps|also|"
    r"probably|even|potentially|option|choice|answer|either|both|else)\s+)*[\s(\[\"']*"
)
REFUSAL = re.compile(
    r"\b(?:as an ai|sorry|apologi[sz]e|(?:can't|cannot|can not|unable to|not able to|impossible to|"
    r"don't know|do not know|couldn't|not possible to)\s*(?:\w+\s+){0,2}?"
    r"(?:answer|tell|determine|watch|see|view|recogni[sz]e|process|provide|identify|access|know|"
    r"say|decide|which|the answer)|(?:no|not enough|insufficient|without) (?:\w+ )?(?:information|"
    r"context|video|image|evidence(?! (?:\w+ ){0,4}?(?:of|that|for|to)\b))|"
    r"none of the (?:above|options))\b",
    re.IGNORECASE,
)

TICK = re.compile("[✓✔✅☑]")
MARK = re.compile(  # ticks and crosses of a list, and boxes with or without them
    r"(?P<tick>\[[xX✓✔]\]|[✓✔✅☑])|\[[ ✗✘]?\]|[✗✘❌✖☐]"
)
_VERDICT_END = r"(?=\s*(?:$|[.,;:!)\]|\n/-]|because\b|since\b|as\b))"
VERDICT = re.compile(  # a verdict in words on one option: "(incorrect)", "Yes.", "is not right"
    r"(?:(?:this|that|it|option|statement|answer)\s+)?(?:(?:is|was)\s+)?(?:the\s+)?(?:"
    r"(?P<tick>correct|right|true|yes|valid)|"
    r"(?:not\s+(?:the\s+)?(?:correct|right|true|valid)|incorrect|wrong|false|no|not|invalid|"
    rf"ruled out|eliminated|impossible))(?:\s+(?:answer|option|choice|one))?{_VERDICT_END}",
    re.IGNORECASE,
)
LAST_VERDICT = re.compile(rf"(?:^|[.!?:;,(\[-]\s*|\b(?:so|hence)\s+){VERDICT.pattern}\W*$", re.I)
SHARE = re.compile(  # "85%", "probability: 85 %"; the number is group 1
    r"(?:(?:probability|confidence|likelihood|chance|about|approximately|around)[ :=]*)?"
    r"(?<![\d.])(\d{1,3}(?:\.\d{1,9})?)\s?%",
    re.IGNORECASE,
)
# The patterns below are for sentences of explanations, normalised and in lower case.
SUPPOSED = re.compile(
    r"^(?:if|unless|suppose|supposing|assuming)\b(?! i (?:had|have|must|were))"
    r"|^in an? [^.;]*\bwould\b|^(?:the |all )?(?:other|remaining) (?:options|choices|answers)\b"
    r"|\b(?:might|may|could|would) (?:\w+ )?(?:seem|appear|look)\b|\bat first\b|^initially\b"
    r"|\bquestion asks\b|\bwhether\b"
)
DENIED = re.compile(
    r"\b(?:no (?:sign|indication|evidence|hint|trace)s?|rul(?:e|es|ed|ing) out|without|at no point|"
    r"exclud(?:e|es|ed|ing)|eliminat(?:e|es|ed|ing)|as opposed to|in contrast to|"
    r"compared (?:to|with)|other than|(?:different|distinct|differs) from|nobody|no one|none of)\b"
)
LISTED = re.compile(  # the further items, up to the "or", behind one of "no A, B or C"
    r"[^\w,;:.]*,?\s+(?:(?!\b(?:is|are|was|were|it|he|she|they|but)\b)[^,;:.!?]{1,40},\s*)*"
    r"(?:(?!\b(?:is|are|was|were|it|he|she|they|but)\b)[^,;:.!?]{0,40}\s)?(?:or|nor)\b"
)
NONE_OF = re.compile(r"\bno (?!doubt\b|question\b|wonder\b)")  # "no A, B or C"
NO = re.compile(
    NONE_OF.pattern + r"(?:[\w-]+ )?$|\b(?:anything|everything|all) but (?:an? |the )?$"
)
ASIDE = re.compile(
    r"\b(?:than|if|as though|would|might|could|may|suggest(?:s|ed|ing)?|expect(?:s|ed)?)\b"
)
RULED_OUT = re.compile(
    r"[\"')]*\s*(?:(?:would|could|might|should|never|cannot|can't)\b|(?:is|was|are|were|can be)\s+"
    r"(?:not|ruled|out|unlikely|wrong|incorrect|excluded|eliminated|impossible|contradicted)\b|"
    r"(?:isn't|wasn't|aren't|doesn't|didn't|does not|did not)\b|"
    r"[-:(]\s*(?:no|not|wrong|incorrect)\b)"
)
ENDS_A_CLAUSE = re.compile(
    r"[\"')]*\s*(?:$|[.,;:!]|-\s|(?:in|on|at|from|to|along|towards?|through|throughout|with|as|"
    r"because|since|during|within|inside|for|over|across|around|side|rather|instead|not|by|when|"
    r"while|which|and|near|under|behind|before|after|based|due|according|where|"
    r"of the (?:screen|frame|video|camera)|speed|rate|pace|manner|fashion|motion|mode|direction|"
    r"effect|activity|action)\b)"
)
TURN = re.compile(
    r"\W*(?:but|however|wait|actually|correction|no|yet|nevertheless|in fact|then again|"
    r"on (?:second|closer|further)|so|thus|therefore|hence|overall|in conclusion|in the end|"
    r"finally|(?:the |my )?(?:correct|right|best|final))\b"
)

LEADING = re.compile(  # a verb that adds little to the meaning of an option
    r"(?:doing|playing|moving|going|being|getting|becoming|turning|spinning|rotating|performing|"
    r"showing|heading|travell?ing)\s"
)
PREDICATE = re.compile(  # the words before a predicate
    r"(?<!there )\b(?:is|are|was|were|be|been|being|seems?|appears?|remains?|becom(?:es?|ing)|"
    r"turn(?:s|ing)?|get(?:s|ting)|mov(?:es?|ing)|go(?:es|ing)|head(?:s|ing)|rotat(?:es?|ing)|spin(?:s|ning)|"
    r"travel(?:s|l?ing)|play(?:s|ing))(?: clearly| actually| indeed| mostly| slowly| quickly)?"
    r"(?: (?:in|at|as|to be))?(?: an?| the)?\s*[\"'(*]*$"
)
