#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""without_cuda.py TORCH: makes the torch package in the folder TORCH importable where CUDA's libraries are not.

PyTorch's wheel for Linux needs some three gigabytes of NVIDIA's libraries to be imported, and calls none of them as long as
there is no device. For each library that is needed and missing, this puts one of the same name beside PyTorch's own, with the
symbols and versions that are asked of it; every function says that there is no device.
"""
import os, pathlib, re, subprocess, sys, tempfile

FOREIGN = re.compile(r"lib(cu|nv|nccl)")
THEIRS = re.compile(r"(__cuda|cu|nccl|nv)")
SAYS = "static int no_device(void) { return 100; }\nstatic const char *no_text(void) { return \"no device\"; }\n"


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


class Library:
    def __init__(self, path):
        self.path = path
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))
        names = [line.split()[-2:] for line in output("nm", "-D", path).splitlines()]
        self.asked = [name for letter, name in names if letter == "U"]
        self.defined = {name.split("@")[0] for letter, name in names if letter not in "Uw"}

    def versions(self):
        """{version: the library that it is required from}."""
        found, file = {}, None
        for line in output("readelf", "-VW", self.path).splitlines():
            file = (re.findall(r"File: (\S+)", line) or [file])[0]
            found.update({version: file for version in re.findall(r"Name: (\S+)  Flags", line)})
        return found


def libraries(folder, wanted=("libtorch_global_deps.so", "libtorch_python.so")):
    """The package's own libraries that the named ones need, by name. Without names: those that
    `import torch` maps."""
    found, wanted = {}, list(wanted)
    while wanted:
        name = wanted.pop()
        if name not in found and (folder / name).exists() and not FOREIGN.match(name):
            found[name] = Library(folder / name)
            wanted += found[name].needed
    return found


def missing(found):
    """For each missing library the required symbols by version. '' has those without a version."""
    defined = set().union(*(library.defined for library in found.values()))
    result = {name: {} for library in found.values() for name in library.needed if FOREIGN.match(name)}
    for library in found.values():
        versions = library.versions()
        for symbol in library.asked:
            name, _, version = symbol.partition("@")
            if version:
                result.get(versions.get(version), {}).setdefault(version, set()).add(name)
            elif name not in defined and THEIRS.match(name):
                result[min(result)].setdefault("", set()).add(name)
    return result


def alias(symbol):
    answer = "no_text" if re.search("String|Name$", symbol) else "no_device"
    return 'extern __typeof(%s) %s __attribute__((alias("%s")));\n' % (answer, symbol, answer)


def no_devices(symbols):
    return SAYS + "".join(alias(symbol) for wanted in symbols.values() for symbol in sorted(wanted))


def make(folder, name, symbols, source):
    """Compiles a library with these symbols, by version."""
    script = "".join("%s { %s };\n" % (version, " ".join("%s;" % s for s in sorted(wanted))) for version, wanted in sorted(symbols.items()) if version)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        (work / "stub.c").write_text(source)
        (work / "stub.map").write_text(script)
        subprocess.run([os.environ.get("CC", "cc"), "-w", "-fno-builtin", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + name,
                        *(["-Wl,--version-script=%s" % (work / "stub.map")] if script else []), "-o", work / name, work / "stub.c"], check=True)
        (folder / name).write_bytes((work / name).read_bytes())


def main():
    folder = pathlib.Path(sys.argv[1]) / "lib"
    for name, symbols in sorted(missing(libraries(folder)).items()):
        if not (folder / name).exists():
            make(folder, name, symbols, no_devices(symbols))
            print("%s: %d symbols" % (name, sum(map(len, symbols.values()))))


if __name__ == "__main__":
    main()
