#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wheel.py TREE VERSION FOLDER: a wheel of an installed tree. `pip install` puts bin/ beside python and lib/ and share/ below its prefix,
where scripts/pperf finds the library, and the module pperf into site-packages. The module runs on every CPython since 3.8, so one wheel serves all."""
import base64, hashlib, os, platform, sys, zipfile

METADATA = """Metadata-Version: 2.1
Name: pperf
Version: %s
Summary: Where a GPU program's time and memory go, in the terms in which the program was written
License: MIT
Keywords: profiler,GPU,CUDA,PyTorch,NVTX,memory
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.6
Provides-Extra: query
Requires-Dist: duckdb>=1.4,<3; extra == "query"
Requires-Dist: numpy; extra == "query"
Provides-Extra: dask
Requires-Dist: duckdb>=1.4,<3; extra == "dask"
Requires-Dist: numpy; extra == "dask"
Requires-Dist: dask; extra == "dask"
Requires-Dist: distributed; extra == "dask"
Description-Content-Type: text/markdown

%s"""
WHEEL = "Wheel-Version: 1.0\nGenerator: pperf\nRoot-Is-Purelib: false\nTag: %s\n"
MOMENT = (2020, 1, 1, 0, 0, 0) # of every file, so that the same tree gives the same wheel


def files_of(tree, data):
    """(name in the wheel, bytes, mode) of what is installed."""
    modules = "share/pperf/python/"
    for folder, folders, names in os.walk(tree):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            inside = os.path.relpath(path, tree)
            if inside.startswith(modules):
                with open(path, "rb") as f:
                    yield inside[len(modules):], f.read(), 0o644
                continue
            place = "scripts/" + name if inside.startswith("bin/") else "data/" + inside if "/" in inside else None
            if place:
                with open(path, "rb") as f:
                    yield "%s/%s" % (data, place), f.read(), os.stat(path).st_mode & 0o777


def digest(content):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def main():
    tree, version, folder = sys.argv[1:]
    tag = "py3-none-manylinux_2_17_%s" % platform.machine()
    info = "pperf-%s.dist-info" % version
    with open(os.path.join(tree, "README.md"), encoding="utf-8") as f:
        readme = f.read()
    with open(os.path.join(tree, "LICENSE"), "rb") as f, open(os.path.join(tree, "LICENSE-third-party"), "rb") as g:
        licences = [(info + "/licenses/LICENSE", f.read(), 0o644), (info + "/licenses/LICENSE-third-party", g.read(), 0o644)]
    entries = list(files_of(tree, "pperf-%s.data" % version)) + licences + [
        (info + "/METADATA", (METADATA % (version, readme)).encode(), 0o644), (info + "/WHEEL", (WHEEL % tag).encode(), 0o644)]
    record = "".join("%s,%s,%d\n" % (name, digest(content), len(content)) for name, content, _ in entries) + info + "/RECORD,,\n"
    path = os.path.join(folder, "pperf-%s-%s.whl" % (version, tag))
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content, mode in entries + [(info + "/RECORD", record.encode(), 0o644)]:
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    os.replace(path + ".new", path)
    print("%s: pip install it, then pperf run -- python train.py" % path)


main()
