# SPDX-License-Identifier: MIT
"""Writes parts in several processes, or on the workers of a Dask cluster that the user started."""
import contextlib, glob, os, subprocess, sys
from pperf_parts import PartsError

LAUNCHERS = "SLURM_PROCID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE JOB_COMPLETION_INDEX".split()
# So that any number of workers makes the same tasks, SHARES is not made of it.
RETRIES, SHARES = 2, 64


def connect(scheduler):
    try:
        from dask.distributed import Client
    except ImportError:
        raise PartsError("--dask needs Dask, which is not installed: pip install 'pperf[dask]'")
    try:
        if os.path.isfile(scheduler):
            return Client(scheduler_file=scheduler, set_as_default=False)
        return Client(scheduler, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise PartsError("no Dask scheduler can be reached by %s: %s" % (scheduler, str(error).split("\n")[0][:200]))


def workers_of(client):
    """The number of workers, at least one. Workers that were just started are waited for."""
    try:
        client.wait_for_workers(1, timeout=60)
    except TimeoutError:
        raise PartsError("the Dask scheduler has no workers; start some: dask worker ADDRESS")
    return len(client.scheduler_info(n_workers=-1)["workers"])


def batch(function, items):
    return [function(*each) for each in items]


def gathered(client, futures):
    """The results of futures."""
    try:
        return client.gather(futures)
    except PartsError:
        raise
    except Exception as error: # of a worker, of any kind
        raise PartsError("a Dask worker failed: %s: %s" % (type(error).__name__, str(error).split("\n")[0][:300]))


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
    if result.returncode:
        raise PartsError(result.stderr.strip().split("\n")[-1][:300] or "pperf-report ended with %d" % result.returncode)
    return counts_of(result.stdout)


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


def part_in_processes(options, out):
    if options.jobs < 1:
        raise PartsError("--jobs needs a number from 1 on, not %d" % options.jobs)
    command = share_command(options.traces, options.output, options.jobs, options)
    running = [subprocess.Popen(command, env=share_environment(i), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(options.jobs)]
    outputs = [process.communicate() for process in running]
    for process, (_, error) in zip(running, outputs):
        sys.stderr.write(error)
        if process.returncode:
            raise PartsError("pperf-report ended with %d; the other processes' parts are written, and a second run does the rest" % process.returncode)
    if options.parquet:
        batch(convert, conversions(options.output))
    return report_counts([counts_of(text) for text, _ in outputs], out)


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
    client.close()
    return report_counts(counts, out)
