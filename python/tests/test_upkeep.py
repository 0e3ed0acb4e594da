"""Tables, copies, and what the database says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lithify


def test_flush_compact_and_wait(db: lithify.Database) -> None:
    for round in range(3):
        db.update((b"%05d" % i, b"%d" % round * 100) for i in range(2000))
        db.flush()
    db.compact(b"0", b"1")
    db.compact()
    assert db.wait_idle(30.0)
    assert db.wait_idle()
    stats = db.stats()
    assert isinstance(stats, lithify.Stats)
    assert stats.disk_bytes > 0 and stats.write_amplification > 1.0
    assert sum(level["files"] for level in stats.levels) >= 1
    assert stats.counts["write_bytes"] > 600_000
    assert stats.last_sequence == 6000
    assert stats.stalled_seconds >= 0.0 and stats.memtable_bytes >= 0
    assert stats.cache_bytes >= 0 and stats.cache_hits >= 0 and stats.cache_misses >= 0
    assert stats.debt_bytes == 0 and stats.running_compactions == 0
    assert "lithify" in stats.prometheus() and len(str(stats)) > 100
    assert "L" in db.picture()
    assert len(db.explain()) > 20
    assert db.get_property("rocksdb.estimate-num-keys") == "2000"
    assert db.get_property("no.such") is None
    with pytest.raises(ValueError):
        db.wait_idle(-1.0)


def test_checkpoints_and_backups(db: lithify.Database, tmp_path: Path) -> None:
    db.update((b"%05d" % i, b"v" * 100) for i in range(1000))
    db.checkpoint(tmp_path / "monday")
    backups = lithify.Backups(tmp_path / "backups")
    first = backups.create(db)
    db[b"later"] = b"1"
    second = backups.create(db)
    assert [b["id"] for b in backups.list()] == [first["id"], second["id"]]
    assert first["copied"] > second["copied"]
    assert backups.verify(second["id"]) == []
    backups.restore(first["id"], tmp_path / "restored")
    for copy in ("monday", "restored"):
        with lithify.open(tmp_path / copy) as copied:
            assert b"later" not in copied and copied[b"00999"] == b"v" * 100
        assert lithify.verify(tmp_path / copy) == []
    with pytest.raises(lithify.errors.InvalidArgumentError):
        db.checkpoint(tmp_path / "monday")
    with pytest.raises(lithify.errors.NotFoundError):
        backups.verify(99)
    assert backups.purge(1) == [first["id"]]
    backups.delete(second["id"])
    assert backups.list() == []


@pytest.mark.parametrize(
    ("wish", "shown"), [({}, "auto"), ({"mapped_reads": True}, "on"), ({"mapped_reads": False}, "off")]
)
def test_tables_are_mapped_unless_told_otherwise(tmp_path: Path, wish: dict[str, Any], shown: str) -> None:
    with lithify.open(tmp_path / "db", memory="8MiB", **wish) as db:
        db.update((b"%05d" % i, b"%d" % i * 20) for i in range(20_000))
        db.compact()
        tables = [str(path) for path in (tmp_path / "db").glob("*.sst")]
        assert all(db[b"%05d" % i] == b"%d" % i * 20 for i in range(0, 20_000, 7))
        maps = Path("/proc/self/maps").read_text()
        assert tables and any(table in maps for table in tables) == (shown != "off")
        assert db.settings()["mapped_reads"] == shown


def test_tables_are_mapped_or_read_past_the_page_cache(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "db", direct_reads=True) as db:
        db[b"a"] = b"1"
        db.compact()
        assert db[b"a"] == b"1"
        assert list((tmp_path / "db").glob("*.sst"))
        maps = Path("/proc/self/maps").read_text().splitlines()
        assert not [line for line in maps if str(tmp_path) in line and line.endswith(".sst")]
    with pytest.raises(lithify.errors.InvalidArgumentError, match="turn one of the two off"):
        lithify.open(tmp_path / "db", mapped_reads=True, direct_reads=True)
