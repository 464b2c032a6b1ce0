"""`robandit run`: options that do not go together."""

from pathlib import Path

import pytest

from robandit.cli.run import run
from robandit.errors import InvalidInput


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2}, "--workers can be used only with --engine dask"),
        (
            {"scheduler": "tcp://h:1", "scheduler_file": Path("f")},
            "--scheduler and --scheduler-file can be used only with",
        ),
        (
            {"engine": "dask"},
            "--engine dask needs exactly one of --scheduler, --scheduler-file, --workers; given: none",
        ),
        (
            {"engine": "dask", "workers": 2, "scheduler": "tcp://h:1"},
            "--engine dask needs exactly one of .*; given: --scheduler and --workers",
        ),
        ({"engine": "dask", "workers": 0}, "--workers = 0 must be an integer >= 1"),
        ({"engine": "dask", "workers": 2, "threads": 3}, "--threads 3 cannot be used with --engine dask, .* omit one"),
    ],
)
def test_options_that_do_not_go_together_are_rejected_by_name(options, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        run(tmp_path / "none.toml", **options)
