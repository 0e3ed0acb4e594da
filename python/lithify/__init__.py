"""Lithify: an embedded, durable, ordered key-value store whose compaction scales.

>>> import lithify, tempfile
>>> with lithify.open(tempfile.mkdtemp(), memory="64MiB") as db:
...     db[b"apple"] = b"red"
...     db[b"banana"] = b"yellow"
...     db[b"apple"], db.get(b"plum", b"?"), list(db.scan(prefix=b"b"))
(b'red', b'?', [(b'banana', b'yellow')])

A database is a mapping of bytes to bytes that survives the program, ordered by its keys. Writes are
acknowledged at the durability that they ask for; readers never wait for writers. Errors are classes of
`lithify.errors`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, MutableMapping
from typing import Literal, TypeVar

from lithify import errors
from lithify._lithify import (
    Backups,
    Batch,
    Columns,
    Database,
    Follower,
    Scan,
    Snapshot,
    Stats,
    TableWriter,
    Transaction,
    follow,
    import_directory,
    list_families,
    open,
    salvage,
    settings,
    verify,
)
from lithify.errors import ConflictError, Error, LockTimeoutError

__all__ = [
    "Backups",
    "Batch",
    "Columns",
    "Database",
    "Error",
    "Follower",
    "Scan",
    "Snapshot",
    "Stats",
    "TableWriter",
    "Transaction",
    "errors",
    "follow",
    "import_directory",
    "list_families",
    "open",
    "run",
    "salvage",
    "settings",
    "verify",
]

__version__ = "0.1.0"

MutableMapping.register(Database)

_T = TypeVar("_T")


def run(
    db: Database,
    work: Callable[[Transaction], _T],
    *,
    optimistic: bool = True,
    snapshot: bool = False,
    retries: int = 5,
    lock_timeout: float = 1.0,
    durability: Literal["no-wal", "buffered", "os", "sync"] | None = None,
) -> _T:
    """Does `work` with a transaction and commits it; what `work` returns.

    When another transaction was quicker, `work` is done again with a fresh one, up to `retries` times, so it
    should have no effects besides. An exception of its own rolls back and is raised.
    """
    for attempt in range(retries + 1):
        transaction = db.transaction(
            optimistic=optimistic,
            snapshot=snapshot,
            lock_timeout=lock_timeout,
            durability=durability,
        )
        try:
            result = work(transaction)
            transaction.commit()
            return result
        except (ConflictError, LockTimeoutError):
            if attempt == retries:
                raise
        finally:
            transaction.rollback()
        time.sleep(0.001 * attempt)
    raise ValueError(f"retries is 0 or more, not {retries}")
