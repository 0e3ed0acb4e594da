"""Batches, ranges, merges, durability, families."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify


def test_a_batch_is_written_at_its_end(db: lithify.Database) -> None:
    db[b"pear"] = b"old"
    with db.batch() as batch:
        batch[b"x"] = b"1"
        batch.put(b"y", bytearray(b"2"))
        batch.update({b"z": b"3"})
        del batch[b"pear"]
        assert len(batch) == 4
        assert list(db) == [b"pear"], "nothing is seen before"
    assert dict(db.items()) == {b"x": b"1", b"y": b"2", b"z": b"3"}
    assert len(batch) == 0


def test_a_batch_is_dropped_on_an_exception(db: lithify.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch[b"x"] = b"1"
            1 / 0
    assert list(db) == []
    assert len(batch) == 0


def test_a_batch_may_be_written_by_hand(db: lithify.Database) -> None:
    batch = db.batch(durability="sync")
    assert isinstance(batch, lithify.Batch)
    batch.put(b"a", b"1")
    batch.clear()
    batch.put(b"b", b"2")
    batch.put(b"d", b"2")
    batch.delete(b"d")
    batch.write()
    batch.put(b"c", b"3")
    batch.write()
    batch.delete_range(b"b", b"c")
    batch.write()
    assert dict(db.items()) == {b"c": b"3"}


def test_a_batch_takes_no_family_of_another_database(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "one") as one, lithify.open(tmp_path / "two") as two:
        mine, theirs = one.family("f", create=True), two.family("f", create=True)
        with one.batch() as batch:
            for family in (theirs, two):
                with pytest.raises(lithify.errors.InvalidArgumentError, match="another database"):
                    batch.put(b"k", b"v", family=family)
            batch.put(b"k", b"v", family=mine)
            batch.put(b"d", b"v", family=one)
        assert dict(mine.items()) == {b"k": b"v"} and dict(one.items()) == {b"d": b"v"}
        assert list(theirs) == list(two) == []


@pytest.mark.parametrize("durability", ["no-wal", "buffered", "os", "sync"])
def test_durability_is_asked_for_by_name(db: lithify.Database, durability: str) -> None:
    db.put(b"k", b"v", durability=durability)  # type: ignore[arg-type]
    db.delete(b"k", durability=durability)  # type: ignore[arg-type]
    db.put(b"k2", b"v", wait=False)
    db.delete_range(b"k2", b"k3", durability=durability)  # type: ignore[arg-type]
    assert list(db) == []
    db.sync()
    with pytest.raises(ValueError, match="buffered"):
        db.put(b"k", b"v", durability="much")  # type: ignore[arg-type]


def test_merges_add_up(tmp_path: Path) -> None:
    one, five = (1).to_bytes(8, "little"), (5).to_bytes(8, "little")
    families = {"lines": {"merge": "stringappend"}}
    with lithify.open(tmp_path / "db", merge="uint64add", families=families) as db:
        db.merge(b"n", one)
        db.merge(b"n", five)
        assert int.from_bytes(db[b"n"], "little") == 6
        lines = db.family("lines")
        lines.merge(b"l", b"first")
        with db.batch() as batch:
            batch.merge(b"l", b"second", family=lines)
            batch.merge(b"n", one)
        assert lines[b"l"] == b"first,second"
        assert int.from_bytes(db[b"n"], "little") == 7
    with pytest.raises(ValueError, match="uint64add"):
        lithify.open(tmp_path / "other", merge="plus")


def test_families_have_the_same_face(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lithify.open(path) as db:
        trees = db.family("trees", create=True, memtable_bytes="1MiB")
        assert trees.name == "trees"
        trees[b"oak"] = b"old"
        db[b"oak"] = b"another"
        assert trees[b"oak"] == b"old"
        with db.batch() as batch:
            batch.put(b"elm", b"1", family=trees)
            batch.put(b"elm", b"2")
            batch.delete(b"oak", family=trees)
            batch.delete_range(b"a", b"b", family=trees)
        assert dict(trees.items()) == {b"elm": b"1"}
        assert dict(db.items()) == {b"elm": b"2", b"oak": b"another"}
        with trees.batch() as batch:
            batch[b"fir"] = b"3"
        trees.update({b"ash": b"4"})
        with trees.snapshot() as then:
            trees.clear()
            assert list(then) == [b"ash", b"elm", b"fir"]
        with trees.transaction() as t:
            t[b"yew"] = b"5"
        assert list(trees.scan(prefix=b"y")) == [(b"yew", b"5")]
        assert "trees" in repr(trees)
        assert db.families() == ["default", "trees"]
        assert db.family("trees").get(b"yew") == b"5"
        with pytest.raises(lithify.errors.NotFoundError):
            db.family("shrubs")
        with pytest.raises(TypeError, match="create"):
            db.family("shrubs", memtable_bytes=1 << 20)
    assert lithify.list_families(path) == ["default", "trees"]
    with lithify.open(path) as db:
        assert list(db.family("trees")) == [b"yew"]
        db.drop_family("trees")
        assert db.families() == ["default"]
    with pytest.raises(lithify.errors.ClosedError):
        db.family("default")
