"""Ranges as columns, read by those who know Arrow."""

from __future__ import annotations

from pathlib import Path

import polars
import pyarrow
import pytest

import lithify

PAIRS = [(b"%05d" % i, bytes([i % 256]) * (i % 40)) for i in range(3000)]


@pytest.fixture
def filled(db: lithify.Database) -> lithify.Database:
    db.update(PAIRS[::2])
    db.flush()
    db.update(PAIRS[1::2])
    return db


def read(columns: lithify.Columns) -> list[tuple[bytes, bytes]]:
    table = pyarrow.table(columns)
    assert table.schema.names == ["key", "value"]
    table.validate(full=True)
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_pyarrow_and_polars_read_them(filled: lithify.Database) -> None:
    assert read(filled.scan_columns()) == PAIRS
    frame = polars.DataFrame(filled.scan_columns(prefix=b"0001"))
    assert frame.rows() == PAIRS[10:20]
    reader = pyarrow.RecordBatchReader.from_stream(filled.scan_columns(rows=1000))
    assert [len(batch) for batch in reader] == [1000, 1000, 1000]


def test_ranges_limits_directions_and_moments(filled: lithify.Database) -> None:
    assert read(filled.scan_columns(b"00010", b"00020")) == PAIRS[10:20]
    assert read(filled.scan_columns(b"00010", b"00010")) == []
    assert read(filled.scan_columns(limit=7, rows=3)) == PAIRS[:7]
    assert read(filled.scan_columns(reverse=True, limit=5)) == PAIRS[:-6:-1]
    assert read(filled.scan_columns(limit=0)) == []
    columns = filled.scan_columns()
    with filled.snapshot() as then:
        filled.clear()
        assert read(columns) == PAIRS
        assert read(filled.scan_columns(snapshot=then)) == PAIRS
    assert read(filled.scan_columns()) == []


def test_they_outlive_what_made_them(filled: lithify.Database) -> None:
    table = pyarrow.table(filled.scan_columns())
    filled.close()
    assert table["value"][39].as_py() == PAIRS[39][1]


def test_wrong_uses(filled: lithify.Database, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one row"):
        filled.scan_columns(rows=0)
    with pytest.raises(ValueError, match="not both"):
        filled.scan_columns(b"a", prefix=b"b")
    columns = filled.scan_columns()
    assert isinstance(columns, lithify.Columns)
    read(columns)
    with pytest.raises(lithify.errors.ClosedError):
        columns.__arrow_c_stream__()
    unread = filled.scan_columns(rows=10)
    capsule = filled.scan_columns().__arrow_c_stream__()
    del capsule
    reader = pyarrow.RecordBatchReader.from_stream(unread)
    next(reader)
    filled.close()
    with pytest.raises(pyarrow.ArrowException, match="closed"):
        next(reader)


def test_any_number_of_rows_may_be_asked_for(filled: lithify.Database) -> None:
    for rows in (1, 255, 256, 257, 2**62):
        batches = list(pyarrow.RecordBatchReader.from_stream(filled.scan_columns(rows=rows)))
        assert sum(len(batch) for batch in batches) == len(PAIRS)
        assert len(batches[0]) == min(rows, len(PAIRS))
