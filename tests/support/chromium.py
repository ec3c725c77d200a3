"""A browser for tests: Debian's chromium, driven over its debugging socket.

async with opened(tmp_path, width=390) as page:
    await page.goto(path.as_uri())
    assert await page.run("document.title") == "..."
    assert page.errors == []
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-extensions", "--remote-debugging-port=0",
)  # fmt: skip


class Page:
    """One tab. `errors`: what the console said is wrong, and what nobody caught."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self._session: str | None = None
        self.errors: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        await self._socket.send_json(
            message | ({"sessionId": self._session} if self._session else {})
        )
        while True:
            told = await self._socket.receive_json()
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]
            self._heard(told)

    def _heard(self, told: dict[str, Any]) -> None:
        found = told.get("params", {})
        match told.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(found["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if found["type"] == "error":
                self.errors.append(str(found["args"]))
            case "Log.entryAdded" if found["entry"]["level"] == "error":
                self.errors.append(found["entry"]["text"])
            case _:
                pass

    async def attach(self, width: int, height: int) -> None:
        made = await self.call("Target.createTarget", url="about:blank")
        found = await self.call("Target.attachToTarget", targetId=made["targetId"], flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    async def run(self, script: str) -> Any:
        """What an expression comes to; a promise is waited for."""
        done = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def goto(self, url: str) -> None:
        await self.call("Page.navigate", url=url)
        await self.until(f"document.readyState === 'complete' && location.href === {url!r}")

    async def until(self, condition: str) -> None:
        """Wait, up to half a minute, for what a script says to come true."""
        async with asyncio.timeout(30):
            while not await self.run(f"Boolean({condition})"):
                await asyncio.sleep(0.02)

    async def scripts(self, allowed: bool) -> None:
        await self.call("Emulation.setScriptExecutionDisabled", value=not allowed)

    async def shot(self, path: Path) -> None:
        found = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))


@asynccontextmanager
async def opened(folder: Path, width: int = 1280, height: int = 900) -> AsyncIterator[Page]:
    """A tab of a browser of its own, which keeps its files in `folder`."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *OPTIONS, f"--user-data-dir={folder / 'chromium'}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        address = ""
        async with asyncio.timeout(60):
            while "ws://" not in address:
                address = (await process.stderr.readline()).decode()
        url = address[address.index("ws://") :].strip()
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, max_msg_size=0) as socket,
        ):
            page = Page(socket)
            await page.attach(width, height)
            yield page
            await socket.send_json({"id": 0, "method": "Browser.close"})
    except BaseException:
        process.kill()
        raise
    finally:
        async with asyncio.timeout(30):
            await process.stderr.read()
            await process.wait()
