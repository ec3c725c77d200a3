"""Forms of questions, and which `ask=facts` asks, by their keys under `ask.settings.forms`."""

from __future__ import annotations

from collections.abc import Mapping

from mustsee.facts.forms.after import AfterForm, BeforeForm, BetweenForm, NextTimeForm
from mustsee.facts.forms.at import AtForm, SaidForm, WhileForm, WhyForm
from mustsee.facts.forms.both import BothForm, ButNotForm
from mustsee.facts.forms.order import CountBeforeForm, OrderForm
from mustsee.facts.forms.when import WhenForm
from mustsee.facts.forms.whole import FirstForm, LastForm, LongestForm, PartForm, QuarterForm
from mustsee.facts.stem import QuestionForm

DEFAULT_FORMS: Mapping[str, QuestionForm] = {
    "after": AfterForm(),
    "before": BeforeForm(),
    "while": WhileForm(),
    "said": SaidForm(),
    "holds": AtForm(of="object"),
    "state": AtForm(of="state"),
    "reads": AtForm(of="text"),
    "next_time": NextTimeForm(),
    "next_time_person": NextTimeForm(by="person"),
    "between": BetweenForm(),
    "both": BothForm(of="object"),
    "both_person": BothForm(of="person"),
    "both_place": BothForm(of="place"),
    "both_state": BothForm(of="state"),
    "but_not": ButNotForm(of="object"),
    "but_not_person": ButNotForm(of="person"),
    "but_not_place": ButNotForm(of="place"),
    "but_not_state": ButNotForm(of="state"),
    "order": OrderForm(),
    "count_before": CountBeforeForm(),
    "longest": LongestForm(),
    "first": FirstForm(),
    "last": LastForm(),
    "part": PartForm(),
    "why": WhyForm(),
    "when": WhenForm(),
    "longest_text": LongestForm(of="text"),
    "first_text": FirstForm(of="text"),
    "part_text": PartForm(of="text"),
    "after_text": AfterForm(given="text", of="text"),
    "before_text": BeforeForm(given="text", of="text"),
    "while_text": WhileForm(of="text"),
    "said_text": SaidForm(given="text"),
    "state_text": AtForm(of="state", given="text"),
    "reads_state": AtForm(of="text", given="state"),
    "holds_text": AtForm(of="object", given="text"),
    "where_text": AtForm(of="place", given="text"),
    "with_text": AtForm(of="person", given="text"),
    "reads_object": AtForm(of="text", given="object"),
    "while_object": WhileForm(of="object"),
    "while_place": WhileForm(of="place"),
    "while_person": WhileForm(of="person"),
    "said_object": SaidForm(given="object"),
    "said_place": SaidForm(given="place"),
    "next_time_text": NextTimeForm(given="text", by="state", of="text"),
    "between_text": BetweenForm(given="text", of="text", apart=20),
    "order_text": OrderForm(of="text"),
    "after_view": AfterForm(given="view", of="view", pool=5),
    "before_view": BeforeForm(given="view", of="view", pool=5),
    "between_view": BetweenForm(given="view", of="view", apart=20, pool=5),
    "first_view": FirstForm(of="view"),
    "last_view": LastForm(of="view"),
    "part_view": PartForm(of="view"),
    "quarter_first": QuarterForm(),
    "quarter_last": QuarterForm(end="last"),
    "said_view": SaidForm(given="view"),
    "next_time_view": NextTimeForm(given="view", by="view", of="view", pool=5),
}
