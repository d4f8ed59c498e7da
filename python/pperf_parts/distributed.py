# SPDX-License-Identifier: MIT
"""Writes parts in several processes, or on the workers of a Dask cluster that the user started."""
import atexit, contextlib, glob, json, os, re, signal, subprocess, sys, time
from pperf_parts import PartsError

LAUNCHERS = "SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE JOB_COMPLETION_INDEX".split()
# So that any number of workers makes the same tasks, SHARES is not made of it.
RETRIES, SHARES = 2, 64
# Limits in seconds: for the scheduler's file, for its answer, for its first worker, and for closing the connection.
FILE_S, SCHEDULER_S, WORKERS_S, CLOSE_S = 15, 30, 300, 5


# ---- Dask ----

def address_of(scheduler):
    """The address of a scheduler: what is given, or what is in the scheduler file that is given."""
    if os.path.exists(scheduler):
        try:
            with open(scheduler) as file:
                address = str(json.load(file)["address"])
        except (OSError, ValueError, KeyError, TypeError):
            raise PartsError("%s is no scheduler file; start a scheduler: dask scheduler --scheduler-file FILE" % scheduler)
        return address
    if re.fullmatch(r"\w+://.+|[^/]+:\d+", scheduler):
        return scheduler
    raise PartsError("there is no scheduler file %s, and that is no address such as tcp://HOST:PORT; start one: dask scheduler --scheduler-file FILE" % scheduler)


def wait_for_file(scheduler):
    """Waits for the file of a scheduler that was just started, unless an address is given."""
    deadline = time.monotonic() + FILE_S
    if os.path.exists(scheduler) or ":" in scheduler:
        return
    sys.stderr.write("pperf: waiting up to %d s for the scheduler file %s\n" % (FILE_S, scheduler))
    sys.stderr.flush()
    while not os.path.exists(scheduler) and time.monotonic() < deadline:
        time.sleep(0.2)


async def try_scheduler(address):
    """Connects once, and closes that again. A client that is not asynchronous would wait for an answer without a limit, and
    after some errors keep the process from exiting."""
    import asyncio
    from dask.distributed import Client
    client = Client(address, asynchronous=True, set_as_default=False)
    try:
        await asyncio.wait_for(client, SCHEDULER_S)
    finally:
        await client.close()


def close(client):
    """Closes a client at the exit of the process. A second Ctrl-C would leave it open, and Dask would wait for a minute."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        client.close(timeout=CLOSE_S)


def connect(scheduler):
    """A client, which is closed when the process exits."""
    try:
        from dask.distributed import Client
    except ImportError:
        raise PartsError("--dask needs Dask, which is not installed: pip install 'pperf[dask]'")
    import asyncio
    wait_for_file(scheduler)
    address = address_of(scheduler)
    try:
        asyncio.run(try_scheduler(address))
        client = Client(address, set_as_default=False)
    except Exception as error: # of Dask, or of what answers there, of any kind
        why = str(error).split("\n")[0][:200] or "%s does not answer in %d s" % (address, SCHEDULER_S)
        advice = "; if the scheduler has ended, start one" if isinstance(error, (OSError, asyncio.TimeoutError)) else ""
        raise PartsError("no Dask scheduler can be reached by %s: %s%s" % (scheduler, why, advice))
    atexit.register(close, client)
    return client


def workers_of(client):
    """The number of workers, at least one. Workers that were just started are waited for."""
    import asyncio
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            sys.stderr.write("pperf: the Dask scheduler has no workers; waiting up to %d s for one; start some: dask worker ADDRESS\n" % WORKERS_S)
            sys.stderr.flush()
        client.wait_for_workers(1, timeout=WORKERS_S)
        return len(client.scheduler_info(n_workers=-1)["workers"])
    except asyncio.TimeoutError:
        raise PartsError("the Dask scheduler had no workers in %d s; start some: dask worker ADDRESS" % WORKERS_S)
    except OSError as error:
        raise PartsError("the Dask scheduler answers no more: %s" % str(error).split("\n")[0][:200])


def batch(function, items):
    return [function(*each) for each in items]


def gathered(client, futures):
    """The results of futures."""
    try:
        return client.gather(futures)
    except PartsError:
        raise
    except Exception as error: # of a worker, of any kind
        raise PartsError("a Dask worker failed: %s: %s" % (type(error).__name__, " ".join(str(error).split())[:300]))


# ---- the map ----

def share_command(traces, parts, tasks, options):
    from pperf_parts.blame import report_program
    return [report_program(), "part", *traces, "-o", parts, "--share", "--tasks", str(tasks),
            *(["--redact"] if options.redact else []), *(["--no-findings"] if options.no_findings else [])]


def share_environment(index):
    environment = {key: value for key, value in os.environ.items() if key not in LAUNCHERS}
    return {**environment, "JOB_COMPLETION_INDEX": str(index)}


def write_share(command, index):
    """Writes one share of the traces, in a worker. Returns (traces written, traces found), or raises
    what pperf-report says."""
    result = subprocess.run(command, env=share_environment(index), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if not result.stdout.strip(): # else it wrote the share, which may have nothing but traces that cannot be read
        raise PartsError(result.stderr.strip().split("\n")[-1][:300] or end_of(result.returncode))
    return counts_of(result.stdout)


def end_of(status):
    return "pperf-report ended with %d" % status if status > 0 else "pperf-report was killed by signal %d" % -status


def counts_of(text):
    """(written, found) of `3 traces: 2 written, 1 were there`."""
    words = text.split()
    return int(words[2]), int(words[0])


def convert(path, table):
    """Converts a table of a task to Parquet, in a worker, unless that was done."""
    from pperf_parts import parts
    manifest = parts.read_manifest(path)
    if not os.path.exists(os.path.join(manifest["folder"], table, manifest["task"] + ".parquet")):
        parts.write_parquet(manifest, table)


def conversions(folder):
    from pperf_parts.parts import TABLES
    return [(path, table) for path in sorted(glob.glob(os.path.join(glob.escape(folder), "manifest", "*.json"))) for table in TABLES]


def remove_remains(folder):
    """Removes what killed workers left behind of tasks that are complete."""
    for path in glob.glob(os.path.join(glob.escape(folder), "*", "*.tmp")):
        task = os.path.basename(path).split(".")[0]
        if os.path.exists(os.path.join(folder, "manifest", task + ".json")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def report_counts(counts, out):
    written, found = sum(count[0] for count in counts), sum(count[1] for count in counts)
    out.write("%d traces: %d written, %d were there\n" % (found, written, found - written))
    return 0


@contextlib.contextmanager
def stopped_by_signals(processes):
    """Ends the processes of a list when SIGINT or SIGTERM arrives, also if only this process gets it. The caller waits for
    them, and then this process exits with 128 + the number of the signal. Gives a list of the signals so far."""
    received = []

    def stop(number, frame):
        received.append(number)
        stop_all(processes)
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if received:
        raise SystemExit(128 + received[0])


def stop_all(processes):
    for process in processes:
        process.terminate()


def start_share(command, index):
    return subprocess.Popen(command, env=share_environment(index), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_shares(command, count):
    """Runs a process for each share. Returns (exit status, stdout, stderr) of each."""
    processes = []
    with stopped_by_signals(processes) as received:
        try:
            while len(processes) < count and not received:
                processes.append(start_share(command, len(processes)))
        except OSError as error:
            stop_all(processes)
            raise PartsError("%s cannot be started: %s" % (command[0], error.strerror))
        finally:
            if received: # while a process was started, which the signal did not end then
                stop_all(processes)
            outputs = [process.communicate() for process in processes]
    return [(process.returncode, *output) for process, output in zip(processes, outputs)]


def check_shares(shares):
    """Passes on what the processes say, each text once, and fails if one of them did not finish, or if all failed. One that
    says how many traces it has written did finish: its status 2 says that none of them can be read."""
    for text in dict.fromkeys(error for _, _, error in shares):
        sys.stderr.write(text)
    unfinished = [status for status, text, _ in shares if status and not text]
    finished = [(status, counts_of(text)[1]) for status, text, _ in shares if text]
    if unfinished:
        is_part_written = any(found for _, found in finished)
        raise PartsError(end_of(unfinished[0]) + ("; the other processes' parts are written, and a second run does the rest" if is_part_written else ""))
    if any(status for status, _ in finished) and not any(found and not status for status, found in finished):
        raise PartsError(end_of(max(status for status, _ in finished)))


def part_in_processes(options, out):
    if options.jobs < 1:
        raise PartsError("--jobs needs a number from 1 on, not %d" % options.jobs)
    shares = run_shares(share_command(options.traces, options.output, options.jobs, options), options.jobs)
    check_shares(shares)
    if options.parquet:
        batch(convert, conversions(options.output))
    return report_counts([counts_of(text) for _, text, _ in shares], out)


def part_on_dask(options, out):
    client = connect(options.dask)
    workers_of(client)
    tasks = options.tasks or SHARES
    folder = os.path.abspath(options.output)
    command = share_command([os.path.abspath(trace) for trace in options.traces], folder, tasks, options)
    futures = [client.submit(write_share, command, index, retries=RETRIES, pure=False) for index in range(tasks)]
    counts = gathered(client, futures)
    remove_remains(folder)
    if options.parquet:
        gathered(client, [client.submit(convert, *each, retries=RETRIES, pure=False) for each in conversions(folder)])
    return report_counts(counts, out)
