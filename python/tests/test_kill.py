"""A writer is killed without warning: what it was told is written is there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import lithify

WRITER = """
import sys, lithify
db = lithify.open(sys.argv[1], memory="32MiB")
n = int(sys.argv[2])
while True:
    with db.batch() as batch:
        batch[b"a%08d" % n] = b"v%d" % n * 50
        batch[b"b%08d" % n] = b"v%d" % n * 50
    n += 1
    print(n, flush=True)
"""


UNLOGGED = """
import os, signal, sys, lithify
db = lithify.open(sys.argv[1], memory="32MiB")
db.put(b"flushed", b"v", durability="no-wal")
db.flush()
db.put(b"unlogged", b"v", durability="no-wal")
db.put(b"buffered", b"v", durability="buffered")
db.sync()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_sync_is_for_what_is_in_the_log(tmp_path: Path) -> None:
    path = tmp_path / "db"
    command = [sys.executable, "-c", UNLOGGED, str(path)]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    with lithify.open(path, memory="32MiB") as db:
        assert list(db) == [b"buffered", b"flushed"]


def test_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    path, known = tmp_path / "db", 0
    for _ in range(int(os.environ.get("LITHIFY_KILLS", "6"))):
        command = [sys.executable, "-c", WRITER, str(path), str(known)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline(), "it opens and writes"
        time.sleep(random.random() * 0.3)
        writer.send_signal(signal.SIGKILL)
        told = writer.stdout.read().split()
        writer.wait()
        writer.stdout.close()
        known = max(known + 1, int(told[-1]) if told else 0)
        with lithify.open(path, memory="32MiB") as db:
            there = [int(k[1:]) for k in db.scan(prefix=b"a", keys_only=True)]
            assert there == list(range(len(there))), "no hole"
            assert len(there) >= known, "what was told is there"
            assert len(there) == sum(1 for _ in db.scan(prefix=b"b")), "batches are whole"
            for n in (0, known // 2, known - 1):
                assert db[b"b%08d" % n] == b"v%d" % n * 50
            known = len(there)
    assert lithify.verify(path) == []
