# SPDX-License-Identifier: MIT
"""Reads folders of parts into DuckDB. Parts may be hostile: a manifest says which rows each file
has, and a file with others is refused."""
import contextlib, glob, json, os, re, signal, socket, tempfile, threading
from pperf_parts import PartsError

SCHEMA = "pperf.part/1"
MANIFEST_BYTES, ROW_BYTES_MIN = 64 << 20, 8
DEFLATE_RATIO = 1040  # no compressed byte makes more
TYPES = {"BIGINT", "VARCHAR", "BOOLEAN"}
NAME, TASK, DIGITS = re.compile(r"[a-z][a-z0-9_]{0,63}"), re.compile(r"[0-9a-f]{16}"), re.compile(r"[0-9a-f]{16}")
# The columns that are read, by table. A part may have more.
TABLES = {
    "processes": "trace:i rank:i run_id:i pid:i host:t file:t command:t status:t why:t ended:b complete:b simulated:b has_gpu:b ranges:b "
                 "waits_in_call:b bytes:i content:i started_unix_ns:i wall_ns:i cpu_self_ns:i gpu_count:i gpu_total_ns:i gpu_busy_ns:i "
                 "gpu_computation_ns:i gpu_communication_ns:i gpu_exposed_communication_ns:i gpu_copy_ns:i gpu_last_unix_ns:i "
                 "reserved_peak_bytes:i allocated_peak_bytes:i events:i lost_events:i truncated_streams:i dropped:i steps:i pairs:i untimed:i "
                 "world_size:i lacks_events:b requests:i more_pairs:b "
                 "torch:t cuda:t device:t",
    "communicators": "trace:i rank:i comm:i device:i stream:i key:i name:t named:b low:i high:i first_sequence:i count:i requested:i",
    "collectives": "trace:i rank:i comm:i seq:i kind:i start_ns:i end_ns:i requested_ns:i launched_ns:i exposed_ns:i site:i bytes:i bus_bytes:i",
    "sites": "trace:i rank:i site:i path:t",
    "ends": "trace:i rank:i thread:i begin_ns:i path:t source:t frames:t call:t",
    "requests": "trace:i rank:i key:i from_rank:i to_rank:i ranks:i own_rank:i count:i pairs:i operation:t making:b name:t",
    "places": "trace:i rank:i place:i key:i name:t kind:t depth:i path:t calls:i cpu_total_ns:i cpu_self_ns:i gpu_total_ns:i gpu_self_ns:i "
              "gpu_calls:i idle_ns:i min_ns:i max_ns:i bytes:i alloc_bytes:i free_bytes:i tensor_alloc_bytes:i tensor_free_bytes:i "
              "reserved_peak_bytes:i allocated_peak_bytes:i",
    "spreads": "trace:i rank:i key:i of:t bucket:i count:i",
    "steps": "trace:i rank:i step:i step_kind:t state:t outlier:t start_ns:i duration_ns:i step_gpu_ns:i cpu_self_ns:i gpu_total_ns:i "
             "busy_ns:i idle_ns:i gaps:i gap_max_ns:i kernels:i gpu_calls:i allocated_peak_bytes:i allocated_end_bytes:i "
             "reserved_peak_bytes:i reserved_end_bytes:i",
    "findings": "trace:i rank:i name:t kind:t finding:t evidence:t path:t impact_ns:i impact_bytes:i gain_ns:i bound:t count:i confidence:t next:t",
}
KINDS = {"i": "BIGINT", "t": "VARCHAR", "b": "BOOLEAN"}


def engine():
    """DuckDB."""
    try:
        import duckdb
        return duckdb
    except ImportError:
        raise PartsError("parts are read by DuckDB, which is not installed: pip install 'pperf[query]'")


def columns_of(table):
    """(name, SQL type) of the columns that are read."""
    return [(word.split(":")[0], KINDS[word.split(":")[1]]) for word in TABLES[table].split()]


# ---- texts ----

def text_of(value):
    """The text of a CSV cell: `\\xNN` is a byte, `\\\\` a backslash. A byte that is not UTF-8 becomes
    the private-use character U+EFNN, as in the JSON of pperf-report."""
    if not value:
        return ""
    if "\\" not in value:
        return value
    raw = re.sub(rb"\\(?:x([0-9a-f]{2})|(\\))", lambda m: bytes([int(m[1], 16)]) if m[1] else b"\\", value.encode())
    return decoded(raw)


def decoded(raw):
    return "".join(chr(0xef00 + ord(c) - 0xdc00) if 0xdc80 <= ord(c) <= 0xdcff else c for c in raw.decode("utf-8", "surrogateescape"))


def path_of(value):
    """The names of a path, which are joined by `/`; in a name `\\/` is a slash."""
    text = text_of(value)
    if not text:
        return []
    names, name, at = [], bytearray(), 0
    while at < len(text):
        if text[at] == "\\" and at + 1 < len(text):
            byte = re.match(r"x([0-9a-f]{2})", text[at + 1:at + 4])
            name += bytes([int(byte[1], 16)]) if byte else text[at + 1].encode()
            at += 4 if byte else 2
        elif text[at] == "/":
            names.append(decoded(bytes(name)))
            name = bytearray()
            at += 1
        else:
            name += text[at].encode()
            at += 1
    return names + [decoded(bytes(name))]


# ---- manifests ----

def whole_number(value, most=1 << 62):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def check_table(path, name, table):
    if not (isinstance(table, dict) and whole_number(table.get("rows")) and whole_number(table.get("bytes")) and isinstance(table.get("columns"), list)):
        raise PartsError("%s: table %s has no numbers of rows and bytes, or no columns" % (path, name))
    for column in table["columns"]:
        if not (isinstance(column, list) and len(column) == 2 and all(isinstance(c, str) for c in column) and NAME.fullmatch(column[0]) and column[1] in TYPES):
            raise PartsError("%s: table %s has a column that is not a name and a type" % (path, name))
    if table["rows"] > table["bytes"] * DEFLATE_RATIO // ROW_BYTES_MIN:
        raise PartsError("%s: table %s cannot have %d rows in %d bytes" % (path, name, table["rows"], table["bytes"]))
    has = {tuple(column) for column in table["columns"]}
    if len({column[0] for column in table["columns"]}) != len(table["columns"]):
        raise PartsError("%s: table %s has a column twice" % (path, name))
    for column in columns_of(name):
        if column not in has:
            raise PartsError("%s: table %s has no column %s of type %s: the parts are of an older pperf, write them again" % (path, name, *column))


def check_trace(path, trace):
    if not (isinstance(trace, dict) and all(isinstance(trace.get(k), str) and DIGITS.fullmatch(trace[k]) for k in ("trace", "input", "version"))):
        raise PartsError("%s: a trace has no id" % path)
    for key in "file", "real":
        if not isinstance(trace.get(key), (str, type(None))):
            raise PartsError("%s: a trace has a name of a file that is no text" % path)


def read_manifest(path):
    try:
        if os.path.getsize(path) > MANIFEST_BYTES:
            raise PartsError("%s: is too large for a manifest" % path)
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise PartsError("%s: is not a manifest of a part: %s" % (path, str(error).split("\n")[0][:200]))
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise PartsError("%s: has the schema %s, and this pperf reads %s" % (path, json.dumps(schema)[:80], SCHEMA))
    task = os.path.basename(path)[:-len(".json")]
    if manifest.get("task") != task or not TASK.fullmatch(task):
        raise PartsError("%s: is the manifest of another task" % path)
    if not (whole_number(manifest.get("written_unix_ns"), 1 << 63) and isinstance(manifest.get("traces"), list) and isinstance(manifest.get("tables"), dict)):
        raise PartsError("%s: has no traces or tables" % path)
    for trace in manifest["traces"]:
        check_trace(path, trace)
    for name in TABLES:
        check_table(path, name, manifest["tables"].get(name))
    manifest["folder"] = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    return manifest


def manifests_of(folders):
    found = []
    for folder in {os.path.realpath(folder): folder for folder in reversed(folders)}.values():
        paths = sorted(glob.glob(os.path.join(glob.escape(str(folder)), "manifest", "*.json")))
        if not paths:
            raise PartsError("%s: has no manifest of a part; write parts by: pperf-report part TRACES -o PARTS" % (folder or "the empty name of a folder"))
        found += [read_manifest(path) for path in paths]
    return found


def signed(hexadecimal):
    value = int(hexadecimal, 16)
    return value - (1 << 64) if value >> 63 else value


def chosen_tasks(manifests):
    """(manifest, its traces that are used, or None for all). Of a trace that several tasks wrote,
    the one that was written last is used."""
    newest = {}
    for manifest in manifests:
        order = (manifest["written_unix_ns"], manifest["task"], manifest["folder"])
        for trace in manifest["traces"]:
            newest[trace["input"]] = max(newest.get(trace["input"], order), order)
    for manifest in manifests:
        order = (manifest["written_unix_ns"], manifest["task"], manifest["folder"])
        used = [signed(t["trace"]) for t in manifest["traces"] if newest[t["input"]] == order]
        if used:
            yield manifest, None if len(used) == len(manifest["traces"]) else used


# ---- tables ----

def quoted(text):
    return "'" + str(text).replace("'", "''") + "'"


def written_again(manifest):
    """What to do about a table that is damaged or missing."""
    return "remove %s/manifest/%s.json, and the part of its traces is written again by: pperf-report part" % (manifest["folder"], manifest["task"])


def file_of(manifest, table):
    """The file of a table: Parquet if it was converted, else CSV, of which the manifest knows the size."""
    base = os.path.join(manifest["folder"], table, manifest["task"])
    if os.path.isfile(base + ".parquet"):
        return base + ".parquet"
    path = base + ".csv.gz"
    try:
        size = os.path.getsize(path)
    except OSError as error:
        raise PartsError("%s: cannot be read: %s; %s" % (path, error.strerror, written_again(manifest)))
    if size != manifest["tables"][table]["bytes"]:
        raise PartsError("%s: has %d bytes, and its manifest says %d; %s" % (path, size, manifest["tables"][table]["bytes"], written_again(manifest)))
    return path


def reader_of(path, manifest, table):
    """SQL that reads a file, one row more than its manifest says."""
    rows = manifest["tables"][table]["rows"]
    if path.endswith(".parquet"):
        return "select * from read_parquet(%s) limit %d" % (quoted(path), rows + 1)
    columns = ", ".join("%s: %s" % (quoted(name), quoted(kind)) for name, kind in manifest["tables"][table]["columns"])
    return ("select * from read_csv(%s, columns = {%s}, header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
            "compression = 'gzip', new_line = '\\n', max_line_size = 16777216) limit %d" % (quoted(path), columns, rows + 1))


@contextlib.contextmanager
def reading(path, table):
    """Says which file the engine cannot read."""
    try:
        yield
    except engine().Error as error:
        raise PartsError("%s: cannot be read as table %s of %s: %s" % (path, table, SCHEMA, " ".join(str(error).split("\n")[:2])[:300]))


def check_rows(path, table, manifest, count):
    rows = manifest["tables"][table]["rows"]
    if count != rows:
        raise PartsError("%s: has %s rows than the %d of its manifest" % (path, "fewer" if count < rows else "more", rows))


class Parts:
    """A connection to DuckDB with the tables of the parts."""

    def __init__(self, folders, tables=TABLES, memory="2GB", threads=None, tasks=None, holds=False):
        """`tasks`: what chosen_tasks gave for the folders, if that was done. `holds`: the collectives are
        read into arrays (self.held), which take a third of what a table takes."""
        self.manifests = manifests_of([folders] if isinstance(folders, (str, os.PathLike)) else folders) if tasks is None else []
        self.temporary = tempfile.TemporaryDirectory(prefix="pperf-parts-")
        config = {"memory_limit": memory, "temp_directory": self.temporary.name, "max_temp_directory_size": "100GB",
                  "autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
        if threads:
            config["threads"] = str(threads)
        self.db = engine().connect(config=config)
        self.tasks = list(chosen_tasks(self.manifests)) if tasks is None else tasks
        for table in tables:
            self.load(table)
        self.held = self.hold() if holds else None
        self.db.execute("set enable_external_access = false")
        self.db.execute("set lock_configuration = true")

    def close(self):
        self.db.close()
        self.temporary.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def load(self, table):
        names = ", ".join('"%s"' % name for name, _ in columns_of(table))
        self.db.execute("create table %s (%s)" % (table, ", ".join('"%s" %s' % column for column in columns_of(table))))
        for manifest, traces in self.tasks:
            path, only = file_of(manifest, table), "" if traces is None else " where trace in (%s)" % ", ".join(map(str, traces))
            if not manifest["tables"][table]["rows"]:
                continue
            with reading(path, table):
                source = reader_of(path, manifest, table)
                if only:
                    self.db.execute("create or replace temp table incoming as " + source)
                    count = self.db.execute("select count(*) from incoming").fetchone()[0]
                    self.db.execute("insert into %s select %s from incoming%s" % (table, names, only))
                else:
                    count = self.db.execute("insert into %s select %s from (%s)" % (table, names, source)).fetchone()[0]
                check_rows(path, table, manifest, count)
        self.db.execute("drop table if exists incoming")

    def hold(self):
        """The collectives as arrays, read file by file."""
        from pperf_parts.collectives import Held
        return Held(self.held_pieces())

    def held_pieces(self):
        import numpy
        from pperf_parts.collectives import SELECTED
        for manifest, traces in self.tasks:
            path = file_of(manifest, "collectives")
            with reading(path, "collectives"):
                arrays = self.db.execute("select %s from (%s)" % (SELECTED, reader_of(path, manifest, "collectives"))).fetchnumpy()
                arrays = {name: numpy.ma.getdata(array) for name, array in arrays.items()}
                check_rows(path, "collectives", manifest, len(arrays["trace"]))
            if traces is not None:
                used = numpy.isin(arrays["trace"], traces)
                arrays = {name: array[used] for name, array in arrays.items()}
            yield arrays

    def files(self):
        """{trace: (its name when its part was written, its path without links, or None)}"""
        return {signed(trace["trace"]): (trace.get("file"), trace.get("real")) for manifest, _ in self.tasks for trace in manifest["traces"]}

    def rows(self, sql, *parameters):
        """Rows of a query as dictionaries."""
        names, rows = self.table(sql, *parameters)
        return [dict(zip(names, row)) for row in rows]

    def table(self, sql, *parameters):
        """The names of the columns of a query, each once, and its rows as tuples."""
        result, names = self.execute(sql, parameters), []
        for name, *_ in result.description:
            names.append(next(one for one in [name] + ["%s_%d" % (name, i) for i in range(1, len(names) + 2)] if one not in names))
        with interruptible(self.db):
            return names, result.fetchall()

    def arrays(self, sql, *parameters):
        """Columns of a query as numpy arrays."""
        return self.execute(sql, parameters).fetchnumpy()

    def execute(self, sql, parameters):
        try:
            with interruptible(self.db):
                result = self.db.execute(sql, list(parameters))
        except engine().Error as error:
            raise PartsError("the query fails: %s" % " ".join(str(error).split())[:500])
        if result is None or result.description is None:
            raise PartsError("the query is empty")
        return result


@contextlib.contextmanager
def interruptible(db):
    """Lets Ctrl-C end a statement. DuckDB runs in the main thread, where Python would handle the signal only afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    before, interrupted = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False), []

    def watch():
        while number := reader.recv(1):
            if number[0] == signal.SIGINT:
                interrupted.append(True)
                db.interrupt()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    except Exception:
        if interrupted:
            raise KeyboardInterrupt
        raise
    finally:
        signal.set_wakeup_fd(before)
        writer.close()
        watcher.join()
        reader.close()


def literal(value):
    if value is None:
        return "null"
    return quoted(value.replace("\0", "\ufffd")) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)


def fill(db, table, rows, chunk=1000):
    """Inserts rows of numbers and texts, many by one statement. (For each value of a parameter, DuckDB
    searches for modules that are not installed.)"""
    for first in range(0, len(rows), chunk):
        db.execute("insert into %s values %s" % (table, ", ".join("(%s)" % ", ".join(map(literal, row)) for row in rows[first:first + chunk])))


def write_parquet(manifest, table, threads=1):
    """Converts a table to Parquet beside its CSV, sorted for reading by range."""
    base = os.path.join(manifest["folder"], table, manifest["task"])
    db = engine().connect(config={"memory_limit": "1GB", "threads": str(threads)})
    temporary = "%s.parquet.%d.tmp" % (base, os.getpid())
    try:
        db.execute("copy (%s) to %s (format parquet, compression zstd)" % (reader_of(file_of(manifest, table), manifest, table), quoted(temporary)))
        os.replace(temporary, base + ".parquet")
    finally:
        db.close()
        if os.path.exists(temporary):
            os.unlink(temporary)
