"""Questions for evaluation, alone and in the rows of their videos."""

import random

from mustsee.records import Question, Video

WORDS = ("red", "blue", "man", "dog", "runs", "house", "eats", "bread", "guitar", "wall", "door")


def questions(count: int = 24) -> list[Question]:
    rng, results = random.Random(5), list[Question]()
    for i in range(count):
        options = tuple(" ".join(rng.sample(WORDS, 3)) + f" {n}" for n in range(5))
        index = rng.randrange(5)
        results.append(
            Question(
                question_id=f"v{i // 2}/{i % 2}", video_id=f"v{i // 2}", recipe="neptune",
                question=f"What about the {rng.choice(WORDS)}, {i}?",
                question_type=("Counting", "Summarization")[i % 2],
                options=options, answer_index=index, answer=options[index],
            )
        )  # fmt: skip
    return results


def rows(count: int = 40) -> list[Video]:
    nested: dict[str, list[Question]] = {}
    for question in questions(count):
        nested.setdefault(question.video_id, []).append(question)
    return [Video(video_id=v, uri="", questions=tuple(q)) for v, q in nested.items()]
