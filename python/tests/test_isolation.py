"""Snapshots and transactions."""

from __future__ import annotations

import gc
import threading

import pytest

import lithify


def test_a_snapshot_stays_as_it_was(db: lithify.Database) -> None:
    db[b"a"] = b"1"
    with db.snapshot() as then:
        assert isinstance(then, lithify.Snapshot)
        db[b"a"] = b"2"
        db[b"b"] = b"3"
        assert then[b"a"] == b"1" and db[b"a"] == b"2"
        assert then.get(b"b") is None and then.get(b"b", b"?") == b"?"
        assert b"b" not in then and b"a" in then
        assert list(then) == [b"a"]
        assert list(then.scan(prefix=b"a")) == [(b"a", b"1")]
        assert list(then.scan(keys_only=True, reverse=True, limit=1)) == [b"a"]
        assert db.get(b"a", snapshot=then) == b"1"
        assert list(db.scan(snapshot=then)) == [(b"a", b"1")]
        assert then.sequence < db.stats().last_sequence
        assert db.stats().snapshots == 1
        with pytest.raises(KeyError):
            then[b"b"]
    assert db.stats().snapshots == 0
    with pytest.raises(lithify.errors.ClosedError):
        then[b"a"]
    then.close()


def test_a_transaction_commits_at_its_end(db: lithify.Database) -> None:
    db[b"n"] = b"1"
    for optimistic in (False, True):
        with db.transaction(optimistic=optimistic, durability="sync") as t:
            seen = t.get_for_update(b"n")
            assert seen is not None
            t[b"n"] = b"%d" % (int(seen) + 1)
            t.put(b"other", b"x")
            t.delete(b"other")
            assert t[b"n"] != db[b"n"]
            assert b"other" not in t and t.get(b"other", b"-") == b"-"
            assert len(t) > 0 and t
            assert list(t.scan()) == [(b"n", t[b"n"])]
            assert list(t.scan(keys_only=True, reverse=True)) == [b"n"]
    assert db[b"n"] == b"3"
    with pytest.raises(lithify.errors.ClosedError):
        t.put(b"n", b"4")
    with pytest.raises(KeyError), db.transaction() as t:
        t[b"missing"]
    with db.transaction() as t:
        assert t.get_for_update(b"missing", b"default") == b"default"
        with pytest.raises(TypeError, match="reverse=True"):
            reversed(t.scan())


def test_a_transaction_rolls_back_on_an_exception(db: lithify.Database) -> None:
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as t:
            t[b"a"] = b"1"
            1 / 0
    assert list(db) == []
    with db.transaction() as t:
        t[b"a"] = b"1"
        t.set_savepoint()
        t[b"b"] = b"2"
        del t[b"a"]
        t.rollback_to_savepoint()
    assert dict(db.items()) == {b"a": b"1"}
    with db.transaction() as t:
        t[b"c"] = b"3"
        t.rollback()
    assert b"c" not in db


def test_conflicts_are_told(db: lithify.Database) -> None:
    first = db.transaction(optimistic=True)
    assert first.get_for_update(b"k") is None
    db[b"k"] = b"meanwhile"
    first[b"k"] = b"mine"
    with pytest.raises(lithify.errors.ConflictError) as error:
        first.commit()
    assert "again" in error.value.advice
    assert db[b"k"] == b"meanwhile"
    with db.transaction() as holder:
        holder[b"k"] = b"held"
        with db.transaction(lock_timeout=0.05) as other:
            with pytest.raises(TimeoutError):
                other.put(b"k", b"too late")
            other.rollback()
    with pytest.raises(ValueError, match="lock_timeout"):
        db.transaction(lock_timeout=-1.0)


def test_plain_writes_take_no_locks(db: lithify.Database) -> None:
    db[b"n"] = b"1"
    with db.transaction() as t:
        assert t.get_for_update(b"n") == b"1"
        db[b"n"] = b"100"  # neither held off nor noticed
        t[b"n"] = b"2"
    assert db[b"n"] == b"2"
    with pytest.raises(lithify.errors.ConflictError), db.transaction(optimistic=True) as t:
        assert t.get_for_update(b"n") == b"2"
        db[b"n"] = b"100"
        t[b"n"] = b"3"
    assert db[b"n"] == b"100"


def test_run_does_it_again_until_it_is_done(db: lithify.Database) -> None:
    db[b"n"] = b"0"

    def add(t: lithify.Transaction) -> int:
        n = int(t.get_for_update(b"n") or b"0") + 1
        t[b"n"] = b"%d" % n
        return n

    def many() -> None:
        for _ in range(50):
            lithify.run(db, add, retries=1000)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert db[b"n"] == b"200"
    assert lithify.run(db, add, optimistic=False) == 201

    def spoiled(t: lithify.Transaction) -> None:
        t.get_for_update(b"n")
        db[b"n"] = b"0"
        t[b"n"] = b"1"

    with pytest.raises(lithify.errors.ConflictError):
        lithify.run(db, spoiled, retries=2)
    with pytest.raises(ValueError, match="retries"):
        lithify.run(db, add, retries=-1)


def test_what_is_forgotten_is_warned_of(db: lithify.Database) -> None:
    with pytest.warns(ResourceWarning, match="snapshot"):
        db.snapshot()
        gc.collect()
    with pytest.warns(ResourceWarning, match="transaction"):
        db.transaction()
        gc.collect()
    assert db.stats().snapshots == 0
