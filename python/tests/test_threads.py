"""Threads beside the interpreter's lock: no deadlock, no lost write, one thread's wait stops no other."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import lithify


def test_readers_writers_and_a_shared_scan(db: lithify.Database) -> None:
    db.update((b"%05d" % i, b"v") for i in range(5000))
    shared = db.scan()
    taken: list[bytes] = []
    wrong: list[BaseException] = []
    batch = db.batch()

    def work(me: int) -> None:
        try:
            for i in range(300):
                db[b"t%d-%05d" % (me, i)] = b"%d" % i
                assert db[b"t%d-%05d" % (me, i)] == b"%d" % i
                batch[b"b%d-%05d" % (me, i)] = b""
                if i % 50 == 0:
                    batch.write()
                taken.extend(k for _, (k, _v) in zip(range(4), shared, strict=False))
                assert len(list(db.scan(limit=20))) == 20
        except BaseException as error:  # told by the main thread
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []
    batch.write()
    taken.extend(k for k, _ in shared)
    assert sorted(taken) == [b"%05d" % i for i in range(5000)], "each entry is given once"
    assert sum(1 for _ in db.scan(prefix=b"t", keys_only=True)) == 8 * 300
    assert sum(1 for _ in db.scan(prefix=b"b", keys_only=True)) == 8 * 300


def test_a_thread_that_waits_lets_the_others_run(db: lithify.Database) -> None:
    with db.transaction() as holder:
        holder[b"k"] = b""
        waits = threading.Thread(target=lambda: _wait(db))
        waits.start()
        turns, end = 0, time.monotonic() + 0.2
        while time.monotonic() < end:
            turns += 1
        holder.rollback()
        waits.join()
    assert turns > 1000


def test_a_thread_that_fills_a_table_lets_the_others_run(db: lithify.Database, tmp_path: Path) -> None:
    value, took = os.urandom(1 << 20) * 256, [0.0]

    def fill() -> None:
        with db.table_writer(tmp_path / "large.sst") as table:
            start = time.monotonic()
            table.put(b"k", value)
            took[0] = time.monotonic() - start

    thread = threading.Thread(target=fill)
    last, longest = time.monotonic(), 0.0
    thread.start()
    while thread.is_alive():
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    thread.join()
    assert longest < took[0] / 2


def _wait(db: lithify.Database) -> None:
    with db.transaction(lock_timeout=5.0) as t:
        t[b"k"] = b"mine"


def test_opens_leave_nothing_behind(db: lithify.Database) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    db.update((b"%05d" % i, b"v" * 100) for i in range(1000))

    def round() -> None:
        for _ in range(4000):
            next(db.scan())
            with db.snapshot() as s:
                s.get(b"00001")
            db.get(b"00002")
            b"x" in db

    round()
    before = resident()
    for _ in range(3):
        round()
    assert resident() < before * 1.05 + (1 << 20)
