"""Directories of RocksDB, there and back, and damaged ones."""

from __future__ import annotations

from pathlib import Path

import pytest

import lithify

PAIRS = {b"%06d" % i: b"%d" % i * 20 for i in range(20000)}


def test_a_directory_of_rocksdb_is_taken_over_and_goes_back(tmp_path: Path) -> None:
    rocksdict = pytest.importorskip("rocksdict")
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    theirs = rocksdict.Rdict(str(tmp_path / "theirs"), options)
    for key, value in PAIRS.items():
        theirs[key] = value
    theirs.flush()
    del theirs[b"000007"]
    theirs[b"000008"] = b"in the log"
    theirs.close()
    wanted = {k: v for k, v in PAIRS.items() if k != b"000007"} | {b"000008": b"in the log"}

    done = lithify.import_directory(tmp_path / "theirs", tmp_path / "ours", check=True)
    assert done["tables"] >= 1 and done["keys"] == len(wanted)
    with lithify.open(tmp_path / "ours") as db:
        assert dict(db.scan()) == wanted
        db.delete_range(b"000100", b"000200")
        db[b"new"] = b"ours"
        db.flush()
        db.settle()
        wanted = dict(db.scan())
    back = rocksdict.Rdict(str(tmp_path / "ours"), rocksdict.Options(raw_mode=True))
    assert dict(back.items()) == wanted
    back.close()


def test_imports_that_are_refused_change_nothing(tmp_path: Path) -> None:
    with pytest.raises(lithify.errors.NotFoundError):
        lithify.import_directory(tmp_path / "none", tmp_path / "ours")
    with lithify.open(tmp_path / "db") as db:
        db[b"k"] = b"v"
    with pytest.raises(lithify.errors.InvalidArgumentError):
        lithify.import_directory(tmp_path / "db", tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_what_is_readable_is_salvaged(tmp_path: Path) -> None:
    with lithify.open(tmp_path / "db", memory="32MiB") as db:
        db.update(PAIRS)
        db.flush()
    table = max((tmp_path / "db").glob("*.sst"), key=lambda file: file.stat().st_size)
    rotten = bytearray(table.read_bytes())
    rotten[len(rotten) // 2] ^= 0xFF
    table.write_bytes(rotten)
    found = lithify.salvage(tmp_path / "db", tmp_path / "saved")
    assert len(found["lost"]) >= 1 and table.name in found["lost"][0]
    assert 0.9 * len(PAIRS) < found["keys"] < len(PAIRS)
    with lithify.open(tmp_path / "saved") as saved:
        there = dict(saved.scan())
    assert len(there) == found["keys"] and there.items() <= PAIRS.items()
