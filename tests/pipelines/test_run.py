"""A run as every process sees it."""

from __future__ import annotations

import pytest

from gristmill.documents.errors import UsageError
from gristmill.pipelines.run import Run


def test_versions_library_that_is_missing_is_one_line():
    with pytest.raises(UsageError, match="no-such-library, which is not installed: `pip install"):
        Run.versions("numpy", "no-such-library")
