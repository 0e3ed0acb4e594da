"""The face of a dict."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

import pytest

import lithify


def test_it_is_a_mapping_of_bytes(db: lithify.Database) -> None:
    assert isinstance(db, MutableMapping)
    db[b"b"] = b"2"
    db[b"a"] = b"1"
    db[b""] = b"the empty key"
    assert db[b"a"] == b"1"
    assert db.get(b"b") == b"2"
    assert db.get(b"c") is None
    assert db.get(b"c", b"?") == b"?"
    assert b"a" in db and b"c" not in db
    assert list(db) == [b"", b"a", b"b"]
    assert list(reversed(db)) == [b"b", b"a", b""]
    assert list(db.keys()) == [b"", b"a", b"b"]
    assert list(db.values()) == [b"the empty key", b"1", b"2"]
    assert list(db.items()) == [(b"", b"the empty key"), (b"a", b"1"), (b"b", b"2")]
    del db[b"a"]
    assert b"a" not in db
    with pytest.raises(KeyError) as missing:
        db[b"a"]
    assert missing.value.args == (b"a",)
    with pytest.raises(KeyError):
        del db[b"a"]


def test_the_methods_that_a_dict_has_besides(db: lithify.Database) -> None:
    db.update({b"a": b"1", b"b": b"2"})
    db.update([(b"c", b"3")])
    assert db.setdefault(b"a", b"9") == b"1"
    assert db.setdefault(b"d", b"4") == b"4"
    assert db.pop(b"b") == b"2"
    assert db.pop(b"b", b"gone") == b"gone"
    assert db.pop(b"b", None) is None
    with pytest.raises(KeyError):
        db.pop(b"b")
    assert db.popitem() == (b"a", b"1")
    assert dict(db.items()) == {b"c": b"3", b"d": b"4"}
    db[b"\xff\xff"] = b"last"
    db.clear()
    db.clear()
    assert list(db) == []
    with pytest.raises(KeyError, match="empty"):
        db.popitem()


def test_an_update_is_all_or_nothing(db: lithify.Database) -> None:
    with pytest.raises(TypeError):
        db.update([(b"a", b"1"), (b"b", "text")])  # type: ignore[list-item]
    with pytest.raises(ValueError):
        db.update([(b"a", b"1"), (b"a", b"1", b"2")])  # type: ignore[list-item]
    assert list(db) == []


def test_len_says_what_to_use(db: lithify.Database) -> None:
    with pytest.raises(TypeError, match="estimate_count"):
        len(db)
    assert db
    db.update((b"%d" % i, b"") for i in range(100))
    db.flush()
    assert db.estimate_count() == 100


def test_whatever_has_a_buffer_is_bytes(db: lithify.Database) -> None:
    db[bytearray(b"array")] = memoryview(b"viewed")[1:3]
    assert db[b"array"] == b"ie"
    assert db[memoryview(b"xarray")[1:]] == b"ie"
    import array

    db[b"words"] = array.array("H", [1, 2])
    assert db[b"words"] == array.array("H", [1, 2]).tobytes()
    for wrong in ("text", 5, None, [1]):
        with pytest.raises(TypeError, match="bytes"):
            db[wrong] = b""  # type: ignore[index]
        with pytest.raises(TypeError, match="bytes"):
            db[b""] = wrong  # type: ignore[assignment]
        with pytest.raises(TypeError):
            wrong in db  # type: ignore[operator]
    with pytest.raises(TypeError, match="encode"):
        db["text"]  # type: ignore[index]
    with pytest.raises(BufferError, match="contiguous"):
        db[memoryview(b"abcd")[::2]]


def test_what_is_written_is_there_again(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "db") as db:
        db[b"k"] = b"v"
    with lithify.open(str(tmp_path / "db"), create=False) as db:
        assert db[b"k"] == b"v"
        assert str(tmp_path) in repr(db)
        assert db.path == tmp_path / "db"
        assert db.name == "default"
    assert db.closed
    assert not db
    assert "closed" in repr(db)
    db.close()


def test_multi_get(db: lithify.Database) -> None:
    db[b"a"] = b"1"
    with db.snapshot() as before:
        db[b"a"] = b"2"
        assert db.multi_get([b"a", b"b", bytearray(b"a")]) == [b"2", None, b"2"]
        assert db.multi_get(iter([b"a"]), snapshot=before) == [b"1"]
        assert before.multi_get([b"a", b"c"]) == [b"1", None]
    assert db.multi_get([]) == []


def test_what_memory_does_not_hold_is_found(tmp_path: Path) -> None:
    pairs = {b"%06d" % i: b"%d" % i * 20 for i in range(0, 30_000, 2)}
    with lithify.open(tmp_path / "db", memory="2MiB") as db:
        db.update(pairs)
        db.flush()
        with db.snapshot() as then:
            db[b"000000"] = b"new"
            # From both ends in turn: what was read last is in memory, the rest is not.
            for key in [*pairs, *reversed(pairs), *list(pairs)[:40] * 3]:
                assert then[key] == pairs[key]
                assert db.get(key + b"?") is None
                assert db[key] == (pairs[key] if key != b"000000" else b"new")
