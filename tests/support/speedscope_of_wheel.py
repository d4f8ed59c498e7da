# SPDX-License-Identifier: MIT
"""speedscope_of_wheel.py FOLDER OUT: unpacks speedscope's page from the wheel of ray in FOLDER."""
import pathlib, sys, zipfile

folder, out = map(pathlib.Path, sys.argv[1:])
out.mkdir(parents=True)
wheel, = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if "/speedscope-" in name and not name.endswith("/"):
            (out / pathlib.PurePosixPath(name).name).write_bytes(archive.read(name))
