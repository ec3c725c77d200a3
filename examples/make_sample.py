"""Make the sample videos in `examples/videos`: the same frames and words each time, though the
encoder may pack them into slightly different bytes.

    python examples/make_sample.py

Speech comes from flite (`apt install flite`), frames from `scenes.py`, files from PyAV's encoders.
The videos are committed, so the project can be tried without this program.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import scenes as s
import story_evening as story
import things
from PIL import Image, ImageDraw

FOLDER = Path(__file__).parent / "videos"
SIZE = (things.WIDTH // 2, things.HEIGHT // 2)
FPS, RATE = 12, 16_000
LEAD, GAP, TAIL = 0.6, 0.6, 0.6  # seconds of silence before, between and after sentences


@dataclass(frozen=True)
class Shot:
    """A camera position that lasts as long as its sentences, and at least `seconds`.

    `draw` gets the pen, the part of the shot that is over and, if the video has `voices`, who
    speaks. `lead`: seconds of silence before the first sentence.
    """

    draw: Callable[..., None]
    say: tuple[str, ...] = ()
    seconds: float = 3.0
    lead: float = LEAD


@dataclass(frozen=True, kw_only=True)
class Video:
    name: str
    shots: tuple[Shot, ...]
    voice: str = "awb"
    sound: bool = True
    codec: str = "libx264"
    subtitles: bool = False
    fade: bool = False  # fade in from black at the start and out to black at the end
    voices: Mapping[str, tuple[str, float]] = field(default_factory=dict[str, tuple[str, float]])
    size: tuple[int, int] = SIZE


@dataclass(frozen=True)
class Cue:
    start: float
    end: float
    text: str
    who: str = ""


PANCAKES = Video(
    name="pancakes.mp4",
    fade=True,
    shots=(
        Shot(
            s.card("PANCAKES", "HOME COOKING, EPISODE 4", "#6a1b9a"),
            ("Welcome to the kitchen.", "Today we will make pancakes for the whole family."),
        ),
        Shot(
            s.speaker("ANNA", "#ffe9c7", "#00897b", "#4a2c1a", 84),
            ("My name is Anna.", "My mother gave me this recipe twenty years ago."),
        ),
        Shot(
            s.shopping,
            ("You will need eggs and flour and milk and butter and honey.",),
            5.5,
        ),
        Shot(
            s.eggs,
            (
                "First, there are three eggs and we break them into a large bowl.",
                "Be careful that no part of the shell falls in.",
            ),
        ),
        Shot(
            s.flour,
            ("The second step is to add the flour.", "We also add a little bit of sugar and salt."),
        ),
        Shot(
            s.milk,
            ("The third step is to add the cold milk.", "Take your time with it."),
        ),
        Shot(
            s.whisk,
            (
                "Now we mix everything together.",
                "In the beginning you can see many white lumps.",
                "Later the lumps have disappeared and the mixture is smooth.",
            ),
        ),
        Shot(
            s.timer,
            (
                "Then the mixture has to rest for a while.",
                "The rest makes it strong, so the pancakes will not break later.",
            ),
        ),
        Shot(
            s.butter,
            (
                "The next step is to put some butter into the pan.",
                "The butter is hard at first, and then it melts.",
            ),
        ),
        Shot(
            s.pour,
            ("When it is hot, we add one large spoon of the mixture.",),
        ),
        Shot(
            s.burnt,
            (
                "Oh no.",
                "The first pancake is black because it was too hot.",
                "I make the fire smaller and try again.",
            ),
        ),
        Shot(
            s.bubbles,
            (
                "Wait until you see bubbles on the top.",
                "Then turn the pancake over.",
                "The pale side has become golden brown.",
            ),
        ),
        Shot(
            s.stack,
            (
                "We put them on a large green plate.",
                "Do this again until there is nothing left in the bowl.",
            ),
        ),
        Shot(
            s.topping,
            ("Finally, there is honey on the top, and we add some red berries.",),
            6.0,
        ),
        Shot(
            s.breakfast,
            ("The children sit down at the table.", "Everybody gets one warm pancake."),
        ),
        Shot(
            s.card("GOODBYE", "NEXT WEEK: BREAD", "#1b5e20"),
            ("Enjoy your breakfast.", "Next week I will show you how to bake bread."),
        ),
    ),
)

BIRD_HOUSE = Video(
    name="birdhouse.mp4",
    voice="rms",
    subtitles=True,
    shots=(
        Shot(
            s.card("A BIRD HOUSE", "THE SUNDAY WORKSHOP", "#37474f"),
            ("Hello and welcome back to the Sunday workshop.", "Today we build a bird house."),
        ),
        Shot(s.measure, ("The first job is to measure one long piece of wood.",), 4.0),
        Shot(
            s.saw,
            ("After that we cut the wood with a hand saw.", "Let the saw do the work for you."),
        ),
        Shot(s.boards, ("Now there are six boards on the table.",), 5.0),
        Shot(
            s.crack,
            (
                "My first screw was too thick, and so the board cracked.",
                "I threw that board away and chose thinner screws.",
            ),
        ),
        Shot(s.drill, ("In the front board we drill a round door for the birds.",), 4.5),
        Shot(
            s.screws,
            ("Then we hold the walls together with eight small screws.",),
            5.0,
        ),
        Shot(
            s.paint,
            (
                "The walls get a coat of red paint.",
                "Leave the inside bare, because birds do not like the smell of paint.",
            ),
        ),
        Shot(
            s.hang,
            ("When the paint is dry we hang the house in a tree, away from cats.",),
            5.0,
        ),
        Shot(
            s.tenants,
            ("Look, a pair of yellow birds has already moved in.", "That was worth the work."),
        ),
    ),
)

INTERVIEW = Video(
    name="interview.mp4",
    voice="slt",
    shots=(
        Shot(
            s.speaker("CITY LIBRARY", "#cfd8dc", "#283593", "#2b1b12", 110),
            (
                "Good evening.",
                "I have worked at the city library for eleven years.",
                "People ask me if anybody still reads books.",
            ),
        ),
        Shot(s.library, ("Last year we lent more books than ever before.",), 3.0),
        Shot(
            s.speaker("", "#b0bec5", "#283593", "#2b1b12", 120),
            (
                "Children come in the morning and students come at night.",
                "Next spring we will open a second reading room.",
                "It will be free for everybody.",
            ),
        ),
    ),
)

POEM = Video(
    name="lighthouse.mkv",
    voice="rms",
    shots=(
        Shot(
            s.lighthouse,
            (
                "There is an old tower at the end of the land.",
                "Every night its lamp turns above the dark water.",
                "The ships go home, and the keeper drinks his tea.",
                "In the morning only the sea birds remember the storm.",
            ),
            20.0,
        ),
    ),
)

SEASONS = Video(
    name="seasons.webm",
    sound=False,
    codec="libvpx-vp9",
    shots=(
        Shot(s.card("THE GARDEN", "ONE YEAR, NO WORDS", "#004d40"), seconds=4),
        Shot(s.garden("#b0bec5", "#eceff1", "", "WINTER", s.snow), seconds=6),
        Shot(s.night, seconds=4),
        Shot(s.garden("#b2ebf2", "#9ccc65", "", "SPRING", s.blossom), seconds=6),
        Shot(s.pond, seconds=5),
        Shot(s.garden("#4fc3f7", "#558b2f", "#388e3c", "SUMMER", s.sunny), seconds=6),
        Shot(s.garden("#ffcc80", "#8d6e63", "#ef6c00", "AUTUMN", s.harvest), seconds=7),
        Shot(s.card("THE END", "SEVEN APPLES IN THE BASKET", "#3e2723"), seconds=4),
    ),
)

TEASER = Video(
    name="teaser.mp4",
    sound=False,
    shots=(
        Shot(s.card("COMING SOON", "HOME COOKING", "#b71c1c"), seconds=2),
        Shot(s.topping, seconds=2),
    ),
)

STORY = Video(
    name="story.mp4",
    shots=tuple(Shot(draw, say, least, lead) for draw, least, lead, say in story.STORY),
    subtitles=True,
    voices=story.VOICES,
    size=(576, 320),
)

VIDEOS = (PANCAKES, BIRD_HOUSE, INTERVIEW, POEM, SEASONS, TEASER, STORY)


def speak(text: str, voice: str, pitch: float = 1.0) -> np.ndarray:
    """Return a sentence as int16 samples at 16 kHz, `pitch` times as high and as long as ever."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        slower = ["--setf", f"duration_stretch={pitch}"] if pitch != 1.0 else []
        command = ["flite", "-voice", voice, *slower, "-t", text, "-o", file.name]
        subprocess.run(command, check=True)
        with av.open(file.name) as wav:
            resampler = av.AudioResampler("s16", "mono", RATE)
            frames = [*wav.decode(audio=0), None]
            chunks = [out.to_ndarray()[0] for f in frames for out in resampler.resample(f)]
    voiced = np.concatenate(chunks)
    if pitch == 1.0:
        return voiced
    places = np.arange(0, len(voiced) - 1, pitch)
    return np.interp(places, np.arange(len(voiced)), voiced).astype(np.int16)


def narrate(video: Video) -> tuple[list[float], np.ndarray, list[Cue]]:
    """Return the length of each shot in seconds (whole frames), the sound, and the cues."""
    lengths, sound, cues, now = [], [], [], 0.0
    for shot in video.shots:
        track = [np.zeros(round(shot.lead * RATE), np.int16)]
        at = shot.lead
        for sentence in shot.say:
            who, _, words = sentence.rpartition(": ") if video.voices else ("", "", sentence)
            voice = speak(words, *video.voices.get(who, (video.voice, 1.0)))
            cues.append(Cue(now + at, now + at + len(voice) / RATE, words, who))
            track += [voice, np.zeros(round(GAP * RATE), np.int16)]
            at += len(voice) / RATE + GAP
        frames = int(np.ceil(max(shot.seconds, at - GAP + TAIL) * FPS))
        samples = np.concatenate(track)
        room = np.zeros(frames * RATE // FPS + 1, np.int16)
        sound.append(np.concatenate([samples, room])[: round(frames * RATE / FPS)])
        lengths.append(frames / FPS)
        now += frames / FPS
    return lengths, np.concatenate(sound), cues


def draw_frames(video: Video, lengths: list[float], cues: list[Cue]):
    """Yield the video's frames in order as RGB images."""
    total, n = round(sum(lengths) * FPS), 0
    for shot, seconds in zip(video.shots, lengths, strict=True):
        count = round(seconds * FPS)
        for i in range(count):
            image = Image.new("RGB", (things.WIDTH, things.HEIGHT))
            who = next((c.who for c in cues if c.start <= n / FPS <= c.end), "")
            shot.draw(ImageDraw.Draw(image), i / count, *([who] if video.voices else []))
            image = image.resize(video.size, Image.Resampling.BOX)
            if video.fade:
                light = min(1.0, (n + 1) / FPS, (total - n) / FPS)
                image = image.point(lambda v, k=light: round(v * k)) if light < 1 else image
            yield image
            n += 1


def encode(video: Video, path: Path) -> None:
    """Write a video and, if it has any, its subtitles."""
    lengths, sound, cues = narrate(video)
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as out:
        options = {"crf": "28", "preset": "slow", "threads": "1"}
        if video.codec != "libx264":
            options = {"crf": "40", "b": "0", "threads": "1"}
        stream = out.add_stream(video.codec, rate=FPS, options=options)
        stream.width, stream.height = video.size
        stream.pix_fmt, stream.gop_size = "yuv420p", 4 * FPS
        audio = out.add_stream("aac", rate=RATE, layout="mono") if video.sound else None
        if audio:
            audio.bit_rate = 40_000
        for i, image in enumerate(draw_frames(video, lengths, cues)):
            frame = av.VideoFrame.from_image(image)
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            out.mux(stream.encode(frame))
            if audio:  # Packets of a frame and of its sound stand side by side in the file.
                first, last = round(i * RATE / FPS), round((i + 1) * RATE / FPS)
                chunk = av.AudioFrame.from_ndarray(sound[None, first:last], "s16", "mono")
                chunk.rate, chunk.pts, chunk.time_base = RATE, first, Fraction(1, RATE)
                out.mux(audio.encode(chunk))
        for each in filter(None, (stream, audio)):
            out.mux(each.encode(None))
    if video.subtitles:
        path.with_suffix(".srt").write_text(srt(cues), encoding="utf-8")


def srt(cues: list[Cue]) -> str:
    def stamp(seconds: float) -> str:
        ms = round(seconds * 1000)
        hours, minutes, rest = ms // 3_600_000, ms // 60_000 % 60, ms % 60_000
        return f"{hours:02}:{minutes:02}:{rest // 1000:02},{rest % 1000:03}"

    return "".join(
        f"{n}\n{stamp(cue.start)} --> {stamp(cue.end)}\n"
        f"{cue.who.upper() + ': ' if cue.who else ''}{cue.text}\n\n"
        for n, cue in enumerate(cues, 1)
    )


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for video in VIDEOS:
        encode(video, FOLDER / video.name)
        print(f"{video.name}: {(FOLDER / video.name).stat().st_size / 1e3:.0f} kB")
    whole = (FOLDER / PANCAKES.name).read_bytes()
    (FOLDER / "broken.mp4").write_bytes(whole[:60_000])  # without the index at its end


if __name__ == "__main__":
    main()
