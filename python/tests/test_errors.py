"""What goes wrong, and how it is told."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

import lithify
from lithify import errors


def test_every_class_is_an_error_with_advice() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert issubclass(kind, lithify.Error)
        assert len(kind.advice) > 10 and kind.__doc__
        error = kind("what happened", file="x.sst", offset=7, errno=5)
        assert (str(error), error.file, error.offset, error.errno) == ("what happened", "x.sst", 7, 5)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and again.offset == 7
    assert issubclass(errors.NoSpaceError, OSError)
    assert issubclass(errors.LockTimeoutError, TimeoutError)
    assert issubclass(errors.UnsupportedError, NotImplementedError)
    assert errors.NoSpaceError("full").kind == "NoSpace" and lithify.Error("x").kind == "Error"


def test_two_owners(db: lithify.Database) -> None:
    with pytest.raises(errors.LockedError, match="open"):
        lithify.open(db.path)
    db[b"k"] = b"v"
    with lithify.open(db.path, read_only=True) as reader:
        assert reader[b"k"] == b"v"
        with pytest.raises(errors.ReadOnlyError):
            reader[b"k"] = b"w"


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="create"):
        lithify.open(tmp_path / "none", create=False)
    with pytest.raises(KeyError):
        lithify.open(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(lithify.Error):
        lithify.open(tmp_path / "file")


def test_settings_are_named_and_unknown_ones_suggest(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="memtable_bytes"):
        lithify.open(tmp_path / "db", memtable_byte="1MiB")
    with pytest.raises(ValueError):
        lithify.open(tmp_path / "db", memory="much")
    with pytest.raises(TypeError, match="number"):
        lithify.open(tmp_path / "db", memtable_bytes=[1])  # type: ignore[arg-type]
    assert not (tmp_path / "db").exists()
    with lithify.open(tmp_path / "db", memory=64 << 20, memtable_bytes=1 << 20) as db:
        assert db.settings()["memtable_bytes"] == "1MiB"
        assert db.settings()["memory_budget"] == "64MiB"
        db.set(l0_trigger=6, auto_compaction=False)
        assert db.settings()["l0_trigger"] == "6" and db.settings()["auto_compaction"] == "off"
        with pytest.raises(ValueError):
            db.set(l0_trigger=7, nonsense=True)
        with pytest.raises(errors.InvalidArgumentError, match="close it"):
            db.set(l0_trigger=8, block_bytes="8KiB")
        assert db.settings()["l0_trigger"] == "6"
        db.set(memtable_bytes="2MiB")
        assert db.settings()["memtable_bytes"] == "2MiB"
    assert lithify.settings(memory="64MiB")["memtable_bytes"] == "6MiB"


def test_after_the_close(tmp_path: Path) -> None:
    db = lithify.open(tmp_path / "db")
    db.update((b"%d" % i, b"") for i in range(1000))
    scan, snapshot, transaction = db.scan(), db.snapshot(), db.transaction()
    next(scan)
    batch = db.batch()
    batch[b"x"] = b""
    trees = db.family("trees", create=True)
    db.close()
    for use in (
        lambda: next(scan),
        lambda: scan.seek(b""),
        lambda: snapshot[b"1"],
        lambda: transaction.get(b"1"),
        lambda: batch.write(),
        lambda: batch.put(b"y", b""),
        lambda: db[b"1"],
        lambda: db.scan(),
        lambda: db.put(b"1", b""),
        lambda: trees.put(b"1", b""),
        lambda: trees.scan(),
        lambda: db.flush(),
        lambda: db.snapshot(),
        lambda: db.transaction(),
        lambda: db.estimate_count(),
        lambda: db.families(),
        lambda: db.wait_idle(),
        lambda: db.get_property("rocksdb.stats"),
        lambda: db.explain(),
        lambda: db.settle(),
        lambda: db.batch(),
        lambda: db.picture(),
        lambda: db.family("trees"),
        lambda: db.sync(),
        lambda: db.compact(),
        lambda: db.checkpoint(tmp_path / "copy"),
        lambda: db.set(l0_trigger=6),
    ):
        with pytest.raises(errors.ClosedError):
            use()
    assert db.closed and not db and db.path == tmp_path / "db"
    assert db.stats().last_sequence >= 1000 and db.settings()["l0_trigger"], "they tell how it ended"
    with lithify.open(tmp_path / "db") as again:
        assert again[b"1"] == b""


def test_a_handle_is_not_pickled(db: lithify.Database) -> None:
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(db)


def test_after_a_fork_the_child_may_not_write(db: lithify.Database) -> None:
    db[b"k"] = b"parent"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            db[b"k"] = b"child"
        except errors.FencedError:
            code = 42
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 42
    assert db[b"k"] == b"parent"


def test_limits(db: lithify.Database) -> None:
    with pytest.raises(errors.LimitExceededError):
        db[b"k" * (1 << 25)] = b""
    with pytest.raises(errors.InvalidArgumentError):
        db.delete_range(b"z", b"a")
    assert list(db) == []
