#!/usr/bin/env python3
"""Measures the document store beside PostgreSQL `jsonb`, over their own protocols, on one machine, in one run; and beside
PouchDB Server, if `pouchdb-server` is on PATH.

All keep the same documents and flush nothing; the store has so much throughput that it refuses no request. Each server is
pinned to core 1 and this program to core 0. Point reads, upserts and queries within one partition key run against one server
after the other, round after round. What is compared is requests per second of the server's CPU, from the kernel's accounting
of its processes, so that neither this client's speed nor a busy neighbour counts for much. Latency is that of one connection
with one request at a time, this client's own time included. Point reads are also made by 16 connections at a time, which keep
the server's core busy: by eight of `narrows load` with two each and by `pgbench` with prepared statements. Figures are medians
over the rounds, with the least and the greatest in brackets.

PouchDB Server speaks HTTP and JSON as the store does and is written in JavaScript. Here it keeps its documents in memory and
logs no requests. An upsert is a PUT with the document's last revision, which this client remembers. Its index on the
partition key takes in changed documents at the next query, so its queries pay for the upserts before them. FerretDB 1.24 is
no peer: over SQLite and over PostgreSQL, it uses no index for its filters and looks through all documents for each request.

    cargo build --release
    bench/docstore.py                         # 20,000 documents, 5 rounds of 3 s each
    bench/docstore.py --rounds 9 --seconds 5
    npm install --prefix ~/pouchdb pouchdb-server@4.2.0 && PATH=$PATH:~/pouchdb/node_modules/.bin bench/docstore.py
"""

import argparse
import contextlib
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NARROWS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "narrows"
CLIENT_CORE, SERVER_CORE = 0, 1
OWNERS = 2_000
KINDS = ("read", "upsert", "query")
TICK = os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(port):
    for _ in range(400):
        try:
            stream = socket.create_connection(("127.0.0.1", port), 5)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return stream
        except OSError:
            time.sleep(0.05)
    sys.exit(f"error: nothing listens on port {port}")


def document(number):
    owner = number % OWNERS
    return {"id": f"d{number}", "owner": f"o{owner}", "n": number, "text": "x" * 500}


def cpu_seconds(root):
    """What a process and its descendants have used, with those that have ended and been waited for."""
    parents, ticks = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry)], ticks[int(entry)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_below(process):
        while process and process != root:
            process = parents.get(process, 0)
        return process == root

    return sum(used for process, used in ticks.items() if is_below(process)) / TICK


class Server:
    """A process with its children on its core, gone with the block."""

    def start(self, command, **options):
        pinned = ["taskset", "-c", str(SERVER_CORE), *map(str, command)]
        self.process = subprocess.Popen(pinned, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def cpu_seconds(self):
        return cpu_seconds(self.process.pid)

    def fill(self, documents):
        for number in range(documents):
            self.upsert(number)


class Http(Server):
    """A server of HTTP/1.1, with a connection that is kept."""

    def connect(self, port):
        self.port, self.stream, self.buffer = port, connect(port), b""

    def request(self, method, path, headers="", body=""):
        body = body.encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {len(body)}\r\n\r\n"
        self.stream.sendall(head.encode() + body)
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(rest) < length:
            self.more()
            rest = self.buffer.partition(b"\r\n\r\n")[2]
        self.buffer = rest[length:]
        if head[9:10] != b"2":
            sys.exit(f"error: {method} {path}: {head.decode()}\n{rest[:length].decode()}")
        return rest[:length]

    def more(self):
        read = self.stream.recv(1 << 16)
        if not read:
            sys.exit(f"error: {self.name} has closed the connection")
        self.buffer += read

    def read(self, number):
        """`place` gives a document's path and the header of a request for it."""
        return self.request("GET", *self.place(number))

    def reads_of_many(self, seconds):
        """Reads by 16 connections, each pair of one document, so that no partition of the store is throttled."""

        def command(number):
            path, header = self.place(number)
            headers = ["-H", header.strip()] if header else []
            return [NARROWS, "load", "-c", "2", "-z", f"{seconds}s", *headers, "--json", f"http://127.0.0.1:{self.port}{path}"]

        loads = [subprocess.Popen(command(number), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for number in range(8)]
        results = [json.loads(load.communicate()[0]) for load in loads]
        return sum(result["latency"]["count"] for result in results)


class Docstore(Http):
    """The store in memory."""

    name = "docstore"

    def __init__(self, *options):
        self.open(*options)
        self.items = "/dbs/dronedelivery/colls/utilization/docs"
        description = {"id": "bench", "partitionKey": {"paths": ["/owner"], "kind": "Hash", "version": 2}}
        headers = "x-ms-offer-throughput: 640000\r\n"
        self.request("POST", "/dbs/dronedelivery/colls", headers, json.dumps(description))
        self.items = "/dbs/dronedelivery/colls/bench/docs"

    def open(self, *options):
        port = free_port()
        plenty = ["--partitions", "64", "--throughput", "640000"]
        self.start([NARROWS, "engine", "docstore", "--no-auth", "--documents", "0", "--port", port, *plenty, *options])
        self.connect(port)

    def resident_kb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def key(self, owner):
        return f'x-ms-documentdb-partitionkey: ["o{owner}"]\r\n'

    def place(self, number):
        return f"{self.items}/d{number}", self.key(number % OWNERS)

    def upsert(self, number):
        headers = self.key(number % OWNERS) + "x-ms-documentdb-is-upsert: true\r\n"
        return self.request("POST", self.items, headers, json.dumps(document(number)))

    def query(self, owner):
        headers = self.key(owner) + "x-ms-documentdb-isquery: true\r\ncontent-type: application/query+json\r\n"
        least = {"name": "@least", "value": 0}
        body = {"query": "SELECT * FROM c WHERE c.n >= @least", "parameters": [least]}
        return self.request("POST", self.items, headers, json.dumps(body))

    def count(self, found):
        return json.loads(found)["_count"]


class PouchDb(Http):
    """PouchDB Server with its documents in memory."""

    name = "pouchdb"
    JSON = "content-type: application/json\r\n"

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="narrows-bench-")
        config, port = Path(self.folder) / "config.json", free_port()
        config.write_text(json.dumps({"log": {"level": "error", "file": f"{self.folder}/log.txt"}}))
        self.start(["pouchdb-server", "--in-memory", "--port", port, "--config", config], cwd=self.folder)
        self.port, self.last, self.revisions = port, -math.inf, {}
        self.request("PUT", "/bench")
        self.request("POST", "/bench/_index", self.JSON, json.dumps({"index": {"fields": ["owner"]}}))

    def __exit__(self, *rest):
        super().__exit__(*rest)
        shutil.rmtree(self.folder, ignore_errors=True)

    def request(self, *parts):
        # It closes a connection that was idle for 5 seconds.
        if time.monotonic() - self.last > 4:
            self.connect(self.port)
        result = super().request(*parts)
        self.last = time.monotonic()
        return result

    def place(self, number):
        return f"/bench/d{number}", ""

    def upsert(self, number):
        body = document(number)
        if number in self.revisions:
            body["_rev"] = self.revisions[number]
        saved = self.request("PUT", f"/bench/d{number}", self.JSON, json.dumps(body))
        self.revisions[number] = json.loads(saved)["rev"]

    def query(self, owner):
        selector = {"owner": f"o{owner}", "n": {"$gte": 0}}
        return self.request("POST", "/bench/_find", self.JSON, json.dumps({"selector": selector, "limit": 1_000}))

    def count(self, found):
        return len(json.loads(found)["docs"])


class Postgres(Server):
    """PostgreSQL with a table of `jsonb`; a connection of its own protocol with prepared statements."""

    name = "postgres"
    STATEMENTS = {
        "read": "SELECT doc FROM documents WHERE owner = $1 AND id = $2",
        "upsert": "INSERT INTO documents VALUES ($1, $2, $3) ON CONFLICT (owner, id) DO UPDATE SET doc = EXCLUDED.doc",
        "query": "SELECT doc FROM documents WHERE owner = $1 AND (doc->>'n')::bigint >= $2",
    }

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="narrows-bench-")
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not programs:
            sys.exit("error: PostgreSQL is not installed\nhint: apt-get install postgresql")
        user = {} if os.getuid() else {"user": "postgres"}
        if user:
            shutil.chown(self.folder, "postgres")
        data, port = Path(self.folder) / "data", free_port()
        make = [programs[-1] / "initdb", "-D", data, "-A", "trust", "-U", "bench"]
        subprocess.run(list(map(str, make)), check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **user)
        settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off"}
        settings |= {"synchronous_commit": "off", "autovacuum": "on", "shared_buffers": "256MB"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.start([programs[-1] / "postgres", "-D", data, *options], cwd=self.folder, **user)
        ready = [programs[-1] / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
        while subprocess.run(ready).returncode and self.process.poll() is None:
            time.sleep(0.05)
        self.stream = connect(port)
        self.buffer = b""
        hello = struct.pack("!i", 196608) + b"user\0bench\0database\0postgres\0\0"
        self.stream.sendall(struct.pack("!i", len(hello) + 4) + hello)
        self.answer()
        self.simple("CREATE TABLE documents (owner text, id text, doc jsonb, PRIMARY KEY (owner, id))")
        for name, statement in self.STATEMENTS.items():
            self.send(("P", f"{name}\0{statement}\0".encode() + struct.pack("!h", 0)), ("S", b""))
            self.answer()

    def __exit__(self, *rest):
        super().__exit__(*rest)
        shutil.rmtree(self.folder, ignore_errors=True)

    def send(self, *messages):
        packed = [kind.encode() + struct.pack("!i", len(body) + 4) + body for kind, body in messages]
        self.stream.sendall(b"".join(packed))

    def answer(self):
        """The rows up to the end of a cycle."""
        rows = []
        while True:
            kind, body = self.message()
            if kind == b"E":
                sys.exit(f"error: PostgreSQL says {body!r}")
            if kind == b"D":
                rows.append(body[6:])
            if kind == b"Z":
                return rows

    def message(self):
        while len(self.buffer) < 5 or len(self.buffer) < 1 + struct.unpack("!i", self.buffer[1:5])[0]:
            read = self.stream.recv(1 << 16)
            if not read:
                sys.exit("error: PostgreSQL has closed the connection")
            self.buffer += read
        end = 1 + struct.unpack("!i", self.buffer[1:5])[0]
        kind, body = self.buffer[:1], self.buffer[5:end]
        self.buffer = self.buffer[end:]
        return kind, body

    def simple(self, statement):
        self.send(("Q", statement.encode() + b"\0"))
        return self.answer()

    def run(self, name, *values):
        values = [str(value).encode() for value in values]
        packed = b"".join(struct.pack("!i", len(value)) + value for value in values)
        bind = b"\0" + name.encode() + b"\0" + struct.pack("!hh", 0, len(values)) + packed + struct.pack("!h", 0)
        self.send(("B", bind), ("E", b"\0" + struct.pack("!i", 0)), ("S", b""))
        return self.answer()

    def read(self, number):
        return self.run("read", f"o{number % OWNERS}", f"d{number}")

    def upsert(self, number):
        return self.run("upsert", f"o{number % OWNERS}", f"d{number}", json.dumps(document(number)))

    def reads_of_many(self, seconds):
        """The same by pgbench, which makes the text of a key in the statement."""
        script = Path(self.folder) / "read.sql"
        keys = "owner = 'o' || CAST(:n AS text) AND id = 'd' || CAST(:n AS text)"
        script.write_text(f"\\set n random(0, 7)\nSELECT doc FROM documents WHERE {keys};\n")
        port = self.stream.getpeername()[1]
        command = ["pgbench", "-n", "-M", "prepared", "-c", "16", "-f", script, "-T", seconds, "-h", "127.0.0.1", "-p", port]
        run = subprocess.run([*map(str, command), "-U", "bench", "postgres"], check=True, capture_output=True, text=True)
        return int(re.search(r"transactions actually processed: (\d+)", run.stdout)[1])

    def query(self, owner):
        return self.run("query", f"o{owner}", 0)

    def count(self, found):
        return len(found)


def check(server, documents):
    """All give the same: a document by its key, and all of one owner."""
    if "d7" not in str(server.read(7)):
        sys.exit(f"error: {server.name} has no document d7")
    count = server.count(server.query(7))
    expected = len(range(7, documents, OWNERS))
    if count != expected:
        sys.exit(f"error: {server.name} has {count} documents of owner o7, expected {expected}")


def measure(server, kind, documents, seconds, chance):
    """Requests per second of the server's CPU, and the latencies in milliseconds."""
    keys = OWNERS if kind == "query" else documents
    request, took = getattr(server, kind), []
    before, end = server.cpu_seconds(), time.perf_counter() + seconds
    begun = time.perf_counter()
    while begun < end:
        request(chance.randrange(keys))
        now = time.perf_counter()
        took.append((now - begun) * 1e3)
        begun = now
    used = server.cpu_seconds() - before
    took.sort()
    return len(took) / max(used, 1 / TICK), statistics.fmean(took), took[int(0.99 * len(took))]


def measure_many(server, seconds):
    """Point reads by 16 connections per second of the server's CPU."""
    before = server.cpu_seconds()
    reads = server.reads_of_many(max(1, round(seconds)))
    # Processes of connections end.
    time.sleep(0.5)
    return reads / (server.cpu_seconds() - before)


def reopen(documents):
    """Seconds from the start of the process to the first document of a folder, and bytes of memory per document."""
    with tempfile.TemporaryDirectory(prefix="narrows-bench-") as folder:
        with Docstore("--dir", folder, "--sync", "never") as store:
            empty_kb = store.resident_kb()
            store.fill(documents)
        store.process.wait(30)
        begun = time.perf_counter()
        store.open("--dir", folder)
        with store:
            store.read(documents - 1)
            return time.perf_counter() - begun, (store.resident_kb() - empty_kb) * 1024 / documents


def spread(values, digits):
    return f"{statistics.median(values):,.{digits}f} [{min(values):,.{digits}f}–{max(values):,.{digits}f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if not NARROWS.exists():
        sys.exit(f"error: {NARROWS} is missing\nhint: cargo build --release")
    os.sched_setaffinity(0, {CLIENT_CORE})
    chance = random.Random(chosen.seed)
    results, many = {}, {}
    with contextlib.ExitStack() as running:
        docstore, postgres = running.enter_context(Docstore()), running.enter_context(Postgres())
        servers = [docstore, postgres]
        if shutil.which("pouchdb-server"):
            servers.append(running.enter_context(PouchDb()))
        else:
            print("pouchdb-server is not installed and is left out", file=sys.stderr)
        others = [server.name for server in servers[1:]]
        for server in servers:
            server.fill(chosen.documents)
            check(server, chosen.documents)
        postgres.simple("ANALYZE documents")
        for _ in range(chosen.rounds):
            for kind in KINDS:
                for server in servers:
                    result = measure(server, kind, chosen.documents, chosen.seconds, chance)
                    results.setdefault((kind, server.name), []).append(result)
                servers.reverse()
            for server in servers:
                many.setdefault(server.name, []).append(measure_many(server, chosen.seconds))
    print(f"{chosen.documents:,} documents of 600 bytes, {OWNERS:,} partition keys, {chosen.rounds} rounds of {chosen.seconds:g} s\n")
    print("| request | server | per second of the server's CPU | mean, ms | p99, ms |\n|---|---|---:|---:|---:|")
    for kind in KINDS:
        for name in ("docstore", *others):
            rates, means, p99s = zip(*results[kind, name])
            print(f"| {kind} | {name} | {spread(rates, 0)} | {spread(means, 3)} | {spread(p99s, 3)} |")
    for name in ("docstore", *others):
        print(f"| read, 16 connections | {name} | {spread(many[name], 0)} | | |")
    print()
    for name in others:
        ratios = [one / other for one, other in zip(many["docstore"], many[name])]
        print(f"read, 16 connections: docstore / {name}, per second of CPU: {spread(ratios, 2)}")
    took, each = reopen(100_000)
    print(f"100,000 documents in a folder: the first is read {took:.2f} s after the start, {each:,.0f} bytes of memory each")
    for name in others:
        for kind in KINDS:
            ratios = [one[0] / other[0] for one, other in zip(results[kind, "docstore"], results[kind, name])]
            print(f"{kind}: docstore / {name}, per second of CPU: {spread(ratios, 2)}")


main()
