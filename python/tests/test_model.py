"""Random lives beside a dict: whatever the order of calls, the database is what the dict is."""

from __future__ import annotations

import os
import shutil
import tempfile

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import lithify

KEYS = st.one_of(st.sampled_from([b"", b"\x00", b"\xff", b"\xff\xff", b"a", b"a\x00"]), st.binary(max_size=3))
VALUES = st.one_of(st.binary(max_size=20), st.binary(min_size=1000, max_size=1000))


class Life(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.place = tempfile.mkdtemp()
        self.model: dict[bytes, bytes] = {}
        self.then: tuple[lithify.Snapshot, dict[bytes, bytes]] | None = None
        self.db = lithify.open(self.place, memory="32MiB")

    def teardown(self) -> None:
        self.let_go()
        self.db.close()
        assert lithify.verify(self.place) == []
        shutil.rmtree(self.place)

    def let_go(self) -> None:
        if self.then:
            self.then[0].close()
        self.then = None

    @rule(key=KEYS, value=VALUES)
    def put(self, key: bytes, value: bytes) -> None:
        self.db[key] = value
        self.model[key] = value

    @rule(key=KEYS)
    def delete(self, key: bytes) -> None:
        self.db.delete(key)
        self.model.pop(key, None)

    @rule(key=KEYS)
    def pop(self, key: bytes) -> None:
        assert self.db.pop(key, None) == self.model.pop(key, None)

    @rule(a=KEYS, b=KEYS)
    def delete_range(self, a: bytes, b: bytes) -> None:
        start, stop = sorted((a, b))
        self.db.delete_range(start, stop)
        self.model = {k: v for k, v in self.model.items() if not start <= k < stop}

    @rule(pairs=st.dictionaries(KEYS, VALUES, max_size=5), kept=st.booleans())
    def batch(self, pairs: dict[bytes, bytes], kept: bool) -> None:
        try:
            with self.db.batch() as batch:
                batch.update(pairs)
                if not kept:
                    raise LookupError
            self.model.update(pairs)
        except LookupError:
            pass

    @rule(pairs=st.dictionaries(KEYS, VALUES, max_size=5), gone=KEYS, optimistic=st.booleans())
    def transaction(self, pairs: dict[bytes, bytes], gone: bytes, optimistic: bool) -> None:
        with self.db.transaction(optimistic=optimistic) as t:
            assert t.get_for_update(gone) == self.model.get(gone)
            for key, value in pairs.items():
                t[key] = value
            del t[gone]
            self.model.update(pairs)
            self.model.pop(gone, None)
            assert dict(t.scan()) == self.model

    @rule()
    def snapshot(self) -> None:
        self.let_go()
        self.then = (self.db.snapshot(), dict(self.model))

    @rule()
    def flush(self) -> None:
        self.db.flush()

    @rule()
    def compact(self) -> None:
        self.db.compact()

    @rule()
    def reopen(self) -> None:
        self.let_go()
        self.db.close()
        self.db = lithify.open(self.place, memory="32MiB")

    @rule(a=KEYS, b=KEYS, reverse=st.booleans(), limit=st.integers(0, 20))
    def scan(self, a: bytes, b: bytes, reverse: bool, limit: int) -> None:
        wanted = sorted(((k, v) for k, v in self.model.items() if a <= k < b), reverse=reverse)
        assert list(self.db.scan(a, b, reverse=reverse, limit=limit)) == wanted[:limit]

    @rule(prefix=KEYS)
    def prefix(self, prefix: bytes) -> None:
        wanted = sorted(k for k in self.model if k.startswith(prefix))
        assert list(self.db.scan(prefix=prefix, keys_only=True)) == wanted

    @rule(keys=st.lists(KEYS, max_size=8))
    def multi_get(self, keys: list[bytes]) -> None:
        assert self.db.multi_get(keys) == [self.model.get(k) for k in keys]

    @invariant()
    def same(self) -> None:
        assert list(self.db.items()) == sorted(self.model.items())
        if self.then:
            snapshot, model = self.then
            assert list(snapshot.scan()) == sorted(model.items())


Life.TestCase.settings = settings(
    max_examples=int(os.environ.get("LITHIFY_RUNS", "60")),
    stateful_step_count=50,
    deadline=None,
)
TestLife = Life.TestCase
