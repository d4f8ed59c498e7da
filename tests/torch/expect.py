# SPDX-License-Identifier: MIT
"""The Python counterpart of expect.h: a script writes its calls to a file, in order."""
import json, sys, threading

file = open(sys.argv[1], "w")
lock = threading.Lock()


def text(value):
    return None if value is None else value.encode().hex()


def event(kind, name, domain=None, **more):
    with lock:
        file.write(json.dumps({"tid": threading.get_native_id(), "kind": kind, "name": text(name), "domain": text(domain), **more}) + "\n")
        file.flush()
