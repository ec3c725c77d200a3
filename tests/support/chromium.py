"""Debian's chromium, driven by Playwright: pages as a person sees them."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")


def needs_browser() -> None:
    """Skip where there is none."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    for name in ("playwright.sync_api", "axe_playwright_python.sync_playwright"):
        pytest.importorskip(name, reason="the extra `browser` is not installed")


@contextmanager
def browser() -> Generator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


class Person:
    """Somebody with a browser of their own. `said`: the page's errors."""

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
        """What an expression comes to."""
        return self.page.evaluate(script)

    def until(self, condition: str) -> None:
        """Wait for an expression to come true; as a function, which no page's policy forbids."""
        self.page.wait_for_function(f"() => {condition}")

    def sends(self) -> None:
        """Press Enter, and wait for the page after."""
        before = self.page.locator("[name=item]").input_value()
        step = self.page.locator("[name=step]").input_value()
        self.keys("Control+Enter")
        gone = (
            "([item, step]) => document.readyState === 'complete' && (!document.forms.form "
            "|| document.forms.form.item.value !== item || document.forms.form.step.value !== step)"
        )
        self.page.wait_for_function(gone, arg=[before, step])

    def serious(self) -> list[str]:
        """What axe-core finds serious or critical, and whether the page is too wide."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        wrong = [
            f"{one['id']}: {[node['html'] for node in one['nodes']]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        wide = self.page.evaluate("document.documentElement.scrollWidth > innerWidth")
        return [*wrong, *(["wider than the window"] if wide else [])]

    def leaves(self) -> None:
        self._context.close()
