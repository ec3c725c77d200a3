"""The pages of comparisons in a browser, at two widths and without a script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mustsee.evaluate import compare_page
from mustsee.evaluate.compare import BLIND, PeopleScores, compare_models
from mustsee.run import compare_runs_show
from mustsee.run.report import environment
from tests.evaluate.test_compare import answered, evaluate
from tests.evaluate.test_score import ask, right
from tests.ray_jobs.runtime.test_made_runs import ask as made
from tests.ray_jobs.runtime.test_made_runs import read_two
from tests.support.chromium import Person, browser, needs_browser

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    needs_browser()
    with browser() as made:
        yield made


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> str:
    evaluations = [
        evaluate(answered((0.9, 0.9, 0.8), "a model with a name that is long " * 4, 1), "A"),
        evaluate(answered((0.2, 0.3, 0.3), "b", 2)[:100], "B", shown=BLIND),
        evaluate([right(ask(n, f"type {n}"), "c") for n in range(60)], "C", dataset="other"),
    ]
    people = [PeopleScores(name="study", scores={"q0": 1.0})]
    tables = [*compare_models(evaluations[:2], people), *compare_models(evaluations[2:])]
    page = compare_page.render(tables, {}, {"gone": "it has not ended"}, environment())
    path = tmp_path_factory.mktemp("page") / "index.html"
    Path(path).write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_tables_are_readable(chromium: Any, link: str, width: int) -> None:
    one = Person(chromium, link, width)
    assert one.serious() == []
    assert one.said == []
    assert one.page.locator("table.board").count() == 2
    # The names of models stay in view while the columns scroll.
    one.run("document.querySelectorAll('.scroll').forEach(s => s.scrollLeft = 1e6)")
    name = one.page.locator("table.board").nth(1).locator("td.name").first.bounding_box()
    assert 0 <= name["x"] < width / 2
    one.leaves()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_questions_of_two_runs_are_readable(chromium: Any, tmp_path: Path, width: int) -> None:
    evil = "</td><script>document.title = 'taken'</script>" + "long" * 80
    runs = [made("x"), made("y", question=evil, skill=evil)], [made("x"), made("y", drop=evil)]
    page = tmp_path / "index.html"
    page.write_text(compare_runs_show.render(read_two(tmp_path, *runs), environment()))
    one = Person(chromium, page.as_uri(), width)
    assert one.serious() == []
    assert one.said == []
    assert one.page.title() == "2 runs compared"
    assert one.run("document.documentElement.scrollWidth") <= width
    assert one.page.locator("table.questions").first.is_visible()
    assert not one.page.locator("table.questions").last.is_visible()
    one.page.locator("summary", has_text="Kept in every run: 1").click()
    assert one.page.locator("table.questions").last.is_visible()
    one.leaves()
