#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The program is unaffected: same output, exit status and environment. Also: what each setting of
the library does."""
import os, pathlib, pty, re, socket, stat
from harness import *
from raw_trace import whole


def same(folder, name, *arguments, stdin=None, env=None):
    """Runs a program without and with the library (and a sanitizer's runtime in both), fails if
    they differ, and returns both results."""
    before = set(os.listdir(folder))
    plain = run(folder, name, *arguments, stdin=stdin, env={"LD_PRELOAD": " ".join(PRELOADS) or None, **(env or {})})
    for path in set(os.listdir(folder)) - before:
        os.rename(folder / path, folder / (path + ".plain"))
    under = traced(folder, name, *arguments, stdin=stdin, env=env, check=None)
    assert under.returncode == plain.returncode, (under.returncode, plain.returncode, under.stderr[-300:])
    assert under.stdout == plain.stdout, (under.stdout[-600:], plain.stdout[-600:])
    assert under.stderr == plain.stderr, (under.stderr[-600:], plain.stderr[-600:])
    return plain, under


def unlike(folder):
    """The variables in which the environments of the two runs of describes_itself differ."""
    read = lambda name: dict(line.split("=", 1) for line in (folder / name).read_text().splitlines() if "=" in line)
    plain, under = read("environment.plain"), read("environment")
    return {k for k in plain.keys() | under.keys() if plain.get(k) != under.get(k)}


@case
def a_program_sees_nothing_but_three_variables(folder):
    same(folder, "describes_itself", "environment", stdin=b"one\ntwo\n")
    assert unlike(folder) == {"LD_PRELOAD", *OURS}, unlike(folder)
    assert traces(folder)


@case
def with_PPERF_DISABLE_nothing_at_all_happens(folder):
    same(folder, "describes_itself", "environment", stdin=b"", env={"PPERF_DISABLE": "1"})
    assert unlike(folder) == {"LD_PRELOAD"}, unlike(folder)
    assert not traces(folder), traces(folder)


@case
def variables_that_are_set_stay_as_they_are(folder):
    same(folder, "describes_itself", "environment", stdin=b"", env={"NVTX_INJECTION64_PATH": "/nowhere/tool.so", "CUDA_INJECTION64_PATH": "/nowhere/tool.so"})
    assert "CUDA_INJECTION64_PATH" not in unlike(folder), unlike(folder)


@case
def a_path_that_cannot_be_written_changes_nothing(folder):
    for path in ("/nonexistent/folder/trace.bin", "/proc/trace.bin", "/dev/null/trace.bin", str(folder / "taken"), ""):
        (folder / "taken").mkdir(exist_ok=True)
        same(folder, "describes_itself", "environment", stdin=b"x\n", env={"PPERF_OUTPUT": path})
        for path in [*traces(folder), *folder.glob("taken.*")]:
            path.unlink()


@case
def beside_a_device_or_a_folder_nothing_is_made(folder):
    for path in ("/dev/full", "/dev/null", str(folder)):
        traced(folder, "ranges", 1, 10, env={"PPERF_OUTPUT": path})
    beside = [p for where in (folder, folder.parent, pathlib.Path("/dev")) for p in where.iterdir() if re.match(r"(%s|full|null)\." % folder.name, p.name)]
    assert not beside and not list(folder.iterdir()), beside


@case
def a_folder_that_was_removed_takes_no_trace_and_neither_does_any_other(folder):
    gone = folder / "gone"
    gone.mkdir()
    traced(gone, "sh", "-c", "rmdir ../gone && exec env -u PPERF_RUN %s 1 10" % (PROGRAMS / "ranges"))
    assert not traces(folder) and not traces("/"), (traces(folder), traces("/"))


@case
def programs_that_record_nothing_leave_no_file(folder):
    (folder / "empty.c").write_text("int main(void) { return 0; }\n")
    same(folder, "sh", "-c", "echo hello; ls / > /dev/null; cat; false", stdin=b"input\n")
    same(folder, "cc", "-o", "empty", "empty.c", env={"ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"})
    same(folder, "sh", "-c", "exec 3>&1; kill -TERM $$")
    if not SANITIZED:
        same(folder, "python3", "-c", "import os, threading; print(len(os.listdir('/proc/self/fd')), threading.active_count()); os.fork()")
    assert not traces(folder), traces(folder)


@case
def a_script_and_its_program_leave_one_trace_of_the_program(folder):
    traced(folder, "sh", "-c", "ls > /dev/null; %s 1 10; true" % (PROGRAMS / "ranges"))
    assert [t.name for t in traces(folder)] == ["trace.bin"], traces(folder)
    assert len(names(folder / "trace.bin")) == 10


@case
def a_trace_is_private_and_is_not_a_link(folder):
    (folder / "elsewhere").write_text("mine")
    os.symlink("elsewhere", folder / "trace.bin")
    traced(folder, "ranges", 1, 10)
    assert (folder / "elsewhere").read_text() == "mine"
    made = [t for t in traces(folder) if t.is_file() and not t.is_symlink()]
    assert len(made) == 1 and stat.S_IMODE(made[0].stat().st_mode) == 0o600, made


@case
def a_relative_preload_and_output_survive_a_change_of_folder(folder):
    if SANITIZED:
        raise Skip("the sanitizer's runtime stands in LD_PRELOAD too")
    (folder / "away").mkdir()
    os.symlink(LIBRARY, folder / "link.so")
    traced(folder, "chdirs", "away", env={"LD_PRELOAD": "./link.so"})
    assert names(folder / "trace.bin") == ["elsewhere"]
    traced(folder, "chdirs", "away", env={"LD_PRELOAD": "./link.so", "PPERF_OUTPUT": "other.bin"})
    assert names(folder / "other.bin") == ["elsewhere"] and not traces(folder / "away")


@case
def an_older_trace_is_kept_as_old_once(folder):
    for count in (10, 20, 30):
        traced(folder, "ranges", 1, count)
    assert [t.name for t in traces(folder)] == ["trace.bin", "trace.bin.old"], traces(folder)
    assert [len(names(t)) for t in traces(folder)] == [30, 20]


@case
def what_is_not_a_trace_is_left_where_it_is(folder):
    (folder / "trace.bin").write_text("my thesis")
    traced(folder, "ranges", 1, 10)
    assert (folder / "trace.bin").read_text() == "my thesis"
    made = [t for t in traces(folder) if t.name != "trace.bin"]
    assert len(made) == 1 and re.fullmatch(r"trace\.\d+\.bin", made[0].name) and len(names(made[0])) == 10, made


@case
def the_output_name_is_a_template(folder):
    env = {"PPERF_OUTPUT": "t.%h.%r.%q{USERS_OWN}.%n.bin", "USERS_OWN": "a_b", "RANK": "3"}
    traced(folder, "ranges", 1, 5, env=env)
    made = [t.name for t in traces(folder)]
    assert len(made) == 1 and re.fullmatch(r"t\.%s\.3\.a_b\.\d+\.bin" % re.escape(socket.gethostname()), made[0]), made
    (folder / made[0]).unlink()
    traced(folder, "forks", "fork", 2, env={"PPERF_OUTPUT": "p%p.bin"})
    assert len(traces(folder)) == 3 and all(re.fullmatch(r"p\d+\.bin", t.name) for t in traces(folder)), traces(folder)


@case
def the_rank_comes_from_any_launcher_and_is_0_without(folder):
    """So does the number of ranks. That of another launcher is not used: srun may have started torchrun on each node."""
    sizes = {"WORLD_SIZE": "8", "OMPI_COMM_WORLD_SIZE": "9", "PMI_SIZE": "10", "SLURM_STEP_NUM_TASKS": "11"}
    for variables, rank, size in (({}, "0", None), ({"RANK": "3"}, "3", "8"), ({"OMPI_COMM_WORLD_RANK": "4"}, "4", "9"), ({"PMI_RANK": "5"}, "5", "10"),
                                  ({"SLURM_PROCID": "6"}, "6", "11"), ({"SLURM_PROCID": "0", "RANK": "7"}, "7", "8")):
        traced(folder, "ranges", 1, 5, env={"PPERF_OUTPUT": "r%r.bin", **sizes, **variables})
        assert whole(folder / ("r%s.bin" % rank)).meta.get("distributed.world_size") == size, (rank, traces(folder))


@case
def the_file_stops_at_PPERF_MAX_and_what_is_lost_is_counted(folder):
    traced(folder, "ranges", 2, 1000000, env={"PPERF_MAX": "1M"})
    assert (folder / "trace.bin").stat().st_size <= 1 << 20
    integrity = info(folder / "trace.bin")["integrity"]
    found = len(dump(folder / "trace.bin", {"push", "pop"}))
    assert 0 < found < 4000000 and found + integrity["lost_events"] == 4000000, (found, integrity)
    assert not integrity["complete"]


@case
def however_little_room_there_is_every_event_is_recorded_or_counted(folder):
    for most in ("1", "8K", "32K", "36K", "40K", "44K", "64K", "200K"):
        for threads, count, names in ((2, 1000, 1), (1, 20000, 20000)):
            traced(folder, "ranges", threads, count, names, env={"PPERF_MAX": most})
            found = len(dump(folder / "trace.bin", {"push", "pop"}))
            lost = info(folder / "trace.bin")["integrity"]["lost_events"]
            assert found + lost == 2 * threads * count, (most, threads, found, lost)
            (folder / "trace.bin").unlink()


@case
def the_settings_are_in_the_trace(folder):
    traced(folder, "ranges", 1, 5, env={"PPERF_MAX": "64M", "PPERF_QUIET": "1"})
    text = report("info", folder / "trace.bin").stdout.decode()
    assert "PPERF_MAX" in text and "64M" in text and "PPERF_QUIET" in text, text


def on_a_terminal(folder, env):
    """The text that a program under the library writes to stderr if that is a terminal."""
    try:
        main_end, far_end = pty.openpty()
    except OSError as error:
        raise Skip("no terminal can be made: %s" % error)
    subprocess.run([str(PROGRAMS / "ranges"), "1", "10"], cwd=folder, stderr=far_end, stdout=subprocess.DEVNULL,
                   env=environment(LD_PRELOAD=preload(), **env), check=True)
    os.close(far_end)
    try:
        return os.read(main_end, 65536).decode()
    except OSError:
        return ""
    finally:
        os.close(main_end)


@case
def a_terminal_is_told_the_file_in_one_line_unless_PPERF_QUIET(folder):
    said = on_a_terminal(folder, {})
    assert "trace.bin" in said and said.count("\n") == 1, said
    assert on_a_terminal(folder, {"PPERF_QUIET": "1"}) == ""
    refused = on_a_terminal(folder, {"PPERF_OUTPUT": "/nonexistent/trace.bin"})
    assert "no trace: /nonexistent/trace.bin: No such file or directory" in refused and refused.count("\n") == 1, refused


@case
def the_table_of_descriptors_is_large_before_a_thread_needs_it_and_nothing_stays_open(folder):
    script = "grep FDSize /proc/self/status; ls /proc/self/fd"
    size, *opened = run(folder, "sh", "-c", script, env={"LD_PRELOAD": preload()}).stdout.split()[1:]
    assert int(size) > 1000 and not [fd for fd in opened if int(fd) > 100], (size, opened)
    limited = run(folder, "sh", "-c", "ulimit -n 8; exec cat /proc/self/status", env={"LD_PRELOAD": preload()}, check=0).stdout
    assert b"FDSize" in limited


@case
def a_privileged_program_is_left_alone(folder):
    if os.geteuid() != 0 or SANITIZED:
        raise Skip("only root can make a program privileged")
    privileged = folder / "privileged"
    shutil.copy(PROGRAMS / "ranges", privileged)
    os.chown(privileged, 0, 0)
    os.chmod(privileged, 0o4755)
    folder.chmod(0o777)
    result = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", str(privileged), "1", "10"], cwd=folder,
                            env=environment(LD_PRELOAD=preload()), capture_output=True)
    if b"setpriv" in result.stderr:
        raise Skip("setpriv cannot be used here")
    assert result.returncode == 0 and not traces(folder), (result, traces(folder))


main()
