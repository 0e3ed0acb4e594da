"""How fast it is beside `rocksdict` and `plyvel`: ``python -m lithify.bench``.

Each round runs each store in a process of its own, one after another, over the same keys in the same order: the
ratio of two stores is then of the same minutes of a machine. Writes are acknowledged when the operating system
has them, nothing is compressed, every value that is read is checked. Before the reads each store compacts all it
has: `plyvel` flushes in no other way, so that all three are read in the same shape. Gets from ten times as much
data as memory are measured twice: with each store's defaults, by which LevelDB and Lithify map their tables into memory
and RocksDB does not, and with the tables of all three mapped. A row shows operations per second, the median of the
rounds, and the ratio to each peer; a ratio below 1 is marked as a miss. On a busy machine
``--clock processor`` counts seconds of the processor in place of the clock's: those of all threads of a store, so
that what it leaves to threads of its own counts, and waiting does not.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any, Protocol

PEERS = ("rocksdict", "plyvel")
# Bytes for a store: all of it for ours, an eighth for a memtable and half for cached blocks of the others.
MEMORY = 256 << 20
# The least that ours opens with; with fewer than 180,000 entries that is more than a tenth of them.
LEAST = 2 << 20
THREADS = 4
IN_MEMORY = "db[k]"
BY_THREADS = f"db[k], {THREADS} threads"
MULTI = "multi_get of 1,000"
MULTI_BY_THREADS = f"{MULTI}, {THREADS} threads"
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "processor": time.process_time}
MISSES = "db[k], 10x memory"
MAPPED = f"{MISSES}, mapped"
PAIRS = "scan of pairs"
COLUMNS = "scan_columns"


class Store(Protocol):
    """What a store has to do here."""

    def put(self, key: bytes, value: bytes) -> None: ...
    def batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None: ...
    def get(self, key: bytes) -> bytes | None: ...
    def multi_get(self, keys: list[bytes]) -> list[bytes | None] | None: ...
    def scan(self) -> Iterable[tuple[bytes, bytes]]: ...
    def compact(self) -> None: ...
    def close(self) -> None: ...


class Lithify:
    def __init__(self, path: str, memory: int = MEMORY, mapped: bool = False) -> None:
        import lithify

        self.db = lithify.open(
            path,
            memory=memory,
            mapped_reads=mapped or "auto",  # the latter is the default
            compression_upper="none",
            compression_lower="none",
        )
        self.get = self.db.__getitem__
        self.put = self.db.__setitem__
        self.multi_get = self.db.multi_get
        self.scan = self.db.scan
        self.compact = self.db.compact
        self.close = self.db.close

    def batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        with self.db.batch() as batch:
            for key, value in pairs:
                batch.put(key, value)


class Rocksdict:
    def __init__(self, path: str, memory: int = MEMORY, mapped: bool = False) -> None:
        import rocksdict

        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_compression_type(rocksdict.DBCompressionType.none())
        options.set_write_buffer_size(memory // 8)
        options.set_allow_mmap_reads(mapped)
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(rocksdict.Cache(memory // 2))
        blocks.set_bloom_filter(10, False)
        options.set_block_based_table_factory(blocks)
        self.db = rocksdict.Rdict(path, options)
        self.batches = rocksdict.WriteBatch
        self.get = self.db.__getitem__
        self.put = self.db.__setitem__
        self.scan = self.db.items
        self.close = self.db.close

    def batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        batch = self.batches(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.db.write(batch)

    def multi_get(self, keys: list[bytes]) -> list[bytes | None] | None:
        found: list[bytes | None] = self.db[keys]
        return found

    def compact(self) -> None:
        self.db.compact_range(None, None)


class Plyvel:
    def __init__(self, path: str, memory: int = MEMORY, mapped: bool = False) -> None:
        import plyvel

        del mapped  # LevelDB maps tables in any case, a thousand at most.
        self.db = plyvel.DB(
            path,
            create_if_missing=True,
            compression=None,
            write_buffer_size=memory // 8,
            lru_cache_size=memory // 2,
            bloom_filter_bits=10,
        )
        self.get = self.db.get
        self.put = self.db.put
        self.scan = self.db.iterator
        self.close = self.db.close

    def batch(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        with self.db.write_batch() as batch:
            for key, value in pairs:
                batch.put(key, value)

    def multi_get(self, keys: list[bytes]) -> list[bytes | None] | None:
        return None

    def compact(self) -> None:
        self.db.compact_range()


STORES: dict[str, Callable[..., Store]] = {
    "lithify": Lithify,
    "rocksdict": Rocksdict,
    "plyvel": Plyvel,
}


def value_of(number: int, size: int) -> bytes:
    return (b"%016d" % (number * 2654435761 % 10**16)).ljust(size, b"v")


def measured(name: str, entries: int, size: int, clock: str) -> dict[str, float]:
    """Operations per second of store `name`, by row."""
    now = CLOCKS[clock]
    place = tempfile.mkdtemp(prefix="lithify-bench-")
    order = list(range(entries))
    random.Random(7).shuffle(order)
    keys = [b"%016d" % i for i in range(entries)]
    values = [value_of(i, size) for i in range(entries)]
    rows: dict[str, float] = {}

    def timed(row: str, count: int, work: Callable[[], None]) -> None:
        begin = now()
        work()
        rows[row] = count / (now() - begin)

    def puts(store: Store) -> None:
        put = store.put
        for i in order:
            put(keys[i], values[i])

    def batches(store: Store) -> None:
        for at in range(0, entries, 1000):
            store.batch([(keys[i], values[i]) for i in order[at : at + 1000]])

    def gets(store: Store, part: list[int]) -> None:
        get = store.get
        for i in part:
            if get(keys[i]) != values[i]:
                raise SystemExit(f"{name}: a wrong value of key {i}")

    def multi_gets(store: Store, part: list[int]) -> None:
        for at in range(0, len(part), 1000):
            some = part[at : at + 1000]
            if store.multi_get([keys[i] for i in some]) != [values[i] for i in some]:
                raise SystemExit(f"{name}: a wrong value")

    def by_threads(work: Callable[[Store, list[int]], None], store: Store) -> None:
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            for done in [pool.submit(work, store, order[t::THREADS]) for t in range(THREADS)]:
                done.result()

    def scans(store: Store) -> None:
        count = 0
        for key, value in store.scan():
            if key != keys[count] or value != values[count]:
                raise SystemExit(f"{name}: a wrong entry at {count}")
            count += 1
        if count != entries:
            raise SystemExit(f"{name}: {count} entries of {entries}")

    def batches_of(store: Any) -> Any:
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(store.db.scan_columns())

    def columns(store: Any) -> None:
        if sum(len(batch) for batch in batches_of(store)) != entries:
            raise SystemExit(f"{name}: not {entries} entries")

    def check_columns(store: Any) -> None:
        import pyarrow

        at = 0
        for batch in batches_of(store):
            wanted = [keys[at : at + len(batch)], values[at : at + len(batch)]]
            for column, expected in zip(batch.columns, wanted, strict=True):
                if column != pyarrow.array(expected, pyarrow.large_binary()):
                    raise SystemExit(f"{name}: a wrong column from {at} on")
            at += len(batch)

    try:
        store = STORES[name](f"{place}/put")
        timed("db[k] = v", entries, lambda: puts(store))
        store.close()
        store = STORES[name](f"{place}/batch")
        timed("batch of 1,000", entries, lambda: batches(store))
        store.compact()
        scans(store)  # into the caches
        timed(IN_MEMORY, entries, lambda: gets(store, order))
        timed(BY_THREADS, entries, lambda: by_threads(gets, store))
        if store.multi_get(keys[:1]) is not None:
            timed(MULTI, entries, lambda: multi_gets(store, order))
            timed(MULTI_BY_THREADS, entries, lambda: by_threads(multi_gets, store))
        timed(PAIRS, entries, lambda: scans(store))
        if name == "lithify" and importlib.util.find_spec("pyarrow"):
            check_columns(store)  # not timed: making the expected columns takes longer than reading
            timed(COLUMNS, entries, lambda: columns(store))
        store.close()
        # The files lie in the system's cache: what is measured is a miss of the store's own.
        memory = max(entries * (size + 16) // 10, LEAST)
        some = order[: max(entries // 5, 1)]
        for row, mapped in [(MISSES, False), (MAPPED, True)]:
            store = STORES[name](f"{place}/batch", memory, mapped)
            timed(row, len(some), lambda: gets(store, some))
            store.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return rows


def child(name: str, entries: int, size: int, clock: str) -> dict[str, float]:
    command = [sys.executable, "-m", "lithify.bench", "--child", name, "--clock", clock]
    command += ["--entries", str(entries), "--value", str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    rows: dict[str, float] = json.loads(done.stdout)
    return rows


def compare(entries: int, size: int, rounds: int, clock: str) -> dict[str, dict[str, list[float]]]:
    """What each round of each store measured, by row."""
    names = ["lithify", *(p for p in PEERS if importlib.util.find_spec(p))]
    for peer in PEERS:
        if peer not in names:
            print(f"{peer} is not installed: pip install {peer}", file=sys.stderr)
    seen: dict[str, dict[str, list[float]]] = {}
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            print(f"\rround {turn + 1} of {rounds}: {name:10}", end="", file=sys.stderr, flush=True)
            for row, rate in child(name, entries, size, clock).items():
                seen.setdefault(row, {}).setdefault(name, []).append(rate)
    print(file=sys.stderr)
    return seen


def table(seen: dict[str, dict[str, list[float]]]) -> str:
    names = ["lithify", *(p for p in PEERS if any(p in row for row in seen.values()))]
    lines = ["| thousands a second | " + " | ".join(names) + " | ratios |"]
    lines.append("|---" * (len(names) + 2) + "|")
    for row, rates in seen.items():
        medians = {name: statistics.median(rates[name]) for name in rates}
        cells = [f"{medians[n] / 1000:.0f}" if n in medians else "-" for n in names]
        ratios = [f"{medians['lithify'] / medians[n]:.2f}x {n}" for n in medians if n != "lithify"]
        for threads, one in [(BY_THREADS, IN_MEMORY), (MULTI_BY_THREADS, MULTI)]:
            if row == threads:
                ratios.append(f"{medians['lithify'] / statistics.median(seen[one]['lithify']):.2f}x its one thread")
        if row == COLUMNS:
            ratios.append(f"{medians['lithify'] / statistics.median(seen[PAIRS]['lithify']):.2f}x its pairs")
        marked = [r if float(r.split("x")[0]) >= 1 else f"{r} (miss)" for r in ratios]
        lines.append(f"| {row} | " + " | ".join(cells) + f" | {', '.join(marked)} |")
    return "\n".join(lines)


def main() -> None:
    """Reads the arguments, measures, and prints the table."""
    parser = argparse.ArgumentParser(prog="python -m lithify.bench", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000, help="entries (1,000,000)")
    parser.add_argument("--value", type=int, default=100, help="bytes of a value, 16 or more (100)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what seconds are of (wall)")
    parser.add_argument("--json", action="store_true", help="print every round as JSON")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    wish: Any = parser.parse_args()
    if wish.entries < 1 or wish.rounds < 1 or wish.value < 16:
        parser.error("entries and rounds are 1 or more, a value 16 bytes or more")
    if wish.child:
        print(json.dumps(measured(wish.child, wish.entries, wish.value, wish.clock)))
        return
    seen = compare(wish.entries, wish.value, wish.rounds, wish.clock)
    print(json.dumps(seen) if wish.json else table(seen))


if __name__ == "__main__":
    main()
