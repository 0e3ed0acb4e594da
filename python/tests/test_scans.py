"""Walks over ranges."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import lithify


def key(i: int) -> bytes:
    return b"%06d" % i


@pytest.fixture
def numbers(db: lithify.Database) -> lithify.Database:
    """A thousand keys, some in tables and some in memory."""
    db.update((key(i), b"v" * (i % 50)) for i in range(0, 1000, 2))
    db.flush()
    db.update((key(i), b"v" * (i % 50)) for i in range(1, 1000, 2))
    return db


EVERYTHING = [(key(i), b"v" * (i % 50)) for i in range(1000)]


def test_a_scan_is_half_open_and_ordered(numbers: lithify.Database) -> None:
    assert list(numbers.scan()) == EVERYTHING
    assert list(numbers.scan(key(10), key(20))) == EVERYTHING[10:20]
    assert list(numbers.scan(key(990))) == EVERYTHING[990:]
    assert list(numbers.scan(stop=key(5))) == EVERYTHING[:5]
    assert list(numbers.scan(key(20), key(20))) == []
    assert list(numbers.scan(key(20), key(10))) == []
    assert list(reversed(numbers.scan(key(20), key(10)))) == []
    nothing = numbers.scan(key(20), key(10))
    nothing.seek(key(15))
    assert list(nothing) == []
    assert list(numbers.scan(prefix=b"00012")) == EVERYTHING[120:130]
    assert list(numbers.scan(prefix=b"x")) == []
    assert list(numbers.scan(prefix=b"")) == EVERYTHING


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 9, 39, 40, 41, 300, 5000])
@pytest.mark.parametrize("reverse", [False, True])
def test_limits_and_directions_at_every_edge_of_a_stride(
    numbers: lithify.Database, limit: int, reverse: bool
) -> None:
    wanted = EVERYTHING[::-1] if reverse else EVERYTHING
    assert list(numbers.scan(limit=limit, reverse=reverse)) == wanted[:limit]
    keys = numbers.scan(limit=limit, reverse=reverse, keys_only=True)
    assert list(keys) == [k for k, _ in wanted[:limit]]
    backward = reversed(numbers.scan(limit=limit, reverse=not reverse))
    assert list(backward) == wanted[:limit]


def test_a_scan_shows_the_moment_of_its_call(numbers: lithify.Database) -> None:
    scan = numbers.scan()
    first = [next(scan) for _ in range(3)]
    numbers.clear()
    numbers[b"later"] = b""
    assert first + list(scan) == EVERYTHING
    assert list(numbers.scan()) == [(b"later", b"")]
    assert list(scan) == [], "a scan that is over stays so"


def test_seek_moves_it(numbers: lithify.Database) -> None:
    scan = numbers.scan(key(100), key(900))
    assert isinstance(scan, lithify.Scan) and iter(scan) is scan
    assert next(scan) == EVERYTHING[100]
    scan.seek(key(500))
    assert next(scan) == EVERYTHING[500]
    scan.seek(key(5))
    assert next(scan) == EVERYTHING[100], "the bounds stay"
    scan.seek(b"000500x")
    assert next(scan) == EVERYTHING[501]
    scan.seek(key(900))
    assert next(scan, None) is None
    scan.seek(key(200))
    assert next(scan) == EVERYTHING[200], "also after its end"
    back = numbers.scan(reverse=True, limit=3)
    back.seek(key(7))
    assert list(back) == EVERYTHING[7:4:-1]


def test_wrong_uses(numbers: lithify.Database) -> None:
    with pytest.raises(ValueError, match="not both"):
        numbers.scan(b"a", prefix=b"b")
    with pytest.raises(OverflowError):
        numbers.scan(limit=-1)
    with pytest.raises(TypeError):
        numbers.scan("a")  # type: ignore[call-overload]


def test_large_values_do_not_fit_a_stride(db: lithify.Database) -> None:
    big = {key(i): bytes([i]) * 200_000 for i in range(20)}
    db.update(big)
    assert dict(db.scan()) == big
    assert dict(db.scan(reverse=True)) == big


def test_many_scans_at_once(numbers: lithify.Database) -> None:
    scans = [numbers.scan(key(i)) for i in range(0, 1000, 10)]
    for i, pairs in enumerate(zip(*scans, strict=False)):
        if i == 5:
            break
        assert pairs[3] == EVERYTHING[30 + i]
    merged = itertools.islice(numbers.scan(), 10, 20)
    assert list(merged) == EVERYTHING[10:20]


def test_a_read_error_raises_and_never_just_ends(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with lithify.open(path, memory="32MiB") as db:
        db.update((key(i), b"v" * 1000) for i in range(5000))
        db.flush()
    table = max(path.glob("*.sst"), key=lambda file: file.stat().st_size)
    rotten = bytearray(table.read_bytes())
    rotten[len(rotten) // 2] ^= 0xFF
    table.write_bytes(rotten)
    with lithify.open(path, read_only=True) as db:
        seen = []
        with pytest.raises(lithify.errors.CorruptionError) as error:
            for entry in db.scan():
                seen.append(entry)
        assert 0 < len(seen) < 5000
        assert seen == [(key(i), b"v" * 1000) for i in range(len(seen))]
        assert error.value.file is not None and table.name in error.value.file
        assert error.value.offset is not None
    assert any(table.name in finding for finding in lithify.verify(path))
