"""Messages to the coordinator: what comes together is one, and a report waits for who asks."""

import asyncio
from collections.abc import Sequence

from actors.coordinator import Ask, Coordinator, Grant
from actors.coordinator_client import CoordinatorClient
from mustsee.run.ledger import Entry


class Heard(Coordinator):
    """A coordinator that notes how much came with each message."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[tuple[int, int]] = []

    def exchange(self, owner: str, entries: Sequence[Entry], asks: Sequence[Ask]) -> list[Grant]:
        self.messages.append((len(entries), len(asks)))
        return super().exchange(owner, entries, asks)


def entry(key: str, seconds: float) -> Entry:
    return Entry(outcome="done", model="m", prompt="p", key=key, seconds=seconds)


def test_what_comes_together_is_one_message() -> None:
    async def work() -> None:
        asks = [client.ask(Ask(key=f"k{n}", account="a", prompt="p")) for n in range(5)]
        grants = await asyncio.gather(*asks, client.report(entry("old", 60.0)))
        assert [grant.answer for grant in grants[:5]] == ["go"] * 5

    coordinator = Heard()
    client = CoordinatorClient(coordinator, lambda: "me")
    asyncio.run(work())
    assert coordinator.messages == [(1, 5)]


def test_the_report_of_a_long_call_goes_with_the_next_ask_and_none_waits_for_ever() -> None:
    async def work() -> None:
        report = asyncio.ensure_future(client.report(entry("long", 60.0)))
        await asyncio.sleep(0)
        await client.ask(Ask(key="next", account="a", prompt="p"))
        await report
        await client.report(entry("alone", 60.0))

    coordinator = Heard()
    client = CoordinatorClient(coordinator, lambda: "me")
    asyncio.run(work())
    assert coordinator.messages == [(1, 1), (1, 0)]
    assert coordinator.snapshot().llm.total.calls == 2
