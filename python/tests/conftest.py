"""What the tests have in common: a database in a directory of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lithify


@pytest.fixture
def db(tmp_path: Path) -> Iterator[lithify.Database]:
    with lithify.open(tmp_path / "db", memory="32MiB") as db:
        yield db
