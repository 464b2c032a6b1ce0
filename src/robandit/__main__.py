"""``python -m robandit`` is the command ``robandit``."""

from __future__ import annotations

from robandit.cli import main

main()
