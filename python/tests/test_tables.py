"""Tables that come from outside, and readers that follow."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify


def test_tables_are_written_and_taken_in(db: lithify.Database, tmp_path: Path) -> None:
    db.update({b"b": b"old", b"x1": b"1", b"x2": b"2"})
    first, second = tmp_path / "first.sst", tmp_path / "second.sst"
    table = db.table_writer(first)
    assert isinstance(table, lithify.TableWriter) and "first.sst" in repr(table)
    table.put(b"a", b"1")
    table.put(b"b", b"2")
    table.delete_range(b"x", b"y")
    with pytest.raises(lithify.errors.InvalidArgumentError):
        table.put(b"a", b"again")
    made = table.finish()
    assert (made["entries"], made["smallest"], made["largest"]) == (2, b"a", b"y")
    assert made["bytes"] == first.stat().st_size and made["path"] == first
    with pytest.raises(lithify.errors.ClosedError):
        table.finish()
    with db.table_writer(second) as other:
        other.delete(b"c")
        other.put(b"d", b"4")
    with pytest.raises(lithify.errors.ClosedError):
        other.put(b"e", b"5")
    db[b"c"] = b"3"
    with pytest.raises(lithify.errors.InvalidArgumentError):
        db.ingest([first, second])  # they overlap
    db.ingest([first])
    db.ingest([second])
    assert dict(db.items()) == {b"a": b"1", b"b": b"2", b"d": b"4"}
    db.ingest([second], transfer="link")
    db.ingest([second], transfer="move")
    assert first.exists() and not second.exists()
    with pytest.raises(ValueError):
        db.ingest([first], transfer="steal")  # type: ignore[arg-type]
    with pytest.raises(lithify.errors.InvalidArgumentError):
        db.ingest([])


def test_a_table_of_a_block_that_raised_is_gone(db: lithify.Database, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), db.table_writer(tmp_path / "half.sst") as table:
        table.put(b"a", b"1")
        raise RuntimeError
    assert not (tmp_path / "half.sst").exists()


def test_operands_in_a_table(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "db", merge="uint64add") as db:
        db[b"n"] = (1).to_bytes(8, "little")
        with db.table_writer(tmp_path / "more.sst") as table:
            table.merge(b"n", (2).to_bytes(8, "little"))
        db.ingest([tmp_path / "more.sst"])
        assert int.from_bytes(db[b"n"], "little") == 3


def test_a_follower_keeps_up(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "db") as db:
        db[b"a"] = b"1"
        follower = lithify.follow(tmp_path / "db", memory="64MiB")
        assert isinstance(follower, lithify.Follower) and "db" in repr(follower)
        before = follower.view()
        db[b"a"] = b"2"
        db.flush()
        assert before[b"a"] == b"1" and follower.catch_up() and not follower.catch_up()
        with follower.view() as now:
            assert now[b"a"] == b"2" and before[b"a"] == b"1"
            with pytest.raises(lithify.errors.ReadOnlyError):
                now[b"a"] = b"3"
        # Its handles are closed, the follower is not.
        assert now.closed and follower.view()[b"a"] == b"2"
        with pytest.raises(lithify.errors.NotFoundError):
            lithify.follow(tmp_path / "nowhere")
