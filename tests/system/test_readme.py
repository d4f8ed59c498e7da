#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs every command in README.md, in order, in a folder like the checkout. Scripts with the same
options stand in for programs that a test machine lacks (docker, srun, mpirun, torchrun, jupyter,
train.py) and run the command. Long targets of make are only looked up."""
import re, sys
from harness import *

README = (ROOT / "README.md").read_text()

RANKS = """import os, subprocess, sys
arguments, settings, ranks = sys.argv[1:], {}, 1
while arguments[0].startswith("-"):
    option = arguments.pop(0)
    if option in ("-n", "-np", "--nproc-per-node"):
        ranks = int(arguments.pop(0))
    elif option == "-x":
        settings.update([arguments.pop(0).split("=", 1)])
    else:
        sys.exit("no option " + option)
if arguments[0].endswith(".py"):
    arguments.insert(0, "python")
sys.exit(max(subprocess.call(arguments, env={**os.environ, **settings, VARIABLE: str(rank)}) for rank in range(ranks)))
"""

STAND_INS = {
    "train.py": """import ctypes, sys
library = ctypes.CDLL(LIBRARY)
for step in range(3):
    library.copy_push(b"step: %d" % step), library.copy_push(b"forward"), library.copy_pop(), library.copy_pop()
""",
    "docker": """import os, subprocess, sys
arguments, settings, volumes, folder = sys.argv[2:], {}, {}, None
assert sys.argv[1] == "run"
while arguments[0].startswith("-"):
    option = arguments.pop(0)
    if option == "--rm":
        continue
    value = arguments.pop(0)
    if option == "-v":
        volumes.update([value.split(":")[1::-1]])
    elif option == "-e":
        settings.update([value.split("=", 1)])
    elif option == "-w":
        folder = value
    else:
        assert option == "--gpus", option
outside = lambda path: next((source + path[len(inside):] for inside, source in volumes.items() if path.startswith(inside)), path)
sys.exit(subprocess.call(arguments[1:], cwd=outside(folder), env={**os.environ, **{k: outside(v) for k, v in settings.items()}}))
""",
    "srun": RANKS.replace("VARIABLE", '"SLURM_PROCID"'),
    "mpirun": RANKS.replace("VARIABLE", '"OMPI_COMM_WORLD_RANK"'),
    "torchrun": RANKS.replace("VARIABLE", '"RANK"'),
    "jupyter": 'import subprocess, sys\nassert sys.argv[1] == "lab"\nsys.exit(max(subprocess.call(["python", "train.py"]) for kernel in range(2)))\n',
    "make": 'import subprocess, sys\nsys.exit(subprocess.call(["/usr/bin/env", "-u", "MAKEFLAGS", MAKE, "-C", ROOT, "-n", "BUILD=" + BUILD, *sys.argv[1:]], '
            'stdout=subprocess.DEVNULL))\n',
}


def checkout(folder):
    """A folder with the files that the commands name, and the stand-ins."""
    os.symlink(BUILD, folder / "build")
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "stand-ins").mkdir()
    constants = "LIBRARY, MAKE, ROOT, BUILD = %r, %r, %r, %r\n" % (str(PROGRAMS / "lib_nvtx_copy.so"), shutil.which("make"), str(ROOT), str(BUILD))
    for name, text in STAND_INS.items():
        path = folder / name if name.endswith(".py") else folder / "stand-ins" / name
        path.write_text("#!%s\n" % sys.executable + constants + text)
        path.chmod(0o755)
    os.symlink(sys.executable, folder / "stand-ins" / "python")


def commands():
    return [line for block in re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S) for line in block.splitlines()]


@case
def every_command_of_the_README_works(folder):
    if SANITIZED:
        raise Skip("as in the plain build")
    checkout(folder)
    assert len(commands()) >= 10
    for command in commands():
        result = run(folder, "sh", "-c", command, env={"PATH": "%s:%s" % (folder / "stand-ins", os.environ["PATH"]), "LC_ALL": "C.UTF-8"})
        assert result.returncode == 0, "%s: %d: %s" % (command, result.returncode, result.stderr.decode()[-500:])
    made = {t.name for t in traces(folder)}
    wanted = {"trace.bin", "first.bin", "slurm.0.bin", "slurm.1.bin", "mpi.0.bin", "mpi.1.bin", "torchrun.0.bin", "torchrun.1.bin"}
    assert wanted <= made and sum(name.startswith("kernel.") for name in made) == 2, made
    for name in wanted:
        assert names(folder / name).count("forward") == 3, name


@case
def the_screen_in_the_README_is_what_the_demo_shows(folder):
    traced(folder, BUILD / "cudasim" / "13" / "demo_train")
    shown = report("critical", folder / "trace.bin", "-m", "reserved").stdout.decode()
    assert "```\n%s```" % shown in README, shown


@case
def the_file_names_in_the_README_exist(folder):
    for name in re.findall(r"\]\(([^)#:]+)\)|`((?:tests|scripts|doc|collector|preload|report)/[\w./-]+)`", README):
        path = ROOT / (name[0] or name[1])
        assert path.exists(), path


def page(name):
    return (ROOT / "doc" / name).read_text()


def plain(line):
    """The text that a line of a manual page shows."""
    return re.sub(r"\\f[A-Z]", "", re.sub(r'^\.[BIR]+ |"', "", line).replace("\\-", "-"))


def section(text, name):
    return re.split(r"^\.SH ", text.split(".SH %s\n" % name)[1], flags=re.M)[0]


def entries(text):
    """The first line of each entry of a section, and its text."""
    return [(plain(entry.split("\n")[0]), plain(entry)) for entry in re.split(r"^\.TP\n", text, flags=re.M)[1:]]


def options_of(lines):
    """Short name, long name and argument of each option, as `-f, --format text|json|csv`."""
    return [re.fullmatch(r"(?:(-\w), ?)?(--[a-z-]+) ?(.*)", " ".join(line.replace(" , ", ", ").split())).groups() for line in lines]


@case
def the_page_of_the_report_says_what_its_help_says(folder):
    text = report("--help").stdout.decode()
    views, options = re.search(r"\nviews\n(.*?)\noptions\n(.*?)\nexit status", text, re.S).groups()
    views = re.findall(r"^  ([a-z-]+) ", views, re.M)
    described = [head.split()[0] for head, text in entries(section(page("pperf-report.1"), "VIEWS"))]
    assert described == views, (described, views)
    helped = re.findall(r"^ {2,6}((?:-\w, )?--[a-z-]+(?: [A-Z][A-Z-]*| text\|json\|csv)?) +(.*(?:\n {20}.*)*)", options, re.M)
    listed = entries(section(page("pperf-report.1"), "OPTIONS"))
    assert len(helped) > 30
    ours, theirs = options_of(h for h, _ in helped), options_of(head for head, _ in listed)
    assert sorted(o[:2] for o in ours if o[0]) == sorted(o[:2] for o in theirs if o[0])
    assert sorted(o[1] for o in ours) == sorted(o[1] for o in theirs), {o[1] for o in ours} ^ {o[1] for o in theirs}
    argument = {o[1]: o[2] for o in theirs}
    for (short, name, said), (_, about) in zip(ours, helped):
        choices = argument[name].split("|")
        same = argument[name].lower() == said.lower() or len(choices) > 1 and all(choice in about for choice in choices)
        assert same, "%s: the help says %s, the page %s" % (name, said, argument[name])


@case
def every_view_is_in_the_README_and_in_the_description_of_the_JSON(folder):
    """In the order of --help."""
    views = re.findall(r"^  ([a-z-]+) ", re.search(r"\nviews\n(.*?)\noptions", report("--help").stdout.decode(), re.S)[1], re.M)
    shown = [name for row in re.findall(r"^\| (`.*?|\(none\)) \|", README.split("\n## Report")[1].split("\n## ")[0], re.M) for name in re.findall(r"`([a-z-]+)", row)]
    assert ["summary", *shown] == views, (shown, views)
    described = (ROOT / "doc" / "json-output.md").read_text()
    missing = [view for view in views if "`%s" % view not in described]
    assert not missing, missing


@case
def the_page_of_the_launcher_says_what_its_help_says(folder):
    text = run(folder, "sh", str(ROOT / "scripts" / "pperf"), "--help", check=0).stdout.decode()
    helped = options_of(re.findall(r"^ {2,6}((?:-\w, )?--[a-z-]+(?: [A-Z]+)?)  ", text, re.M))
    listed = options_of(head for head, _ in entries(section(page("pperf.1"), "OPTIONS")))
    assert helped and [o[:2] for o in helped] == [o[:2] for o in listed] and all(bool(h[2]) == bool(o[2]) for h, o in zip(helped, listed)), (helped, listed)
    assert {re.search(r"PPERF_\w+", line)[0] for line in re.findall(r"\(PPERF_\w+", text)} == set(re.findall(r"PPERF_\w+", page("pperf.1").split("EXIT STATUS")[0]))


@case
def the_page_of_the_library_has_every_setting_with_its_default(folder):
    settings = dict(re.findall(r'^\tX\((PPERF_\w+), *"(.*?)"\)', (ROOT / "preload" / "settings.h").read_text(), re.M))
    sources = "".join(path.read_text() for path in (ROOT / "preload").rglob("*.c"))
    listed = {}
    for head, _ in entries(section(page("libpperf.7"), "ENVIRONMENT")):
        default = re.search(r"\((.*)\)", head)
        for name in re.findall(r"PPERF_\w+", head):
            assert name not in listed or not default, "%s is there twice" % name
            listed.setdefault(name, default[1] if default else "")
    more = {name for name in set(listed) - set(settings) if '"%s"' % name in sources or '"%s=' % name in sources}
    assert {k: v for k, v in listed.items() if k not in more} == settings, (listed, settings)


@case
def the_page_of_the_format_has_every_kind_and_key(folder):
    header = (ROOT / "collector" / "trace_format.h").read_text()
    kinds = re.findall(r"\tX\(([A-Z_]+), trace_\w+, \d, \"(.*?)\"\)", re.sub(r"\s*\\\n\s*(?!X\()", " ", header).replace('" "', ""))
    said = [(head, text.split("\n")[1]) for head, text in entries(section(page("pperf.format.5"), "RECORDS"))]
    described = [(kind, text[0].upper() + text[1:] + ".") for kind, text in kinds]
    assert sorted(said) == sorted(described), set(said) ^ set(described)
    assert "the version (%s)" % re.search(r"TRACE_VERSION (\d+)", header)[1] in page("pperf.format.5")
    keys = " ".join(head for head, _ in entries(section(page("pperf.format.5"), "META KEYS")))
    header_keys = header[header.index("META keys:"):header.index("Ids. stream")]
    sources = "".join(path.read_text() for folder in ("preload", "collector") for path in (ROOT / folder).rglob("*.c"))
    for key in set(re.findall(r'meta_set\("([a-z_.]+)"', sources)):
        for where, text in (("the page", keys), ("the header", header_keys)):
            assert re.search(r"\b%s\b" % re.escape(key), text) or key.startswith("warning.") and "warning.*" in text, "%s has no %s" % (where, key)
    for key in re.findall(r"[a-z_.]+[a-z_*]", keys.replace("env.PPERF_*", "")):
        assert key in header_keys, "the header has no %s" % key


@case
def the_pages_are_well_formed(folder):
    checks = [c for c in (["mandoc", "-Tlint", "-W", "warning"], ["groff", "-ww", "-man", "-Tutf8", "-z"]) if shutil.which(c[0])]
    if not checks:
        raise Skip("neither mandoc nor groff is installed")
    for command in checks:
        for path in sorted((ROOT / "doc").glob("*.[1-8]")):
            result = run(folder, *command, str(path))
            assert not result.returncode and not result.stdout + result.stderr, (result.stdout + result.stderr).decode()


@case
def the_pages_fit_a_terminal_of_80_columns(folder):
    """man does not break literal text (examples, layouts)."""
    command = next((c for c in (["groff", "-man", "-Tutf8", "-P-cbou", "-rLL=78n"], ["mandoc", "-Tutf8", "-Owidth=78"]) if shutil.which(c[0])), None)
    if not command:
        raise Skip("neither mandoc nor groff is installed")
    for path in sorted((ROOT / "doc").glob("*.[1-8]")):
        text = re.sub("\033\\[[0-9;]*m|.\b", "", run(folder, *command, str(path), check=0).stdout.decode())
        wide = [line for line in text.splitlines() if len(line) > 80]
        assert text and not wide, (path.name, wide)


main()
