"""`robandit run`: options that do not go together."""

from pathlib import Path

import pytest

from robandit.cli.run import run
from robandit.errors import InvalidInput


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2}, "--workers: only with --engine dask"),
        ({"scheduler": "tcp://h:1", "scheduler_file": Path("f")}, "--scheduler and --scheduler-file: only with"),
        ({"engine": "dask"}, "--engine dask with nothing else: give one of --scheduler, --scheduler-file, --workers"),
        (
            {"engine": "dask", "workers": 2, "scheduler": "tcp://h:1"},
            "--engine dask with --scheduler and --workers: give one",
        ),
        ({"engine": "dask", "workers": 0}, "--workers 0: it must be a whole number >= 1"),
        ({"engine": "dask", "workers": 2, "threads": 3}, "--threads 3 and --engine dask: .* leave one out"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(options, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        run(tmp_path / "none.toml", **options)
