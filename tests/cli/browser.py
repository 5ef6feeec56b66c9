"""Headless Chromium driven through the DevTools protocol over pipes: no library besides Python's own is needed.

    with Browser() as browser:
        page = browser.open(path)
        page.run("document.title")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    def __init__(self, width=1600, height=1000, timeout=120):
        program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
        assert program, "no Chromium: install the Debian package chromium (`make setup` does)"
        self.timeout, self._profile = timeout, tempfile.TemporaryDirectory(prefix="collage_browser_")
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()

        def place_pipes():  # the browser reads from descriptor 3 and writes to 4
            os.dup2(read_commands, 13)
            os.dup2(write_answers, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--disable-background-networking", "--disable-component-update", "--no-first-run", "--mute-audio",
             f"--user-data-dir={self._profile.name}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=place_pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env=os.environ | {"HOME": self._profile.name})
        os.close(read_commands)
        os.close(write_answers)
        self._buffer, self._number, self.events = b"", 0, []
        self.width, self.height = width, height

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, AssertionError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self._profile.name, ignore_errors=True)

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._answers, 1 << 20)
            assert data, "the browser went away"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, **parameters):
        """The result of a command; what happens meanwhile is kept in `events`."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        os.write(self._commands, json.dumps(command | ({"sessionId": session} if session else {})).encode() + b"\0")
        deadline = time.monotonic() + self.timeout
        while True:
            message = self._message(deadline)
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self.events.append(message)

    def open(self, path):
        return Page(self, path)


class Page:
    """One file, loaded. `seconds`: until its script says that it is ready."""

    def __init__(self, browser, path):
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=browser.width, height=browser.height, deviceScaleFactor=1, mobile=False)
        self.url = "file://" + os.path.abspath(path)
        begin = time.monotonic()
        self.call("Page.navigate", url=self.url)
        self.wait("document.documentElement?.dataset.ready === 'yes'")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        self.seconds = time.monotonic() - begin

    def call(self, method, **parameters):
        return self._browser.call(method, session=self._session, **parameters)

    def run(self, expression):
        """The value of a JavaScript expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"].get("exception", answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, condition, seconds=120):
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < deadline, f"never true: {condition}"
            time.sleep(0.02)

    def click(self, selector):
        """A real click on the middle of an element."""
        place = self.run(f"""(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'nearest'}});
            const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)

    def press(self, key, text=None):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", landscape=True, printBackground=True)["data"])

    def complaints(self):
        """Errors in the console, exceptions, and requests for anything but the page itself."""
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            method, parameters = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(parameters["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(str(parameters["args"]))
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                url = parameters["request"]["url"]
                if url != self.url and not url.startswith("data:"):
                    found.append(f"request for {url}")
        return found
