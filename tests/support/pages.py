# SPDX-License-Identifier: MIT
"""Traces for tests of pages, a browser that all cases of a test share, and what they measure."""
import atexit, base64, fractions, hashlib, json, os, pathlib, pickle, random, re, struct, time, zlib
from browser import Browser, chromium
from harness import BUILD, ROOT, Skip, report, traced

DATA = os.environ.get("PPERF_TEST_DATA")
PICTURES = os.environ.get("PPERF_TEST_PICTURES")
PAGE = ROOT / "report" / "page"
LEAST_CONTRAST = 4.5
HOSTILE = ["</script><script>window.owned = 1</script>", "<img src=x onerror='window.owned = 1'>", "right \u202e to left", "nul \x00 escape \x1b[31m", "__proto__",
           "lone \ud800 surrogate", "\"quotes\" 'and' \\ slashes / in it", "x" * 100000, "javascript:window.owned = 1", "<!--", "]]>", "&lt;b&gt;"]


# ---- traces ----

def event(category, name, start, duration, tid=1, pid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def operators(names, steps=3, slower=None):
    """Events of torch.profiler: in each step each operator launches a kernel. `slower`: the name of
    an operator whose kernel takes longer."""
    events, at, correlation = [], 1000, 0
    for step in range(steps):
        events.append(event("user_annotation", "ProfilerStep#%d" % step, at, 100 * len(names) + 50))
        for number, name in enumerate(names):
            correlation += 1
            begin, duration = at + 10 + 100 * number, 10 + number % 7 + (50 if name == slower else 0)
            events += [event("cpu_op", name, begin, 60), event("cuda_runtime", "cudaLaunchKernel", begin + 10, 20, correlation=correlation),
                       event("kernel", "kernel_" + name.replace("aten::", "of_"), begin + 40, duration, pid=0, correlation=correlation, device=0, stream=7, grid=[4, 1, 1], block=[128, 1, 1]),
                       {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 1, "ts": begin + 5, "s": "t",
                        "args": {"Total Allocated": 4096 * correlation, "Total Reserved": 1 << 26, "Bytes": 4096, "Addr": 4096 * correlation, "Device Id": 0, "Device Type": 1}}]
        at += 100 * len(names) + 100
    return events


def imported(path, events):
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU <b>"}], "traceEvents": events}))
    return path


def simulated(folder):
    program = BUILD / "cudasim" / "13" / "demo_train"
    if not program.exists():
        raise Skip("the simulated device is not built")
    (folder / "simulated").mkdir(exist_ok=True)
    traced(folder / "simulated", str(program))
    return folder / "simulated" / "trace.bin"


def snapshot(path, names=("forward", "backward", "attention", "optimizer_step"), device=0):
    """A memory snapshot of PyTorch: segments that are filled, and freed in part, until memory runs
    out."""
    picks, trace, now, live, mib = random.Random(1), [], 1700000000000000, [], 1 << 20

    def add(action, address, size, name, **more):
        nonlocal now
        now += picks.randrange(20, 400)
        trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": now,
                      "frames": [{"name": name, "filename": "/home/me/train.py", "line": 10 + len(name)}, {"name": "main", "filename": "/home/me/train.py", "line": 5}], **more})
    for number in range(14):
        size, at = picks.choice([2, 20, 20, 20, 42, 64]) * mib, 0
        base = 0x7f0000000000 + number * 128 * mib
        add("segment_alloc", base, size, names[0])
        while at < size:
            part = min(size - at, picks.choice([64 << 10, 512 << 10, mib, 3 * mib, 5 * mib]))
            add("alloc", base + at, part, picks.choice(names))
            live.append((base + at, part))
            at += part
        picks.shuffle(live)
        for _ in range(len(live) // 3):
            address, part = live.pop()
            add("free_requested", address, part, "free")
            add("free_completed", address, part, "free")
    add("oom", 3 * mib, 700 * mib, names[0], device_free=3 * mib)
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]] * device + [trace], "allocator_settings": {}}, protocol=4))
    return path


def empty_and_cut(folder):
    """A trace without values, and one that is cut at several places. Each is a file until the next
    one is asked for."""
    yield imported(folder / "empty.json", [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}, event("user_annotation", "nothing", 1, 0)])
    whole = simulated(folder).read_bytes()
    cut = folder / "cut" / "cut.bin"
    cut.parent.mkdir()
    for part in (.3, .6, .9):
        cut.write_bytes(whole[:int(len(whole) * part)])
        yield cut


def samples(folder):
    """Traces of each origin that are at hand."""
    found = [imported(folder / "imported.json", operators(["aten::a", "aten::b", "aten::c"]))]
    if (BUILD / "cudasim" / "13" / "demo_train").exists():
        found.append(simulated(folder))
    if DATA:
        found += [pathlib.Path(DATA, name) for name in ("kineto/tl__h100~gaunernst_bert-small-uncased__1016001.json.gz", "nsys/pipit_saxpy-mpi-cuda_nsys_perlmutter0.sqlite")]
    return [path for path in found if path.exists()]


# ---- pages ----

browsers = []


def browser():
    if not chromium():
        raise Skip("Chromium is not installed: scripts/setup.sh test")
    if not browsers:
        browsers.append(Browser())
        atexit.register(browsers[0].close)
    browsers[0].resize(1440, 900)
    return browsers[0]


def data_of(path):
    text = path.read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])


def pixels(image):
    """The colours of a PNG of 8-bit RGB or RGBA, as a set."""
    at, packed, width, kind = 8, b"", 0, 0
    while at < len(image):
        length, name = struct.unpack(">I4s", image[at:at + 8])
        if name == b"IHDR":
            width, _, _, kind = struct.unpack(">IIBB", image[at + 8:at + 18])
        elif name == b"IDAT":
            packed += image[at + 8:at + 8 + length]
        at += length + 12
    size = 4 if kind == 6 else 3
    stride, rows, above = width * size, zlib.decompress(packed), bytearray(width * size)
    found = set()
    for start in range(0, len(rows), stride + 1):
        line, method = bytearray(rows[start + 1:start + 1 + stride]), rows[start]
        for i in range(stride):
            left, up, corner = line[i - size] if i >= size else 0, above[i], above[i - size] if i >= size else 0
            if method == 1:
                line[i] = (line[i] + left) & 255
            elif method == 2:
                line[i] = (line[i] + up) & 255
            elif method == 3:
                line[i] = (line[i] + (left + up) // 2) & 255
            elif method == 4:
                guess = left + up - corner
                near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))
                line[i] = (line[i] + near[2]) & 255
        if start // (stride + 1) % 20 == 10:
            found.update(bytes(line[i:i + 3]) for i in range(0, stride, size))
        above = line
    return found


def keep(name, content):
    if PICTURES:
        pathlib.Path(PICTURES, name).write_bytes(content)


def scaled(value, unit):
    """A number as text views print it, from exact fractions."""
    scales = {"time": ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns")),
              "bytes": ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))}[unit]
    divisor, name = next(scale for scale in scales if scale[0] == 1 or scale[0] <= value)
    if divisor == 1:
        return "%d %s" % (value, name)
    hundredths = round(fractions.Fraction(value * 100, divisor))
    return "%d.%02d %s" % (hundredths // 100, hundredths % 100, name)


def json_of(view, trace, *options):
    return json.loads(report(view, trace, *options, "-f", "json").stdout)


# ---- safety ----

def check_policy(text):
    """The policy of a page allows its own styles and scripts, by their hashes, and nothing else."""
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        hashes = {"'sha256-%s'" % base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in re.findall(r"<%s>(.*?)</%s>" % (tag, tag), text, re.S)}
        assert hashes and hashes == set(re.search(directive + " ([^;]*)", policy)[1].split()), directive
    assert "default-src 'none'" in policy and "unsafe" not in policy


def hostile(folder):
    """A trace with hostile names, also its own."""
    return imported(folder / "<img src=x onerror=alert(1)>.json", operators(HOSTILE))


def open_hostile(window, path):
    """Opens a page with hostile names: it is quick, and none of them is an element or a script."""
    started = time.monotonic()
    window.open(path)
    assert time.monotonic() - started < 10, "names of 100 kB make the page slow"
    assert window.run("String(window.owned) + document.querySelectorAll('img, iframe, object, main script, header script').length") == "undefined0"


def theme_colours():
    """The colours of tokens.css by name, of the light and of the dark theme."""
    tokens = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", (PAGE / "tokens.css").read_text())
    return [{name: pair[theme] for name, *pair in tokens} for theme in (0, 1)]


def check_colours_differ(*kinds):
    """The colours whose names match one of `kinds` can be told apart in both themes."""
    for colours in theme_colours():
        for kind in kinds:
            of = [name for name in colours if re.match(kind, name)]
            for i, name in enumerate(of):
                for other in of[:i]:
                    distance = sum(abs(int(colours[name][at:at + 2], 16) - int(colours[other][at:at + 2], 16)) for at in (1, 3, 5))
                    assert distance >= 36, (name, other, distance)


def luminance(colour):
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= .04045 else ((part + .055) / 1.055) ** 2.4 for part in parts]
    return .2126 * red + .7152 * green + .0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + .05) / (low + .05)


def mixed(over, under, opacity):
    return "#" + "".join("%02x" % round(int(over[i:i + 2], 16) * opacity + int(under[i:i + 2], 16) * (1 - opacity)) for i in (1, 3, 5))
