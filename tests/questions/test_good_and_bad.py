"""Questions as a careful writer makes them pass the text checks; those that give themselves away or
speak of what only the writer saw, do not.
"""

import pytest

from mustsee.questions.checks import fault

COLOURS = ("Green", "Black", "Grey", "Brown")

GOOD: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "two options named": (
        "Was the gate blue or red before the storm?",
        "Red",
        ("Blue", *COLOURS[:3]),
    ),
    "all options named": (
        "Who leaves the hall last: the baker, the smith, the miller, the judge or the nun?",
        "The nun",
        ("The baker", "The smith", "The miller", "The judge"),
    ),
    "segments, plain": (
        "Into how many segments does the cook divide the orange she did not peel?",
        "Eight",
        ("Four", "Six", "Ten", "Twelve"),
    ),
    "last segment of a thing": (
        "What is tied to the last segment of the fishing rod?",
        "A bell",
        ("A feather", "A red thread", "A lead weight", "A hook"),
    ),
    "when in a clause": (
        "What is in the boy's other hand when the window breaks?",
        "A slingshot",
        ("A cap", "A stone", "An apple", "A letter"),
    ),
    "when alone": (
        "When does the dog stop limping?",
        "After the vet has left",
        ("As the rain sets in", "Before it is fed", "On the way home", "While the girl sleeps"),
    ),
    "students": (
        "What do the students carry out of the flooded library that the teacher had carried in?",
        "The globe",
        ("The ladder", "The clock", "A crate of maps", "The piano stool"),
    ),
    "ability": (
        "Which ability does the robot show in the garden that it lacked in the workshop?",
        "Climbing stairs",
        ("Opening doors", "Telling colours apart", "Pouring water", "Counting aloud"),
    ),
    "a clock and a year": (
        "What has changed on the station clock between the first and the second visit?",
        "It shows 5:30, not 4:10",
        ("Its glass is broken", "It runs again", "It hangs lower", "A bird sits on it"),
    ),
    "an order": (
        "In what order are these repaired: the mast; the sail; the rudder?",
        "The sail; the rudder; the mast",
        (
            "The mast; the sail; the rudder",
            "The mast; the rudder; the sail",
            "The sail; the mast; the rudder",
            "The rudder; the mast; the sail",
        ),
    ),
    "a scripted play, a description, an answer": (
        "Which answer does the captain give when the boy asks for the description of the thief?",
        "He wore one boot",
        ("He had a limp", "He spoke no word", "He was too fast", "He hid his face"),
    ),
    "a plan": (
        "What do the brothers choose when option after option has failed them?",
        "To dig a tunnel",
        ("To wait for help", "To swim", "To burn the door", "To call the guard"),
    ),
    "a minute": (
        "What does the diver have to do within one minute?",
        "Free the anchor",
        ("Find the ring", "Reach the boat", "Change his tank", "Cut the net"),
    ),
}

BAD: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "answer in the question": (
        "Who, besides the nun, stays behind?",
        "The nun",
        ("The baker", "The smith", "The miller", "The judge"),
        "gives away",
    ),
    "one decoy in the question": (
        "What does the baker leave behind with his lantern?",
        "His lantern",
        ("A cap", "Bread", "A letter", "A key"),
        "gives away",
    ),
    "a clock time": (
        "What does the girl do at 2:35?",
        "She sings",
        ("She runs", "She reads", "She eats", "She sleeps"),
        "timestamp",
    ),
    "seconds": (
        "What falls at second 42?",
        "A vase",
        ("A lamp", "A book", "A cup", "A coat"),
        "timestamp",
    ),
    "a span": (
        "Who speaks in [12.0-18.5]?",
        "The nun",
        ("The baker", "The smith", "The judge", "The miller"),
        "timestamp",
    ),
    "the transcript": (
        "Which town does the transcript name?",
        "Ghent",
        ("Bruges", "Mons", "Lier", "Ypres"),
        "'transcript'",
    ),
    "a numbered segment": (
        "Who comes in during segment 4?",
        "The nun",
        ("The baker", "The smith", "The judge", "The miller"),
        "'segment 4'",
    ),
    "letters": (
        "Which is wrong, option B or option C?",
        "Neither",
        ("One", "Two", "Three", "Four"),
        "letters",
    ),
    "all of the above": (
        "What breaks?",
        "A vase",
        ("A lamp", "A cup", "A plate", "All of the above"),
        "letters",
    ),
    "one within the other": (
        "What does the boy hide?",
        "A silver key",
        ("A key", "A ring", "A coin", "A nail"),
        "contain each other",
    ),
    "twice the same": (
        "What does the boy hide?",
        "A key",
        ("A ring", "The ring", "A coin", "A nail"),
        "the same",
    ),
    "an order already in order": (
        "In what order are these repaired: the sail; the rudder; the mast?",
        "The sail; the rudder; the mast",
        (
            "The mast; the sail; the rudder",
            "The mast; the rudder; the sail",
            "The sail; the mast; the rudder",
            "The rudder; the mast; the sail",
        ),
        "order of the answer",
    ),
    "the scene's story": (
        "What does the scene story leave open?",
        "The end",
        ("The cause", "The place", "The year", "The name"),
        "'scene story'",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_good_questions_pass(name: str) -> None:
    assert fault(*GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_fail(name: str) -> None:
    question, answer, decoys, reason = BAD[name]
    found = fault(question, answer, decoys)
    assert found is not None
    assert reason in found
