"""Screenshots of the dashboard while `examples/llm_router` runs, four times as fast. Writes dashboard-*.png; needs Chromium.

::

    python docs/figures/dashboard.py

Takes about 80 seconds. Times, and so the pixels, differ from run to run; the story does not.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.chromium import Chromium  # noqa: E402

SPEED = 4.0
END = 292.0  # seconds of the story: traffic has moved four times
PATIENCE = 300.0


def main() -> None:
    """Start the example, wait for the end of its story, and take the pictures."""
    options = ["--seed", "0", "--speed", str(SPEED), "--seconds", "400"]
    router = subprocess.Popen(
        [sys.executable, str(ROOT / "examples" / "llm_router"), *options], stdout=subprocess.PIPE, text=True
    )
    browser = Chromium()
    try:
        assert router.stdout is not None
        url = re.search(r"http://\S+", router.stdout.readline())
        assert url is not None, "the example did not start"
        take_pictures(browser, url[0])
    finally:
        browser.close()
        router.terminate()
        router.communicate(timeout=PATIENCE)


def take_pictures(browser: Chromium, url: str) -> None:
    """Take a picture of each page."""
    time.sleep(END / SPEED)
    picture(browser, url, "overview", height=330)
    picture(browser, f"{url}/experiments/chat", "experiment", height=1150)
    decision = rewarded(url)
    picture(browser, f"{url}/experiments/chat/decision?id={decision}", "decision", height=760)
    picture(browser, f"{url}/new", "new", height=680)


def rewarded(url: str) -> Any:
    """Return the id of a decision of the experiment chat that has its reward."""
    with urllib.request.urlopen(f"{url}/v1/experiments/chat/log?learned=true&limit=2000") as log:
        return json.loads(log.read().splitlines()[-1])["id"]


def picture(browser: Chromium, address: str, name: str, *, height: int = 900) -> None:
    """Write the picture of a page, once it is up to date."""
    browser.open(address, width=1100, height=height)
    time.sleep(2.0)
    (HERE / f"dashboard-{name}.png").write_bytes(browser.picture(whole=False))
    print(f"written: docs/figures/dashboard-{name}.png")


if __name__ == "__main__":
    main()
