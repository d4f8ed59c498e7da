#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The packages: the tarball, the wheel and the Debian package run, need no more than they declare,
and uninstall. Completion and file(1) match the programs."""
import glob, os, pty, re, select, tarfile
from harness import *

OLDEST = (2, 17)


def make(*targets):
    if SANITIZED:
        raise Skip("as in the plain build")
    return run(ROOT, "make", "--no-print-directory", "-s", "BUILD=%s" % BUILD, *targets, check=0, timeout=600)


def needs(*arguments):
    if any(not shutil.which(name) for name in arguments):
        raise Skip("%s is not installed" % " and ".join(arguments))


def packaged(pattern):
    found = glob.glob(str(BUILD / "dist" / pattern))
    assert len(found) == 1, found
    return pathlib.Path(found[0])


def unpacked(folder):
    """The folder of the unpacked tarball."""
    make("dist")
    with tarfile.open(packaged("*.tar.gz")) as tar:
        tar.extractall(folder)
    (tree,) = folder.glob("pperf-*")
    return tree


def records_a_program(folder, launcher, arguments=()):
    """The launcher finds its library and its report, and the program's ranges are in the trace."""
    (folder / "work").mkdir(exist_ok=True)
    result = run(folder / "work", str(launcher), "run", "-o", "known.bin", *arguments, "--", program("ranges"), 1, 10, check=0)
    assert b"known.bin" in result.stderr, result.stderr
    rows = json.loads(run(folder / "work", str(launcher), "report", "tree", "known.bin", "-f", "json", check=0).stdout)["rows"]
    assert sum(row["calls"]["count"] if isinstance(row["calls"], dict) else row["calls"] for row in rows) == 10, rows


@case
def both_say_the_same_version(folder):
    said = {name: re.search(r'#define PPERF_VERSION "(.*)"', (ROOT / name).read_text())[1] for name in ("report/cli/help.h", "preload/library.c")}
    assert len(set(said.values())) == 1, said


@case
def the_tarball_runs_on_every_glibc_since_2_17(folder):
    tree = unpacked(folder)
    for name in ("bin/pperf-report", "lib/libpperf.so"):
        text = run(folder, "readelf", "-VdW", str(tree / name), check=0).stdout.decode()
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d[\d.]*)", text)}
        assert versions and max(versions) <= OLDEST, (name, max(versions))
        libraries = set(re.findall(r"NEEDED.*\[(.*?)\]", text))
        assert libraries <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-aarch64.so.1"}, libraries
    records_a_program(folder, tree / "bin" / "pperf")


@case
def the_tarball_of_the_same_files_is_the_same(folder):
    make("dist")
    first = packaged("*.tar.gz").read_bytes()
    make("dist")
    assert packaged("*.tar.gz").read_bytes() == first


@case
def the_library_builds_for_aarch64(folder):
    needs("aarch64-linux-gnu-gcc")
    (folder / "library.c").write_text("#include <stdio.h>\n#include <sys/stat.h>\n#include <linux/types.h>\n")
    if run(folder, "aarch64-linux-gnu-gcc", "-shared", "-o", "library.so", "library.c").returncode:
        raise Skip("the cross compiler has no C library: scripts/setup.sh arm64")
    result = make("arm64-library")
    assert not result.stdout + result.stderr, (result.stdout + result.stderr)[-1000:]


@case
def the_wheel_installs_runs_and_uninstalls(folder):
    if run(folder, sys.executable, "-c", "import venv, ensurepip").returncode:
        raise Skip("python3-venv is not installed")
    make("wheel", "PYTHON=%s" % sys.executable)
    run(folder, sys.executable, "-m", "venv", str(folder / "there"), check=0)
    before = {p for p in (folder / "there").rglob("*") if p.is_file() and p.suffix != ".pyc"}
    pip = [str(folder / "there" / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    run(folder, *pip, "install", "--no-index", str(packaged("*.whl")), check=0)
    records_a_program(folder, folder / "there" / "bin" / "pperf")
    python = folder / "there" / "bin" / "python"
    own = "import pperf, sys; assert pperf.__file__.startswith(sys.prefix), pperf; pperf.load(sys.argv[1]).tree(); print(pperf.enabled())"
    assert run(folder, python, "-c", own, folder / "work" / "known.bin", check=0).stdout == b"False\n"
    result = run(folder, folder / "there" / "bin" / "pperf", "run", "-o", "own.bin", "-q", "--", python, "-c", own, folder / "work" / "known.bin", check=0)
    assert result.stdout == b"True\n", result
    (folder / "header.c").write_text('#include "pperf.h"\nint main(void) { return pperf_enabled(); }\n')
    run(folder, os.environ.get("CC", "cc"), "-I", folder / "there" / "include", "header.c", "-o", "header", "-ldl", check=0)
    run(folder, folder / "header", check=0)
    run(folder, *pip, "uninstall", "-y", "pperf", check=0)
    assert {p for p in (folder / "there").rglob("*") if p.is_file() and p.suffix != ".pyc"} == before


@case
def the_debian_package_is_clean_and_runs(folder):
    needs("dpkg-deb", "dpkg-shlibdeps")
    make("deb")
    package = packaged("*.deb")
    run(folder, "dpkg-deb", "-x", str(package), str(folder / "root"), check=0)
    records_a_program(folder, folder / "root" / "usr" / "bin" / "pperf")
    assert (folder / "root" / "usr" / "lib" / "python3" / "dist-packages" / "pperf.py").exists() and (folder / "root" / "usr" / "include" / "pperf.h").exists()
    control = run(folder, "dpkg-deb", "-f", str(package), check=0).stdout.decode()
    assert re.search(r"^Depends: .*libc6.*libelf1.*zlib1g", control, re.M), control
    if shutil.which("lintian"):
        (folder / "tmp").mkdir()  # it leaves files there
        result = run(folder, "lintian", "--fail-on", "error,warning", "--allow-root", str(package), env={"TMPDIR": str(folder / "tmp")})
        assert result.returncode == 0, result.stdout


def installed_report(folder):
    """Both programs under their names in a folder on PATH."""
    (folder / "bin").mkdir()
    for name, source in (("pperf", ROOT / "scripts" / "pperf"), ("pperf-report", REPORT)):
        (folder / "bin" / name).symlink_to(source)
    return {"PATH": "%s:%s" % (folder / "bin", os.environ["PATH"])}


def views():
    text = report("--help").stdout.decode()
    return re.findall(r"^  ([a-z][a-z-]*)  ", text[text.index("\nviews"):text.index("\noptions")], re.M)


COMPLETIONS = (("pperf-report --fo", {"--format", "--focus"}), ("pperf ru", {"run"}), ("pperf run --st", {"--stacks"}), ("pperf report dif", {"diff"}))


@case
def bash_completes_what_the_help_lists(folder):
    needs("bash")
    script = "source %s/packaging/completion.bash; " % ROOT + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pperf; printf "%s\\n" "${COMPREPLY[@]}"'

    def complete(line):
        return set(run(folder, "bash", "-c", script, "bash", *line.split(" "), env=env, check=0).stdout.decode().splitlines())

    env = installed_report(folder)
    for line, expected in COMPLETIONS:
        assert complete(line) == expected, (line, complete(line))
    assert complete("pperf-report ") >= set(views())
    assert complete("pperf-report tree --format j") == {"json"}
    (folder / "tree of mine.bin").touch()
    assert complete("pperf-report tree --focus x tree") == {"tree of mine.bin"} and "diff" not in complete("pperf-report tree dif")
    assert complete("pperf-report tree -f j") == complete("pperf-report tree --format = j") == {"json"}
    assert complete("pperf-report tree --format =") == {"csv", "html", "json", "svg", "text"}
    assert complete("pperf run --stacks ") == {"alloc", "launch", "off"} and complete("pperf run --children = a") == {"all"}
    assert complete("pperf run -o tree") == {"tree of mine.bin"} and complete("pperf run -o") == {"-o"}
    for before in ("run", "run --stacks off", "run -o x --", "doctor --", "doctor"):
        assert "bash" in complete("pperf %s bas" % before), before
    assert complete("pperf run bash tree") == {"tree of mine.bin"}


@case
def fish_completes_what_the_help_lists(folder):
    needs("fish")
    env = {**installed_report(folder), "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    (folder / "tree of mine.bin").touch()
    more = (("pperf-report ", set(views())), ("pperf run --stacks ", {"alloc", "launch", "off"}), ("pperf-report tree --format=j", {"--format=json"}),
            ("pperf-report tree -f c", {"csv"}), ("pperf run -o x --max 1G -- bas", {"bash"}), ("pperf doctor bas", {"bash"}), ("pperf-report tree tree", {"tree of mine.bin"}))
    for line, expected in COMPLETIONS + more:
        text = run(folder, "fish", "-c", "source %s/packaging/completion.fish; complete -C %r" % (ROOT, line), env=env, check=0).stdout.decode()
        assert {row.split("\t")[0] for row in text.splitlines()} >= expected, (line, text)


def type_into(command, env, line, until, seconds=60):
    """The text that a terminal shows after the line was typed, up to `until`."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(command[0], command, environment(**env))
    shown, end = b"", time.monotonic() + seconds
    os.write(fd, line)
    while until not in shown and time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                shown += os.read(fd, 4096).replace(b"\a", b"")
            except OSError:
                break
    os.close(fd)
    os.waitpid(pid, 0)
    return shown


@case
def zsh_completes_what_the_help_lists(folder):
    needs("zsh")
    (folder / "site").mkdir()
    shutil.copy(ROOT / "packaging" / "completion.zsh", folder / "site" / "_pperf")
    (folder / ".zshrc").write_text("fpath=(%s/site $fpath); autoload -Uz compinit; compinit -u -D; PS1='> '\n" % folder)
    env = {**installed_report(folder), "ZDOTDIR": str(folder), "HOME": str(folder), "TERM": "dumb"}
    for line, expected in ((b"pperf-report --strict --form\t", b"--format"), (b"pperf-report critica\t", b"critical"), (b"pperf run --sta\t", b"--stacks"),
                           (b"pperf run --stacks lau\t", b"launch"), (b"pperf-report --format=js\t", b"=json"), (b"pperf run -o x -- readel\t", b"readelf")):
        shown = type_into(["zsh", "-i"], env, line, expected)
        assert expected in shown, (line, shown)


@case
def file_knows_a_trace(folder):
    needs("file")
    traced(folder, "ranges", 1, 5)
    text = run(folder, "file", "-b", "-m", str(ROOT / "packaging" / "magic"), "trace.bin", check=0).stdout.decode()
    assert re.fullmatch(r"pperf trace, version \d+, process %d, ended\n" % info(folder / "trace.bin")["capture"]["pid"], text), text
    (folder / "other").write_bytes(b"pperf\n")
    assert b"trace" not in run(folder, "file", "-b", "-m", str(ROOT / "packaging" / "magic"), "other", check=0).stdout


main()
