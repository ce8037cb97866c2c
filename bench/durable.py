#!/usr/bin/env python3
"""Measures the durable engine with the workloads of systems/hello-cities, and HelloCities5 beside other engines.

`ours` runs each workload in a process of its own, one after the other, round after round. The hub keeps its state in
files on the disk under TMPDIR and waits for fdatasync; histories and index are kept, 1 % of orchestrations are traced
and their spans sent to a receiver in this script. Time and events are those of the published comparison of Netherite
with its legacy backend: from the earliest creation to the latest completion, 10 events for an orchestration of
HelloCities5.

`peers` runs 1,000 orchestrations of HelloCities5 (`--n` says another number) on each engine in turn, in the same rounds:
ours over files, over its classic store, and on three nodes over a cluster of three NATS servers and over PostgreSQL;
duroxide with its SQLite provider, DBOS over PostgreSQL, Restate. Ours and duroxide are embedded; DBOS is a library over a
server, Restate a server that calls a service over HTTP from 100 connections. Peers' time is the client's, from before the
first start to after the last end.

    cargo build --release
    bench/durable.py ours
    bench/durable.py peers

Peers need cargo, python3 with venv, PostgreSQL, NATS, and npm with Node 20; each installs pinned packages by its language's own
client. One whose tools are missing is left out and named. Figures are medians with a 95 % interval by bootstrap.
"""

import argparse
import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from customer_360 import Process, responds, tool
from load import NARROWS, free_port, median_interval

SOURCES = Path(__file__).resolve().parent / "durable"
DBOS = "dbos==3.4.0"
RESTATE_CONNECTIONS = 100
NODES = 3
NATS_SERVERS = 3
# As many as the published comparison has.
PARTITIONS = 12

# Name, arguments of `narrows system hello-cities once`, and the figure that the aim is about.
WORKLOADS = [
    ("1,000 started directly", ["--n", "1000", "--launch", "direct"]),
    ("1,000 by entities", ["--n", "1000", "--launch", "entities"]),
    ("10,000 started directly", ["--n", "10000", "--launch", "direct"]),
    ("10,000 by entities", ["--n", "10000", "--launch", "entities"]),
    ("100,000 started directly", ["--n", "100000", "--launch", "direct"]),
    ("100,000 by entities", ["--n", "100000", "--launch", "entities"]),
    ("one at a time, 300 times", ["--n", "300", "--launch", "one-by-one"]),
    ("200 x 1,000 activities", ["fan-out-fan-in"]),
    ("100,000 signals to one entity", ["counter"]),
    ("1,000 of 10 timers of 100 ms", ["periodic"]),
]
MILLION_WAITING = ["waiting", "--n", "1000000"]


class Receiver:
    """Takes what OpenTelemetry sends, and counts its bytes."""

    def __init__(self, cleanup):
        counted = self.bytes = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers.get("Content-Length", 0))
                self.rfile.read(length)
                counted[self.path] = counted.get(self.path, 0) + length
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        cleanup.callback(server.shutdown)
        self.address = f"http://127.0.0.1:{server.server_port}"


def once(arguments, receiver, *more):
    """Runs a workload once. Returns its figures."""
    command = [NARROWS, "system", "hello-cities", "once", *arguments, "--json", *more]
    environment = os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address}
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(said)


def fdatasync_ms(rounds=200):
    """Median time of writing 4 KiB over themselves and waiting for the disk."""
    with tempfile.NamedTemporaryFile() as file:
        os.write(file.fileno(), bytes(4096))
        os.fsync(file.fileno())
        times = []
        for _ in range(rounds):
            begun = time.perf_counter()
            os.pwrite(file.fileno(), os.urandom(4096), 0)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1e3


def ours(rounds):
    with contextlib.ExitStack() as cleanup:
        receiver = Receiver(cleanup)
        rows = {name: [] for name, _ in WORKLOADS}
        waiting, disk = [], []
        for at in range(rounds):
            disk.append(fdatasync_ms())
            for name, arguments in WORKLOADS:
                rows[name].append(once(arguments, receiver))
            waiting.append(once(MILLION_WAITING, receiver))
            print(f"\rround {at + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        print(f"fdatasync of 4 KiB: {statistics.median(disk):.2f} ms; spans received: {receiver.bytes.get('/v1/traces', 0):,} bytes")
    print(f"{'workload':<31}{'events/s':>32}{'time s':>9}{'log B/event':>13}{'CPU us/event':>14}{'commits':>9}{'p50 ms':>8}")
    for name, figures in rows.items():
        report(name, figures)
    report("1,000,000 waiting, then 1 event", waiting)
    peak = [figures["memory_bytes_peak"] / 1e9 for figures in waiting]
    print(f"peak memory of 1,000,000 waiting: {statistics.median(peak):.2f} GB (most {max(peak):.2f})")


def report(name, rows):
    middle, low, high = median_interval([row["events_per_second"] for row in rows])
    of = lambda key: statistics.median(row[key] for row in rows)
    latency = f"{of('latency_ms_p50'):.2f}" if rows[0]["latency_ms_p50"] is not None else ""
    print(
        f"{name:<31}{middle:>12,.0f} ({low:,.0f} to {high:,.0f}){'':<2}{of('seconds'):>9.3f}{of('log_bytes_per_event'):>11.1f}"
        f"{of('cpu_us_per_event'):>14.2f}{of('commits'):>11,.0f}{latency:>8}"
    )


# Each peer is a function of a cleanup stack, a folder and a receiver, which prepares it and returns one that runs n
# orchestrations and returns the seconds it took.


def narrows_on(store):
    def prepare(_cleanup, _scratch, receiver):
        return lambda n: once(["--n", str(n), "--launch", "direct"], receiver, "--store", store)["seconds"]

    return prepare


def nodes_over(server):
    """Ours as three processes that share a hub on a server."""

    def prepare(cleanup, scratch, receiver):
        url, ports = server(cleanup, scratch), [free_port() for _ in range(NODES)]
        hub = [NARROWS, "system", "hello-cities", "hub", "--store", url, "--partitions", str(PARTITIONS)]
        exported = ["env", f"OTEL_EXPORTER_OTLP_ENDPOINT={receiver.address}"]
        for number, port in enumerate(ports):
            node = Process([*exported, *hub, "--node", str(number), "--port", str(port)], scratch / f"{server.__name__}-node-{number}.log")
            cleanup.callback(node.end)
            node.wait_until(lambda port=port: responds(f"http://127.0.0.1:{port}/health"), "the node")
        workload = f"http://127.0.0.1:{ports[0]}/workloads/hello-cities"
        return lambda n: json.loads(post(f"{workload}?n={n}&launch=direct", None))["seconds"]

    return prepare


def nats(cleanup, scratch):
    """A cluster of NATS servers that each keep every stream."""
    ports, routes = [[free_port() for _ in range(NATS_SERVERS)] for _ in range(2)]
    others = ",".join(f"nats://127.0.0.1:{route}" for route in routes)
    for number, (port, route) in enumerate(zip(ports, routes)):
        server = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-n", f"n{number}", "-js", "-sd", scratch / f"nats-{number}"]
        cluster = ["--cluster_name", "bench", "--cluster", f"nats://127.0.0.1:{route}", "--routes", others]
        running = Process([*server, *cluster], scratch / f"nats-{number}.log")
        cleanup.callback(running.end)
        running.wait_until(lambda port=port: listens(port), "NATS")
    return ",".join(f"nats://127.0.0.1:{port}" for port in ports) + "/bench?replicas=3"


def database(cleanup, scratch):
    return f"postgres://postgres@127.0.0.1:{postgres(cleanup, scratch, 'hub')}/postgres?hub=bench"


def duroxide(_cleanup, scratch, _receiver):
    folder = SOURCES / "duroxide"
    run = ["cargo", "build", "--release", "--locked", "--quiet", "--manifest-path", folder / "Cargo.toml", "--target-dir", folder / "target"]
    subprocess.run(run, check=True)
    program, files = folder / "target" / "release" / "hello-cities-duroxide", fresh(scratch, "duroxide")
    return lambda n: seconds([program, str(n), next(files)])


def dbos(cleanup, scratch, _receiver):
    python = scratch / "dbos" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", scratch / "dbos"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", DBOS], check=True)
    port = postgres(cleanup, scratch, "dbos")
    names = fresh(Path(), "dbos")

    def run(n):
        return seconds([python, SOURCES / "hello_cities_dbos.py", str(n), f"postgresql://postgres@127.0.0.1:{port}/{next(names)}"])

    return run


def restate(cleanup, scratch, _receiver):
    folder = scratch / "restate"
    shutil.copytree(SOURCES / "restate", folder, ignore=shutil.ignore_patterns("node_modules"))
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    ports = {name: free_port() for name in ("service", "node", "admin", "ingress")}
    # Unless told otherwise the SDK writes a line for each call.
    service = Process(["env", "RESTATE_LOGGING=ERROR", "node", folder / "service.js", str(ports["service"])], scratch / "restate-service.log")
    cleanup.callback(service.end)
    settings = {"DISABLE_TELEMETRY": "true", "BIND_IP": "127.0.0.1", "BIND_ADDRESS": f"127.0.0.1:{ports['node']}"}
    settings |= {"DEFAULT_NUM_PARTITIONS": "1", "LOG_FILTER": "error"}
    for part in ("admin", "ingress"):
        settings[f"{part.upper()}__BIND_ADDRESS"] = f"127.0.0.1:{ports[part]}"
    variables = [f"RESTATE_{name}={value}" for name, value in settings.items()]
    program = folder / "node_modules" / ".bin" / "restate-server"
    server = Process(["env", *variables, program, "--base-dir", folder / "data", "--node-name", "one"], scratch / "restate.log")
    cleanup.callback(server.end)
    server.wait_until(lambda: responds(f"http://127.0.0.1:{ports['admin']}/health"), "Restate")
    deployment = json.dumps({"uri": f"http://127.0.0.1:{ports['service']}"}).encode()
    post(f"http://127.0.0.1:{ports['admin']}/deployments", deployment)
    address = f"http://127.0.0.1:{ports['ingress']}/tour/run"
    if len(json.loads(post(address, None))) != 5:
        sys.exit("error: Restate did not say hello to five cities")

    def run(n):
        load = [NARROWS, "load", "--json", "-m", "POST", "-c", str(RESTATE_CONNECTIONS), "-n", str(n), address]
        said = json.loads(subprocess.run(load, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
        if said["statuses"].get("200") != n:
            sys.exit(f"error: Restate returned {said['statuses']}, expected {n} times 200")
        return n / said["responses_per_second"]

    return run


def postgres(cleanup, scratch, name):
    """A private PostgreSQL as it is shipped, fsync included. Returns its port."""
    folder, port = scratch / f"postgres-{name}", free_port()
    # PostgreSQL refuses to run as root: in a user namespace it runs as somebody else without an account for it.
    someone = ["unshare", "-Ur", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    init = [*someone, tool("initdb"), "-D", folder, "-U", "postgres", "-A", "trust"]
    subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
    options = ["-c", f"port={port}", "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}"]
    server = Process([*someone, tool("postgres"), "-D", folder, *options], scratch / f"postgres-{name}.log")
    cleanup.callback(server.end, signal.SIGINT)
    ready = [tool("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    server.wait_until(lambda: subprocess.run(ready).returncode == 0, "PostgreSQL")
    return port


def listens(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def fresh(folder, name):
    """Names that nobody has had."""
    at = 0
    while True:
        at += 1
        yield str(folder / f"{name}-{at}")


def seconds(command):
    """Runs a program whose last line is the seconds it took."""
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = ended.stdout.split()
    if ended.returncode or not lines or not re.fullmatch(r"[0-9.]+", lines[-1]):
        sys.exit(f"error: {command[0]} ended with status {ended.returncode}:\n{(ended.stdout + ended.stderr)[-2000:]}")
    return float(lines[-1])


def post(url, body):
    request = urllib.request.Request(url, data=body, method="POST", headers={"Content-Type": "application/json"} if body else {})
    with urllib.request.urlopen(request, timeout=900) as response:
        return response.read()


PEERS = {
    "narrows, files": ([], narrows_on("files")),
    "narrows, classic": ([], narrows_on("classic")),
    "narrows, 3 nodes, NATS": (["nats-server"], nodes_over(nats)),
    "narrows, 3 nodes, PostgreSQL": ([], nodes_over(database)),
    "duroxide, SQLite": (["cargo"], duroxide),
    "DBOS, PostgreSQL": (["python3"], dbos),
    "Restate, 1 partition": (["node", "npm"], restate),
}


def peers(rounds, n, names):
    with contextlib.ExitStack() as cleanup:
        scratch = Path(tempfile.mkdtemp(prefix="narrows-bench-"))
        cleanup.callback(shutil.rmtree, scratch, ignore_errors=True)
        receiver, runs = Receiver(cleanup), {}
        for name in names:
            needs, prepare = PEERS[name]
            missing = [program for program in needs if not shutil.which(program)]
            if missing:
                print(f"note: {', '.join(missing)} not on PATH: {name} is left out")
                continue
            print(f"preparing {name}", file=sys.stderr)
            runs[name] = prepare(cleanup, scratch, receiver)
        times, failed = {name: [] for name in runs}, {name: 0 for name in runs}
        for at in range(rounds):
            for name, run in runs.items():
                try:
                    times[name].append(run(n))
                except SystemExit as why:
                    failed[name] += 1
                    print(f"\n{name}: {why}", file=sys.stderr)
            print(f"\rround {at + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    print(f"{'engine':<30}{'time s':>9}{'events/s':>32}{'orchestrations/s':>18}")
    for name, taken in times.items():
        if failed[name]:
            print(f"note: {name} did not end well in {failed[name]} of {rounds} rounds, which are left out")
        if not taken:
            continue
        middle, low, high = median_interval([10 * n / each for each in taken])
        print(f"{name:<30}{statistics.median(taken):>9.3f}{f'{middle:,.0f} ({low:,.0f} to {high:,.0f})':>32}{middle / 10:>18,.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["ours", "peers"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--n", type=int, default=1_000, help="orchestrations on each of the peers")
    parser.add_argument("--engines", nargs="+", choices=PEERS, default=list(PEERS), help="only these of the peers")
    arguments = parser.parse_args()
    if not NARROWS.exists():
        sys.exit(f"error: {NARROWS} is missing; run `cargo build --release` first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: terminated"))
    try:
        if arguments.case == "ours":
            ours(arguments.rounds)
        else:
            peers(arguments.rounds, arguments.n, arguments.engines)
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
