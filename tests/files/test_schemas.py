"""Records survive Arrow, and a column's type does not depend on its values."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mustsee.files import schemas
from mustsee.records import Question, Span, Verdict, Video

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
seconds = st.floats(0, 1e5, allow_nan=False)
spans = st.builds(Span, seconds, seconds)
verdicts = st.builds(
    Verdict, filter=text, model=text, seed=st.integers(0, 9), correct=st.none() | st.booleans()
)
questions = st.builds(
    Question,
    question_id=text, video_id=text, recipe=text, question=text, question_type=text,
    options=st.lists(text, max_size=3).map(tuple), answer_index=st.none() | st.integers(0, 4),
    evidence=st.lists(spans, max_size=2).map(tuple), rationale=st.none() | text,
    verdicts=st.lists(verdicts, max_size=2).map(tuple), drop=st.none() | text,
    metrics=st.dictionaries(text, st.floats(-1, 1), max_size=2),
)  # fmt: skip
videos = st.builds(
    Video,
    video_id=text,
    uri=text,
    duration=st.none() | seconds,
    shots=st.none() | st.lists(spans, max_size=3).map(tuple),
    questions=st.none() | st.lists(questions, max_size=2).map(tuple),
    lineage=st.dictionaries(text, text, max_size=2),
)


@given(st.lists(videos, min_size=1, max_size=3))
def test_records_survive_arrow(rows: list[Video]) -> None:
    table = schemas.table(rows, Video)
    assert table.schema == schemas.schema(Video)
    assert [schemas.load(Video, row) for row in table.to_pylist()] == rows


def test_an_empty_column_has_its_type() -> None:
    array = schemas.column("questions", [None])
    assert array.type == schemas.arrow_type(schemas.hints(Video)["questions"])
    assert pa.types.is_struct(array.type.value_type)


def older(kind: pa.DataType) -> pa.DataType:
    """Return a column's type as in older files, where mappings were Arrow maps."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, older(f.type)) for f in kind])
    if not pa.types.is_list(kind):
        return kind
    inner = kind.value_type
    if pa.types.is_struct(inner) and inner.names == ["name", "value"]:
        return pa.map_(inner[0].type, inner[1].type)
    return pa.list_(older(inner))


@given(st.lists(videos, min_size=1, max_size=3))
def test_older_files_and_results_with_maps_are_read(rows: list[Video]) -> None:
    """A stage casts stored results; tables are read as they are."""
    kinds = [pa.field(f.name, older(f.type)) for f in schemas.schema(Video)]
    assert pa.types.is_map(kinds[-1].type)
    old = pa.Table.from_pylist([schemas.dump(row) for row in rows], schema=pa.schema(kinds))
    assert [schemas.load(Video, row) for row in old.to_pylist()] == rows
    now = [old[f.name].cast(f.type) for f in schemas.schema(Video)]
    assert pa.Table.from_arrays(now, schema=schemas.schema(Video)) == schemas.table(rows, Video)


def test_a_missing_field_without_default_is_an_error() -> None:
    with pytest.raises(TypeError, match="uri"):
        schemas.load(Video, {"video_id": "x"})


@pytest.mark.parametrize("hint", [set[int], tuple[float, str], tuple[float, tuple[str, ...]]])
def test_an_unsupported_field_type_names_the_supported_ones(hint: object) -> None:
    with pytest.raises(TypeError, match="record class"):
        schemas.arrow_type(hint)
