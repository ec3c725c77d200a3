"""A `whisperx` without weights: what hear=whisperx calls of version 3.8.6, with its parameters.

tests/real/test_whisperx.py holds `api()` against the installed package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np
import pytest

VERSION = "3.8.6"
SEGMENTS = (
    {"start": 0.5, "end": 2.5, "text": " Hello there."},
    {"start": 3.0, "end": 5.0, "text": " Fine, and 7 more."},
)
TURNS = ((0.0, 2.8, "SPEAKER_00"), (2.8, 6.0, "SPEAKER_01"))


@dataclass
class FakeWhisperX:
    """What its models are to return, and the calls that it got: name -> arguments, the last one.

    `unplaced`: segments that the aligner gives no words. `failure`: raised where the key says,
    `load_align_model`, `load_diarizer` or `diarize`.
    """

    language: str = "en"
    turns: tuple[tuple[float, float, str], ...] = TURNS
    unplaced: tuple[str, ...] = ()
    failure: dict[str, Exception] = field(default_factory=dict)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    def called(self, name: str, arguments: dict[str, Any]) -> None:
        self.calls[name] = {k: v for k, v in arguments.items() if k not in ("self", "fake")}
        if name in self.failure:
            raise self.failure[name]

    def install(self, patch: pytest.MonkeyPatch) -> FakeWhisperX:
        """Put the package's modules into `sys.modules` until the end of the test."""
        for name, members in self.modules().items():
            module = ModuleType(name)
            module.__path__ = []
            vars(module).update(members)
            patch.setitem(sys.modules, name, module)
            parent, _, child = name.rpartition(".")
            if parent:
                setattr(sys.modules[parent], child, module)
        return self

    def modules(self) -> dict[str, dict[str, Any]]:
        return {
            "whisperx": {},
            "whisperx.asr": {"load_model": self.loader()},
            "whisperx.alignment": {
                "DEFAULT_ALIGN_MODELS_TORCH": {"en": "WAV2VEC2_ASR_BASE_960H"},
                "DEFAULT_ALIGN_MODELS_HF": {"cs": "comodoro/wav2vec2-xls-r-300m-cs-250"},
                **self.aligner(),
            },
            "whisperx.diarize": {"Segment": Segment, **self.diarizer()},
            "whisperx.vads": {},
            "whisperx.vads.vad": {"Vad": Vad},
        }

    def loader(self) -> Callable[..., Any]:
        fake = self

        class FasterWhisperPipeline:
            def __init__(self, vad_model: Any) -> None:
                self.vad_model = vad_model

            def transcribe(
                self, audio: Any, batch_size: int | None = None, num_workers: int = 0,
                language: str | None = None, task: str | None = None, chunk_size: int = 30,
                print_progress: bool = False, combined_progress: bool = False,
                verbose: bool = False, progress_callback: Any = None,
            ) -> dict[str, Any]:  # fmt: skip
                fake.called("transcribe", locals())
                assert (audio.dtype, audio.ndim) == (np.float32, 1)
                # The package returns lists in place of texts for batches of one.
                assert batch_size is not None
                assert batch_size > 1
                if self.vad_model is not None:
                    found = self.vad_model({"waveform": audio, "sample_rate": 16_000})
                    fake.calls["speech"] = {"spans": [(s.start, s.end) for s in found]}
                segments = [{**s, "avg_logprob": -0.1} for s in SEGMENTS]
                return {"segments": segments, "language": language or fake.language}

        def load_model(
            whisper_arch: str, device: str, device_index: int = 0, compute_type: str = "default",
            asr_options: Any = None, language: str | None = None, vad_model: Any = None,
            vad_method: str | None = "pyannote", vad_options: Any = None, model: Any = None,
            task: str = "transcribe", download_root: str | None = None,
            local_files_only: bool = False, threads: int = 4, use_auth_token: Any = None,
        ) -> FasterWhisperPipeline:  # fmt: skip
            fake.called("load_model", locals())
            return FasterWhisperPipeline(vad_model)

        return load_model

    def aligner(self) -> dict[str, Callable[..., Any]]:
        fake = self

        def load_align_model(
            language_code: str, device: str, model_name: str | None = None, model_dir: Any = None,
            model_cache_only: bool = False,
        ) -> tuple[str, dict[str, str]]:  # fmt: skip
            fake.called("load_align_model", locals())
            return "wav2vec2", {"language": language_code}

        def align(
            transcript: Any, model: Any, align_model_metadata: Any, audio: Any, device: str,
            interpolate_method: str = "nearest", return_char_alignments: bool = False,
            print_progress: bool = False, combined_progress: bool = False,
            progress_callback: Any = None,
        ) -> dict[str, Any]:  # fmt: skip
            fake.called("align", locals())
            assert model == "wav2vec2"
            segments = [{**s, "words": [*fake.words(s)]} for s in transcript]
            return {"segments": segments, "word_segments": []}

        return {"load_align_model": load_align_model, "align": align}

    def words(self, segment: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Words of equal length; a digit has a text only, as the package gives it."""
        words = segment["text"].split()
        if segment["text"] in self.unplaced:
            return
        step = (segment["end"] - segment["start"]) / len(words)
        for i, word in enumerate(words):
            start = segment["start"] + i * step
            times = {"start": np.float64(start), "end": np.float64(start + step), "score": 0.9}
            yield {"word": word, **({} if word.isdigit() else times)}

    def diarizer(self) -> dict[str, Any]:
        fake = self

        class DiarizationPipeline:
            def __init__(
                self, model_name: Any = None, token: Any = None, device: Any = "cpu",
                cache_dir: Any = None,
            ) -> None:  # fmt: skip
                if "load_diarizer" in fake.failure:
                    print("\nCould not download Model from pyannote/segmentation-3.0.\nIt might")
                fake.called("load_diarizer", locals())

            def __call__(
                self, audio: Any, num_speakers: int | None = None,
                min_speakers: int | None = None, max_speakers: int | None = None,
                return_embeddings: bool = False, progress_callback: Any = None,
            ) -> Any:  # fmt: skip
                fake.called("diarize", locals())
                return fake.turns

        def assign_word_speakers(
            diarize_df: Any, transcript_result: Any, speaker_embeddings: Any = None,
            fill_nearest: bool = False,
        ) -> Any:  # fmt: skip
            fake.called("assign_word_speakers", locals())
            for segment in transcript_result["segments"]:
                for start, end, speaker in diarize_df:
                    if start <= segment["start"] < end:
                        segment["speaker"] = speaker
            return transcript_result

        return {
            "DiarizationPipeline": DiarizationPipeline,
            "assign_word_speakers": assign_word_speakers,
        }


class Segment:
    def __init__(self, start: float, end: float, speaker: str | None = None) -> None:
        self.start, self.end, self.speaker = start, end, speaker


class Vad:
    def __init__(self, vad_onset: float) -> None:
        assert 0 < vad_onset < 1

    @staticmethod
    def preprocess_audio(audio: Any) -> Any: ...

    @staticmethod
    def merge_chunks(
        segments: Any, chunk_size: float, onset: float, offset: float | None
    ) -> Any: ...


def api() -> dict[str, Callable[..., Any]]:
    """What hear=whisperx calls, by its place in the package: `module:name`."""
    fake = FakeWhisperX()
    pipeline = fake.loader()("", "cpu")
    modules = fake.modules()
    called = {
        f"{module}:{name}": member
        for module, members in modules.items()
        for name, member in members.items()
        if callable(member)
    }
    diarizer = modules["whisperx.diarize"]["DiarizationPipeline"]
    return called | {
        "whisperx.asr:FasterWhisperPipeline.transcribe": type(pipeline).transcribe,
        "whisperx.diarize:DiarizationPipeline.__call__": diarizer.__call__,
        "whisperx.vads.vad:Vad.preprocess_audio": Vad.preprocess_audio,
        "whisperx.vads.vad:Vad.merge_chunks": Vad.merge_chunks,
    }
