# SPDX-License-Identifier: MIT
"""A client of Chromium's debugging protocol over two pipes: no package, no port, no network.

    with Browser() as browser:
        browser.open(path)
        browser.click("#reset")
        assert not browser.messages()
"""
import base64, json, os, pathlib, select, shutil, subprocess, tempfile, time

WAIT_S = 60
KEY_CODES = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "Tab": 9}


def chromium():
    """The browser's program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, width=1440, height=900):
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        self.process, self.session, self.number, self.unread, self.events = None, None, 0, b"", []
        self.start()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)

    def start(self):
        """Chromium reads requests from descriptor 3 and writes answers to descriptor 4."""
        theirs_in, self.requests_to = os.pipe()
        self.answers_from, theirs_out = os.pipe()
        command = 'exec 3<&%d 4>&%d; exec "$@"' % (theirs_in, theirs_out)
        self.process = subprocess.Popen(["bash", "-c", command, "browser", chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                                         "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe",
                                         "--user-data-dir=" + self.profile, "about:blank"],
                                        pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "HOME": self.profile, "TMPDIR": self.profile})
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def receive(self):
        while b"\0" not in self.unread:
            assert select.select([self.answers_from], [], [], WAIT_S)[0], "the browser does not answer"
            part = os.read(self.answers_from, 1 << 20)
            assert part, "the browser has ended"
            self.unread += part
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.requests_to, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.number:
                self.events.append(answer)
                continue
            assert "error" not in answer, "%s: %s" % (method, answer.get("error"))
            return answer["result"]

    def run(self, script):
        """The value of a script's expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, json.dumps(answer["exceptionDetails"])[:600]
        return answer["result"].get("value")

    def open(self, path, fragment="", theme="light", ready="document.documentElement.dataset.ready"):
        """Opens a file, and waits until it is drawn."""
        self.events.clear()
        self.media(theme)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=pathlib.Path(path).absolute().as_uri() + fragment)
        deadline = time.monotonic() + WAIT_S
        while not self.run("location.protocol === 'file:' && document.readyState === 'complete' && !!(%s)" % ready):
            assert time.monotonic() < deadline and not self.messages(), "the page does not get ready: %s" % self.messages()
            time.sleep(0.02)

    def media(self, theme="light", **features):
        """Emulates preferences: prefers-color-scheme, and others with _ for -."""
        wanted = {"prefers-color-scheme": theme, **{key.replace("_", "-"): value for key, value in features.items()}}
        self.call("Emulation.setEmulatedMedia", features=[{"name": key, "value": value} for key, value in wanted.items()])

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def messages(self):
        """What pages wrote to the console: errors, warnings, refused resources."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(event["params"])[:400] for event in self.events if event["method"] in kinds]

    def requests(self):
        """The addresses that were requested."""
        found = [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]
        return [address for address in found if not address.startswith("about:")]

    def middle(self, selector):
        """The point of an element at which tests click: near its begin, as wide ones have it."""
        return self.run("(() => { const box = document.querySelector(%s).getBoundingClientRect();"
                        "return [box.x + Math.min(box.width / 2, 60), box.y + box.height / 2]; })()" % json.dumps(selector))

    def mouse(self, kind, x, y, **parameters):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **parameters)

    def hover(self, selector):
        self.run("document.querySelector(%s).scrollIntoView({block: 'nearest'})" % json.dumps(selector))
        x, y = self.middle(selector)
        self.mouse("mouseMoved", x, y)
        return x, y

    def click(self, selector):
        x, y = self.hover(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def key(self, *keys):
        for key in keys:
            parameters = {"key": key, "code": key, "windowsVirtualKeyCode": KEY_CODES.get(key, 0)}
            if len(key) == 1:
                parameters["text"] = key
            self.call("Input.dispatchKeyEvent", type="keyDown", **parameters)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def picture(self, path=None):
        """A PNG of what the window shows."""
        image = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        if path:
            pathlib.Path(path).write_bytes(image)
        return image

    def pdf(self, path=None):
        document = base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
        if path:
            pathlib.Path(path).write_bytes(document)
        return document

    def close(self):
        if not self.process:
            return
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(timeout=20)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.requests_to)
        os.close(self.answers_from)
        self.process = None
        # Its helpers write for a moment after it has ended.
        for _ in range(50):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                return
            time.sleep(0.1)
