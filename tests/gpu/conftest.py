"""Tests of this folder need a GPU; without one they are skipped, and count as not run."""

import pytest


def pytest_collection_modifyitems(items):
    from fkl.runtime.context import available

    here = [item for item in items if "tests/gpu/" in str(item.path)]
    usable = available()
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if not usable:
            item.add_marker(pytest.mark.skip(reason="no CUDA device"))
