"""What can go wrong, a class for each kind.

Every class derives from `Error`, and where Python has one for the same case, from that as well:
``except KeyError``, ``except OSError`` and ``except ValueError`` catch what they are expected to.
"""

from __future__ import annotations

__all__ = [
    "CancelledError",
    "ClosedError",
    "ConflictError",
    "CorruptionError",
    "Error",
    "FencedError",
    "InternalError",
    "InvalidArgumentError",
    "LimitExceededError",
    "LockTimeoutError",
    "LockedError",
    "MergeError",
    "NoSpaceError",
    "NotCommittedError",
    "NotFoundError",
    "OutcomeUnknownError",
    "ReadOnlyError",
    "StalledError",
    "StorageError",
    "UnsupportedError",
]


class Error(Exception):
    """What the store could not do. Its text says what happened, where, and what helps."""

    #: What to do about errors of this class.
    advice: str = "read the message"
    #: The file it concerns, if any.
    file: str | None
    #: The byte offset in that file, if known.
    offset: int | None

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        offset: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.offset = offset
        #: The operating system's error number, if it was one.
        self.errno = errno

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self), self.args[0], self.file, self.offset, self.errno))

    @property
    def kind(self) -> str:
        """The kind in one word: the name of the class without `Error`."""
        return type(self).__name__.removesuffix("Error") or "Error"


def _again(
    kind: type[Error], message: str, file: str | None, offset: int | None, errno: int | None
) -> Error:
    return kind(message, file=file, offset=offset, errno=errno)


class CorruptionError(Error):
    """Stored bytes fail their check."""

    advice = "restore the named file from a backup, or salvage what is readable; nothing was changed"


class StorageError(Error, OSError):
    """The operating system refused an operation."""

    advice = "fix the cause that the message names, and try again"


class NoSpaceError(StorageError):
    """The disk is full."""

    advice = "free space; writes resume by themselves"


class LimitExceededError(Error, ValueError):
    """A key, a value, a batch or a budget is over its limit."""

    advice = "make it smaller; nothing was written"


class StalledError(Error, BlockingIOError):
    """Writes wait for compaction, and the call asked not to wait."""

    advice = "try again later, or write with wait=True"


class LockedError(Error):
    """Another handle or process has the database open."""

    advice = "close it there, or open with read_only=True"


class FencedError(Error):
    """This handle lost its right to write: the process forked, or another one took over."""

    advice = "open the database again in this process, after the other one has closed it"


class NotCommittedError(Error):
    """The write failed and can never become visible."""

    advice = "write it again"


class OutcomeUnknownError(Error):
    """The write failed and may be visible after the next open."""

    advice = "open again and read before you write it again"


class ReadOnlyError(Error):
    """The database serves reads only; the message names the cause."""

    advice = "open it without read_only=True, or end the cause and open it again"


class UnsupportedError(Error, NotImplementedError):
    """The file or the request needs what this version lacks."""

    advice = "nothing was changed; the message names what is missing"


class ClosedError(Error, ValueError):
    """The database, snapshot or transaction is closed."""

    advice = "use it before it is closed"


class ConflictError(Error):
    """Another write came in between, or transactions wait for each other."""

    advice = "roll back, and run the transaction again: `lithify.run` does"


class LockTimeoutError(Error, TimeoutError):
    """Another transaction held a lock for too long."""

    advice = "run the transaction again, or give lock_timeout more seconds"


class CancelledError(Error):
    """The caller called it off. Nothing of it is left."""

    advice = "start it again when it is wanted"


class InvalidArgumentError(Error, ValueError):
    """The request makes no sense as given."""

    advice = "nothing was changed; the message names the fix"


class NotFoundError(Error, KeyError):
    """What was asked for does not exist. A key that is not there is a plain `KeyError`."""

    advice = "make it first (create=True), or ask for one of those that are there"


class MergeError(Error):
    """The merge operator can't combine the operands of a key, which stay as they are."""

    advice = "put or delete the key, or open with the operator that wrote it"


class InternalError(Error):
    """A broken invariant inside the store. The database serves reads only."""

    advice = "report it, with the message"
