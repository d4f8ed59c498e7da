#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers and runtimes of others: those that fork under load, change users, handle signals of their own, reload, and start many processes."""
from profiler_beside import *

# A server that does not come up is told of, and ends the script.
WAIT = """up() { tries=0; until eval "$1"; do sleep 0.05; tries=$((tries + 1)); [ $tries -lt 1200 ] || { echo "not up: $1"; cat $2; exit 9; }; done; }
"""

REDIS = WAIT + """redis-server --port 0 --unixsocket "$PWD/s" --save '' --dir "$PWD" --logfile log > out 2>&1 & server=$!
cli() { redis-cli -s s "$@"; }
up 'cli ping 2> /dev/null | grep -q PONG' log
redis-benchmark -s s -q -n 20000 -r 5000 -t set,incr,lpush,hset > /dev/null & load=$!
for i in 1 2 3 4 5; do
	cli bgsave
	while cli info persistence | grep -q rdb_bgsave_in_progress:1; do sleep 0.02; done
	cli info persistence | grep rdb_last_bgsave_status
done
wait $load; echo "load $?"
cli set key value; cli shutdown save; wait $server; echo "server $?"
redis-check-rdb dump.rdb | grep -c 'RDB looks OK'; grep -c -i 'crash\\|bug report' log; rm -f log dump.rdb out"""

POSTGRES = WAIT + """initdb -D data -A trust -N > init.log 2>&1 || cat init.log
postgres -D data -k "$PWD" -c listen_addresses= -c fsync=off > log 2>&1 & server=$!
up 'psql -h "$PWD" -d postgres -Atc "select 1" > /dev/null 2>&1' log
createdb -h "$PWD" bench; pgbench -h "$PWD" -i -q bench > /dev/null 2>&1; echo "init $?"
pgbench -h "$PWD" -n -c 4 -j 2 -t 250 bench 2>&1 | grep 'actually processed'
psql -h "$PWD" -d bench -Atc 'select count(*), (select sum(abalance) from pgbench_accounts) = sum(delta) from pgbench_history'
psql -h "$PWD" -d bench -Atc 'set max_parallel_workers_per_gather = 4; set parallel_setup_cost = 0; select count(*) from pgbench_accounts where aid % 7 = 0'
kill -HUP $server; kill -INT $server; wait $server; echo "server $?"; grep -c 'PANIC\\|terminated by signal' log; rm -rf data log init.log"""

NGINX = WAIT + """mkdir -p www; seq 1 5000 > www/page
cat > conf << END
daemon off; worker_processes 3; pid $PWD/pid; error_log $PWD/errors; $USERLINE
events { worker_connections 64; }
http { access_log off; client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
	server { listen unix:$PWD/s; root $PWD/www; } }
END
nginx -p "$PWD" -c conf -e "$PWD/errors" & server=$!
get() { python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.connect('s'); s.sendall(b'GET /page HTTP/1.0\\r\\n\\r\\n')
while True:
    part = s.recv(65536)
    if not part: break
    import sys; sys.stdout.buffer.write(part.split(b'\\r\\n\\r\\n')[-1])"; }
up '[ -S s ] && [ -s pid ]' errors
for i in 1 2 3 4 5; do nginx -p "$PWD" -c conf -e "$PWD/errors" -s reload; get | sha256sum; get | sha256sum; done
kill -QUIT $server; wait $server; echo "server $?"; grep -c 'emerg\\|signal 11\\|exited on signal' errors; rm -rf www conf errors pid s t?"""

NODE = """const cluster = require('cluster'), workers = require('worker_threads');
if (!workers.isMainThread) { let sum = 0; for (let i = 0; i < 1e6; i++) sum += i * workers.workerData; workers.parentPort.postMessage(sum); }
else if (cluster.isWorker || (cluster.isMaster === false)) { process.send(process.argv.length * 7, () => process.exit(3)); }
else {
  const said = []; let open = 8;
  const done = () => { if (--open === 0) { console.log(said.sort((a, b) => a - b).join(' ')); process.exitCode = 6; } };
  for (let i = 1; i <= 4; i++) { const w = new workers.Worker(__filename, { workerData: i }); w.on('message', m => said.push(m)); w.on('exit', done); }
  for (let i = 0; i < 4; i++) { const w = cluster.fork(); w.on('message', m => said.push(m)); w.on('exit', code => { said.push(code); done(); }); }
  console.log(require('child_process').execSync('echo child').toString().trim());
}"""

JAVA = """import java.util.stream.*;
public class Host {
    static int depth(int n) { return depth(n + 1) + 1; }
    public static void main(String[] arguments) throws Exception {
        int nulls = 0, overflows = 0;
        for (int i = 0; i < 20000; i++) { String s = i % 2 == 0 ? null : "x"; try { nulls += s.length() * 0; } catch (NullPointerException e) { nulls++; } }
        for (int i = 0; i < 20; i++) try { depth(0); } catch (StackOverflowError e) { overflows++; }
        long sum = LongStream.range(0, 2000000).parallel().map(x -> x * x % 7).sum();
        Thread[] threads = new Thread[50]; int[] ran = new int[50];
        for (int i = 0; i < 50; i++) { int n = i; threads[i] = new Thread(() -> ran[n] = n); threads[i].start(); }
        for (Thread t : threads) t.join();
        for (int i = 0; i < 50; i++) { byte[][] garbage = new byte[100][]; for (int j = 0; j < 100; j++) garbage[j] = new byte[100000]; }
        Process child = new ProcessBuilder("sh", "-c", "exit 9").start();
        sun.misc.Signal.handle(new sun.misc.Signal("USR2"), s -> { System.out.println("handled " + s.getName()); });
        sun.misc.Signal.raise(new sun.misc.Signal("USR2"));
        Thread.sleep(200);
        System.out.println(nulls + " " + overflows + " " + sum + " " + IntStream.of(ran).sum() + " " + child.waitFor());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        System.exit(4);
    }
}"""


@case
def redis_saves_in_the_background_while_it_serves(folder):
    needs("redis-server", "redis-benchmark", "redis-check-rdb")
    assert b"load 0" in same(folder, "bash", "-c", REDIS)["stdout"]


def as_a_user(folder):
    """How postgres can be started: it refuses root. The library must be where that user can read it."""
    if os.geteuid() != 0:
        return [], preload()
    needs("setpriv")
    shutil.copy(LIBRARY, folder / "library.so")
    open_to_others(folder)
    for name in ("plain", "under"):
        (folder / name / "here").mkdir(parents=True)
        os.chown(folder / name / "here", 65534, 65534)
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"], str(folder / "library.so")


@case
def postgres_serves_pgbench(folder):
    paths = os.pathsep.join([*map(str, sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), os.environ["PATH"]])
    for command in ("initdb", "postgres", "pgbench"):
        if not shutil.which(command, path=paths):
            raise Skip("there is no " + command)
    change, library = as_a_user(folder)
    found = same(folder, *change, "bash", "-c", POSTGRES, env={"PATH": paths}, library=library)
    assert b"1000/1000" in found["stdout"] and b"1000|t" in found["stdout"], found


@case
def nginx_reloads_and_serves(folder):
    needs("nginx")
    line = "user root;" if os.geteuid() == 0 else ""
    found = same(folder, "bash", "-c", NGINX, env={"USERLINE": line})
    assert b"server 0" in found["stdout"], found


@case
def node_has_threads_and_processes(folder):
    needs("node")
    for name in ("plain", "under"):
        (folder / name / "here").mkdir(parents=True)
        (folder / name / "here" / "host.js").write_text(NODE)
    assert same(folder, "node", "host.js")["status"] == 6


@case
def java_handles_its_own_signals(folder):
    needs("java")
    for name in ("plain", "under"):
        (folder / name / "here").mkdir(parents=True)
        (folder / name / "here" / "Host.java").write_text(JAVA)
    listed = subprocess.run(["java", "--list-modules"], capture_output=True).stdout
    if b"jdk.compiler" not in listed:
        raise Skip("this Java has no compiler")
    for collector in ("-XX:+UseSerialGC", "-XX:+UseG1GC"):
        found = same(folder, "java", collector, "-Xmx256m", "Host.java", leave=("stderr",))
        assert found["status"] == 4 and b"hook" in found["stdout"], found


@case
def chromium_shows_a_page(folder):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not browser:
        raise Skip("there is no chromium")
    page = "data:text/html,<p id=x>before</p><script>document.getElementById('x').textContent = [3, 1, 2].sort().join('-')</script>"
    found = same(folder, "sh", "-c", '"$0" --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/u" --virtual-time-budget=2000 --dump-dom "$1"; s=$?; rm -rf u; exit $s',
                 browser, page, leave=("stderr",), env={"HOME": str(folder)})
    assert b"1-2-3" in found["stdout"], found


@case
def ffmpeg_encodes_the_same(folder):
    needs("ffmpeg")
    command = "ffmpeg -nostdin -v error -f lavfi -i testsrc=d=2:s=320x240 -f lavfi -i sine=d=2 -c:v mpeg4 -c:a aac -threads 4 -bitexact out.mkv && " \
              "ffmpeg -nostdin -v error -threads 4 -i out.mkv -f framemd5 - | sha256sum; rm -f out.mkv"
    assert same(folder, "bash", "-o", "pipefail", "-c", command)["status"] == 0


main()
