"""Headless Chromium, driven by its DevTools protocol through two pipes: nothing but the standard library is needed."""

import base64
import json
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
import time

# It talks through file descriptors 3 and 4, wherever ours are.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# Returns the number of texts on a page, and those whose contrast with their background is below 4.5.
CONTRAST = """
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d", { willReadFrequently: true });
    canvas.width = canvas.height = 1;
    const paint = (colours) => { for (const c of colours) { pen.fillStyle = c; pen.fillRect(0, 0, 1, 1); }
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3); };
    const light = (rgb) => rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    document.querySelectorAll("details").forEach((d) => { d.open = true; });
    await new Promise((r) => setTimeout(r, 200));
    const poor = new Set();
    let seen = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const of = node.parentElement, style = getComputedStyle(of);
        if (!node.textContent.trim() || !of.checkVisibility() || of.closest("script, style, desc, title")) continue;
        const grounds = [];
        for (let each = of; each; each = each.parentElement) grounds.unshift(getComputedStyle(each).backgroundColor);
        const ground = paint(["#fff", ...grounds]);
        const text = paint([`rgb(${ground})`, of.closest("svg") ? style.fill : style.color]);
        const [low, high] = [light(ground), light(text)].sort((a, b) => a - b);
        seen += 1;
        if ((high + 0.05) / (low + 0.05) < 4.5)
            poor.add(`${of.tagName}.${of.className}: ${node.textContent.trim()} ${text} on ${ground}`);
    }
    return [seen, [...poor]];
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One browser with one page. ``problems`` has errors on the console, ``requests`` every address asked for."""

    def __init__(self, patience=60.0):
        self.patience = patience
        self.problems, self.requests, self.count, self.rest = [], [], 0, b""
        self.profile = tempfile.mkdtemp(prefix="robandit-chromium-")
        theirs_in, self.into = os.pipe()
        self.out, theirs_out = os.pipe()
        command = [
            *(
                executable(),
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ),
            *("--disable-extensions", "--disable-background-networking", "--disable-component-update"),
            *("--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile}", "about:blank"),
        ]
        launch = [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command]
        self.process = subprocess.Popen(
            launch, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.readable = selectors.DefaultSelector()
        self.readable.register(self.out, selectors.EVENT_READ)
        self.session = None
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self):
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self):
        self.session = None
        try:
            self.call("Browser.close")
        except (OSError, AssertionError):
            self.process.kill()
        self.process.wait(self.patience)
        self.readable.close()
        os.close(self.into)
        os.close(self.out)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **given):
        """Ask, and wait for the answer; what happens meanwhile is noted."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": given}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.into, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, path, *, width=1200, height=900, dark=False, script=True):
        """Load a file or an address, as it is seen on a screen of this size, and wait until it is there."""
        self.problems.clear()
        self.requests.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not script)
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.loaded = False
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        while not self.loaded:
            self._next()

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def do(self, script):
        """What a script in the page returns, once it has settled."""
        wrapped = f"(async () => {{ {script} }})()"
        result = self.call("Runtime.evaluate", expression=wrapped, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, condition, patience=30.0):
        """Wait until an expression in the page is true, also across pages, and return its value."""
        end, reason = time.monotonic() + patience, ""
        while time.monotonic() < end:
            try:
                if value := self.do(f"const value = {condition}; return value instanceof Node || value"):
                    return value
            except AssertionError as error:  # the next page is not there yet
                reason = str(error)
            time.sleep(0.02)
        raise AssertionError(f"not true: {condition} {reason}")

    def write(self, text):
        """Type a text into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key):
        """A key, as from a keyboard."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        codes = {"Enter": 13, " ": 32, "ArrowLeft": 37, "Home": 36, "Tab": 9, "Escape": 27}
        for kind in ("keyDown", "keyUp"):
            shown = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **shown)

    def picture(self, *, whole=True):
        """A PNG of the page."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _next(self):
        end = time.monotonic() + self.patience
        while b"\0" not in self.rest:
            assert self.readable.select(max(0.0, end - time.monotonic())), "Chromium does not answer"
            piece = os.read(self.out, 1 << 20)
            assert piece, "Chromium has ended"
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(line)
        event, details = message.get("method"), message.get("params", {})
        if event == "Runtime.exceptionThrown":
            self.problems.append(details["exceptionDetails"])
        elif event == "Log.entryAdded" and details["entry"]["level"] in ("error", "warning"):
            self.problems.append(details["entry"])
        elif event == "Runtime.consoleAPICalled" and details["type"] in ("error", "warning", "assert"):
            self.problems.append(details)
        elif event == "Network.requestWillBeSent":
            self.requests.append(details["request"]["url"])
        elif event == "Page.loadEventFired":
            self.loaded = True
        return message
