"""Probes that are kept: in a file, and in a store by model and address, where an evaluation of the
same model finds the newest one. Decision 0117.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mustsee.errors import MustseeError, UserError
from mustsee.files.store import Store, digest
from mustsee.server_probe.record import FILE, OTHER_NAME, VERSION, ProbeRecord

KIND = "server_probe"  # the store's folder of probes


@dataclass(frozen=True, kw_only=True)
class SentMaterial:
    """What an evaluation sends of each video. `images`: the most images in one request. `video`:
    whether a video is sent, under the name `part`; `sound`: with its sound.
    """

    images: int = 0
    video: bool = False
    sound: bool = False
    part: str = ""


def keep_in_store(store: Store, record: ProbeRecord) -> None:
    """Keep a probe in place of an earlier one of the same model at the same address."""
    store.put(KIND, _key(record.model, record.base_url), record.dump().encode())


def find_in_store(store: Store, model: str, base_url: str) -> Mapping[str, Any] | None:
    """Return the newest probe of a model at an address; None if the store has none."""
    try:
        content = store.get(KIND, _key(model, base_url))
        return None if content is None else _check(json.loads(content), store.root)
    except (MustseeError, ValueError):
        return None


def read_probe(path: str, model: str, base_url: str) -> Mapping[str, Any]:
    """Return the probe in a folder, or in a file. Raises UserError if it is not one of this model
    at this address.
    """
    file = Path(path) if Path(path).is_file() else Path(path) / FILE
    try:
        record = _check(json.loads(file.read_text(encoding="utf-8")), path)
    except (OSError, ValueError) as error:
        raise UserError(
            f"server_probe={path!r}: {file} cannot be read ({error}); give the out= of a "
            "mustsee probe"
        ) from error
    if (record["model"], record["base_url"]) != (model, base_url):
        raise UserError(
            f"server_probe={path!r} is of model {record['model']!r} at {record['base_url']}, but "
            f"this evaluation asks {model!r} at {base_url}: probe that one, or leave it out"
        )
    return record


def _check(record: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(record, dict) or record.get("version") != VERSION:
        raise UserError(f"{path!r} holds no probe of this version: run mustsee probe again")
    return record


def _key(model: str, base_url: str) -> str:
    return digest([model, base_url])


def warn(record: Mapping[str, Any], sent: SentMaterial) -> Iterator[str]:
    """Yield a sentence for everything that a probe says the server does to what is sent."""
    about = {"images": sent.images > 0, "video": sent.video, "times": sent.video,
             "sound": sent.sound}  # fmt: skip
    for fault in record["faults"]:
        concerns = about.get(fault["about"], False) and fault["kind"] != OTHER_NAME
        if fault["kind"] == "capped" and fault["about"] == "images":
            concerns = sent.images > _most_images(record)
        if fault["kind"] == "shuffled" and fault["about"] == "images":
            concerns = sent.images > 1
        if concerns:
            yield fault["says"]
    if refusal := _refusal(record["images"], sent.images):
        yield refusal
    states = {video["state"] for video in record["videos"]}
    if sent.video and record["part"] and record["part"] != sent.part:
        advice = f"set llm.video.part={record['part']}"
        yield f"videos are seen as {record['part']}, not as {sent.part}: {advice}"
    elif sent.video and not record["part"] and "refused" in states:
        yield "the server refuses videos"


def _most_images(record: Mapping[str, Any]) -> int:
    """The most images of one request that were seen, by the probe."""
    frames = [image["frames"] for image in record["images"] if image["frames"]]
    return max((f["seen"] + f["misread"] for f in frames), default=0)


def _refusal(images: Sequence[Mapping[str, Any]], most: int) -> str:
    """What the probe says of images that were refused, if this evaluation sends more than were
    taken.
    """
    refused = [i for i in images if i["state"] == "refused"]
    taken = max((i["count"] for i in images if i["frames"]), default=0)
    if not refused or most <= taken:
        return ""
    return f"a request with {refused[0]['count']} images is refused ({refused[0]['why']})"
