#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every command in README.md is run, in order, in a folder like the checkout. What a test machine has not got (docker, srun, mpirun,
torchrun, jupyter, train.py) is stood in for by scripts that take the same options and run the command; make's long targets are only
looked up."""
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
    """A folder with what the commands name, and stand-ins for what is not part of the project."""
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


@case
def the_pages_name_every_option_and_setting(folder):
    page = lambda name: (ROOT / "doc" / name).read_text().replace("\\-", "-")
    for name, text in (("pperf-report.1", report("--help").stdout.decode()), ("pperf.1", (ROOT / "scripts" / "pperf").read_text().split("END")[1])):
        missing = [option for option in set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)) if option not in page(name)]
        assert not missing, "%s does not name %s" % (name, sorted(missing))
    settings = re.findall(r"^\tX\((PPERF_\w+),", (ROOT / "preload" / "settings.h").read_text(), re.M)
    missing = [s for s in settings if s not in page("libpperf.7")]
    assert settings and not missing, missing


@case
def the_table_of_other_recorders_is_that_of_the_last_measurement(folder):
    sys.path.insert(0, str(ROOT / "tests/bench/peers"))
    import results
    shown = README.split(results.BEGIN)[1].split(results.END)[0].strip()
    measured = ROOT / "bench/RESULTS.md"
    assert shown == (measured.read_text().split(results.BEGIN)[1].split(results.END)[0].strip() if measured.exists() else "")


main()
