#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""wheel_stubs.py TORCH STANDINS OUT: what the torch package in the folder TORCH asks of NVIDIA and the simulated libraries in STANDINS lack.

For each library that PyTorch needs and that is not simulated, OUT gets one of its name, so that no real one is mapped; what the simulated ones lack is
in OUT/libcudasim_rest.so, which is looked at last. Every function there says its name (SIM_STUBS=1, SIM_LOG) and refuses as one of its library would.
"""
import glob, os, pathlib, re, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../torch"))
from without_cuda import FOREIGN, Library, libraries, make, missing

# "Not supported", or what is nearest to it, in each library's own numbers; the first that fits.
ANSWERS = [("cublas", 15), ("cusparse", 10), ("cusolver", 9), ("cufft", 16), ("curand", 999), ("cudnn", 3000), ("ncclGetVersion", 3), ("nccl", 3),
           ("nvrtc", 11), ("cupti", 27), ("nvtx", 0), ("nvml", 3), ("cuFile", 5001), ("nvshmem", 1), ("", 801)]
DECLARES = "int sim_refuse(const char *name, int error);\n"


def stub(symbol):
    if re.search("(String|Name)$", symbol):
        return 'const char *%s(void) { sim_refuse("%s", 0); return "not simulated"; }\n' % (symbol, symbol)
    answer = next(answer for prefix, answer in ANSWERS if symbol.startswith(prefix))
    return 'int %s(void) { return sim_refuse("%s", %d); }\n' % (symbol, symbol, answer)


def refusals(symbols):
    return DECLARES + "".join(stub(symbol) for wanted in symbols.values() for symbol in sorted(wanted))


def main():
    torch, standins, out = (pathlib.Path(path) for path in sys.argv[1:])
    roots = [path.name for path in (torch / "lib").glob("lib*.so") if not FOREIGN.match(path.name)]
    asked = missing(libraries(torch / "lib", roots))
    simulated = {path.name: Library(str(path)).defined for path in standins.glob("lib*.so.*")}
    known = set().union(*simulated.values())
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("lib*"):
        old.unlink()
    rest = set()
    for name, symbols in sorted(asked.items()):
        # What is asked of no version may be anybody's.
        rest |= symbols.pop("", set()) - known
        if name in simulated:
            rest |= set().union(*symbols.values()) - known
        else:
            make(out, name, symbols, refusals(symbols))
    make(out, "libcudasim_rest.so", {}, refusals({"": rest}))


main()
