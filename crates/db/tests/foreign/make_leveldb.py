"""Writes the LevelDB directories of these tests with LevelDB itself (plyvel 1.5, LevelDB 1.23).

`python3 make_leveldb.py FOLDER [NAME...]` makes FOLDER/NAME and, beside it, a file of the keys and
values that LevelDB shows, in hexadecimal. The directories are as a kill would leave them.
"""
import os
import random
import shutil
import sys

import plyvel

KEPT = (".ldb", ".sst", ".log")


def keep(folder, name, db, path):
    """Copies what counts of an open database, and writes down what it shows."""
    target = os.path.join(folder, name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    for file in os.listdir(path):
        if file.endswith(KEPT) or file == "CURRENT" or file.startswith("MANIFEST-"):
            shutil.copy(os.path.join(path, file), os.path.join(target, file))
    with open(target + ".content", "w") as out:
        for key, value in db:
            out.write(f"{key.hex()} {value.hex()}\n")


def make(folder, name, fill, **options):
    path = os.path.join(folder, name + ".tmp")
    shutil.rmtree(path, ignore_errors=True)
    db = plyvel.DB(path, create_if_missing=True, **options)
    db = fill(db, path, options) or db
    keep(folder, name, db, path)
    db.close()
    shutil.rmtree(path)


def mixed(db, path, options):
    """Several levels, level 0 above them, deletions, a log that is cut in two by a reopening."""
    rng = random.Random(1)
    key = lambda: b"key%03d" % rng.randrange(200)
    for _ in range(400):
        db.put(key(), bytes(rng.randrange(256) for _ in range(rng.randrange(30))))
    db.compact_range()
    for _ in range(100):
        db.put(key(), b"second " * rng.randrange(8))
        db.delete(key())
    db.close()
    db = plyvel.DB(path, **options)
    for _ in range(40):
        db.put(key(), b"third")
        db.delete(key())
    with db.write_batch() as batch:
        batch.put(b"batch", b"1")
        batch.delete(b"key001")
    db.close()
    db = plyvel.DB(path, **options)
    db.put(b"last", b"in the log")
    db.put(b"empty", b"")
    return db


def shared(db, path, options):
    """Versions of one key, all held by snapshots, that fill several files of a level."""
    rng = random.Random(2)
    held = []
    for n in range(3000):
        db.put(b"hot", b"%04d" % n + rng.randbytes(1000))
        held.append(db.snapshot())
        if n % 500 == 0:
            db.put(b"a%04d" % n, b"before")
            db.put(b"z%04d" % n, b"after")
    db.compact_range()
    return db


def neighbours(db, path, options):
    """Files side by side in one level: each index ends at `l`, above the first key of the next file."""
    for first in range(0, 400, 80):
        for n in range(first, first + 80):
            db.put(b"key%03d" % n, b"%d " % (n * n) * 9)
        # Nothing is there: the memtable becomes a file of the deepest level that has room for it.
        db.compact_range(start=b"x", stop=b"y")


def logged(db, path, options):
    """A log and nothing else."""
    db.put(b"only", b"in the log")


SMALL = {"write_buffer_size": 4096, "block_size": 256}
DIRECTORIES = {
    "leveldb-snappy": (mixed, {"compression": "snappy", **SMALL}),
    "leveldb-filter": (mixed, {"compression": None, "bloom_filter_bits": 10, **SMALL}),
    "leveldb-log": (logged, {}),
    "leveldb-neighbours": (neighbours, {"compression": "snappy", "block_size": 256}),
    # Too large to keep: only where it is asked for.
    "leveldb-shared": (shared, {"compression": None, "max_file_size": 1 << 20, **SMALL}),
}


def main(folder, names):
    for name in names or [name for name in DIRECTORIES if name != "leveldb-shared"]:
        fill, options = DIRECTORIES[name]
        make(folder, name, fill, **options)


main(sys.argv[1], sys.argv[2:])
