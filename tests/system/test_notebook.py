#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`pperf.load(...).show()` in a notebook that a Jupyter kernel runs, and the page in it as Chromium
shows it."""
import json, os, subprocess, sys, time
import browser
from harness import BUILD, REPORT, ROOT, Skip, case, main, run, traced, unsanitized

PEERS = ROOT / "build" / "export-peers"
MODULE = ROOT / "preload" / "user"
CELLS = ["import pperf\nreport = pperf.load('trace.bin')\nreport.show(height=1000)", "report.verdict['sentences'][0]['text']", "report.page('flame', metric='gpu')",
         "report", "[row['name'] for row in report.tree().rows][:1]"]
# Runs the cells, and writes outputs.json and notebook.html.
RUN = """
import json, nbclient, nbconvert, nbformat, sys
cells = [nbformat.v4.new_code_cell(text) for text in json.loads(sys.argv[1])]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
json.dump([[output.get("data") for output in cell.outputs] for cell in cells], open("outputs.json", "w"))
body, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
open("notebook.html", "w").write("<!doctype html><meta charset=utf-8>" + body)
"""


def demo(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built: make cudasim")
    traced(folder, program, "8")


def notebook(folder):
    if not (PEERS / "nbclient").exists():
        raise Skip("make export-peers is needed")
    demo(folder)
    result = subprocess.run([sys.executable, "-c", RUN, json.dumps(CELLS)], cwd=folder, capture_output=True, text=True, timeout=300,
                            env={**os.environ, "PYTHONPATH": "%s:%s" % (PEERS, MODULE), "JUPYTER_PATH": str(PEERS / "share" / "jupyter"), "HOME": str(folder), "PPERF_REPORT": str(REPORT)})
    assert result.returncode == 0, result.stderr[-800:]
    return json.loads((folder / "outputs.json").read_text())


@unsanitized
def a_notebook_shows_the_page_in_a_frame(folder):
    shown, verdict, flame, whole, names = notebook(folder)
    assert len(shown) == 1 and shown[0]["text/html"].startswith("<iframe srcdoc=") and "<script" not in shown[0]["text/html"], shown
    assert "text/html" not in verdict[0] and len(verdict[0]["text/plain"]) > 20 and names[0]["text/plain"].startswith("["), (verdict, names)
    assert all("sandbox=\"allow-scripts allow-modals\"" in cell[0]["text/html"] for cell in (shown, flame, whole))
    if not browser.chromium():
        raise Skip("chromium is not installed")
    with browser.Browser(1440, 1000) as window:
        window.events.clear()
        window.call("Page.navigate", url=(folder / "notebook.html").as_uri())
        frames = "document.querySelectorAll('iframe').length"
        deadline = time.monotonic() + 60
        while window.run("document.readyState") != "complete" or window.run(frames) != 3:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        # The theme's button is the first of the frame: it works, without an address to keep its state in.
        before = window.picture()
        box = window.run("(() => { const box = document.querySelector('iframe').getBoundingClientRect(); return [box.x, box.y, box.width]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            window.mouse(kind, box[0] + box[2] - 120, box[1] + 28, button="left", clickCount=1)
        while window.picture() == before:
            assert time.monotonic() < deadline, "the theme did not change"
            time.sleep(0.1)
        assert not window.messages(), window.messages()
        assert window.requests() == [(folder / "notebook.html").as_uri()], window.requests()


@unsanitized
def outside_of_notebooks_the_page_can_be_saved(folder):
    demo(folder)
    run(folder, sys.executable, "-c", "import pperf, sys\npage = pperf.load('trace.bin').show()\npage.save('page.html')\nassert repr(page).startswith('<pperf.Page of ')",
        env={"PYTHONPATH": str(MODULE), "PPERF_REPORT": str(REPORT)}, check=0)
    assert (folder / "page.html").read_bytes() == subprocess.run([str(REPORT), "html", "-o", "-", "trace.bin"], cwd=folder, capture_output=True, check=True).stdout


if __name__ == "__main__":
    main()
