from __future__ import annotations

import pytest

from robandit.kernel import build, cache, messages


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """One cache folder for all kernel tests of this run, not the user's."""
    folder = tmp_path_factory.getbasetemp() / "robandit-cache"
    folder.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("ROBANDIT_CACHE_DIR", str(folder))


@pytest.fixture
def as_new_process(monkeypatch: pytest.MonkeyPatch):
    """Forget, when called, everything that was compiled or printed."""

    def forget() -> None:
        monkeypatch.setattr(cache, "_entries", {})
        monkeypatch.setattr(cache, "_parts", {})
        monkeypatch.setattr(messages, "_printed", {})
        monkeypatch.setattr(build, "_written", {})

    forget()
    return forget
