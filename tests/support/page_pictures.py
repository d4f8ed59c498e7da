#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page_pictures.py TRACE FOLDER: the first screen of `pperf-report html TRACE` as
FOLDER/html-light.png and FOLDER/html-dark.png. The pictures of README.md:

    make demo-torch && python3 tests/support/page_pictures.py build/demo_torch.bin doc"""
import pathlib, subprocess, sys, tempfile
from browser import Browser

REPORT = pathlib.Path(__file__).parent.parent.parent / "build" / "pperf-report"


def main(trace, folder):
    with tempfile.TemporaryDirectory() as scratch, Browser(1440, 900) as browser:
        page = pathlib.Path(scratch, "page.html")
        subprocess.run([REPORT, "html", trace, "-o", page], check=True)
        for theme in ("light", "dark"):
            browser.open(page, theme=theme)
            browser.picture(pathlib.Path(folder, "html-%s.png" % theme))


main(*sys.argv[1:])
