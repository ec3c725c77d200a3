"""Debian's chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")


def needs_browser() -> None:
    """Skip the test where chromium or the extra `browser` is missing."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    for name in ("playwright.sync_api", "axe_playwright_python.sync_playwright"):
        pytest.importorskip(name, reason="the extra `browser` is not installed")


@contextmanager
def browser() -> Generator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Person:
    """A user with a browser context of their own. `said`: the errors of the page's console."""

    def __init__(self, browser: Any, link: str, width: int, *, scripts: bool = True) -> None:
        size = {"width": width, "height": 844 if width < 500 else 800}
        self._context = browser.new_context(viewport=size, java_script_enabled=scripts)
        self._context.set_default_timeout(20_000)
        self.page = self._context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda m: self.said.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(link)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def run(self, script: str) -> Any:
        """Return the value of an expression."""
        return self.page.evaluate(script)

    def until(self, condition: str) -> None:
        """Wait until an expression is true, as a function, which no page policy forbids."""
        self.page.wait_for_function(f"() => {condition}")

    def sends(self) -> None:
        """Submit the form with Control+Enter and wait for the next page."""
        before = self.page.locator("[name=item]").input_value()
        step = self.page.locator("[name=step]").input_value()
        self.keys("Control+Enter")
        next_page = (
            "([item, step]) => document.readyState === 'complete' && (!document.forms.form "
            "|| document.forms.form.item.value !== item || document.forms.form.step.value !== step)"
        )
        self.page.wait_for_function(next_page, arg=[before, step])

    def serious(self) -> list[str]:
        """Return axe-core's serious and critical violations, and whether the page is too wide."""
        from axe_playwright_python.sync_playwright import Axe

        violations = Axe().run(self.page).response["violations"]
        severe = [
            f"{one['id']}: {[node['html'] for node in one['nodes']]}"
            for one in violations
            if one["impact"] in ("serious", "critical")
        ]
        wide = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return [*severe, *(["wider than the window"] if wide else [])]

    def leaves(self) -> None:
        self._context.close()
