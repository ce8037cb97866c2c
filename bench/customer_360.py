#!/usr/bin/env python3
"""Measures the chain customer -> person -> name -> PostgreSQL beside the same chain in two other stacks, in one run.

Each stack is three processes on loopback that serve `GET /api/customer` with the same five rows from the same private
PostgreSQL; the responses are compared before anything is measured. All stacks run at the same time and are warmed up
(the JVM needs it), then loaded in turn, round after round, by the same generator, `narrows load`, with 50 connections
in a closed loop. What is compared is CPU time: user and system of each service and of all PostgreSQL's processes, from
/proc before and after, without the generator's. Figures are medians over rounds with a 95 % interval by bootstrap;
ratios are taken within a round. No stack traces, logs requests or has a proxy beside it. The peers' pools hold 10
connections to the database, ours as many as it takes unasked.

    cargo build --release
    bench/customer_360.py peers     # requests per core-second: ours, Go net/http + pgx, Spring Boot WebFlux + R2DBC
    bench/customer_360.py ours      # ours only: closed loop with 50 connections, then open loop at 7,000 a second

Needs PostgreSQL, and for the peers Go and Maven with JDK 17; a stack whose tools are not on PATH is left out and named.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from load import NARROWS, free_port, median_interval

SOURCES = Path(__file__).resolve().parent / "customer-360"
SYSTEM = SOURCES.parent.parent / "systems" / "customer-360"
SCHEMA = SYSTEM / "schema.sql"
TICK = 1 / os.sysconf("SC_CLK_TCK")
CONNECTIONS, POOL, OPEN_RATE = 50, 10, 7_000
CLOSED = ("-c", str(CONNECTIONS))
PARTS = ("customer", "person", "name", "postgres")

# For each stack: the programs it needs, how it is built into {scratch}, and the command of each service, which is given
# {port}, the port of the service behind it as {next}, and PostgreSQL's as {database}.
STACKS = {
    "narrows": {
        "needs": [],
        "build": None,
        "name": "{narrows} system customer-360 name --port {port}"
        " --database postgres://postgres@127.0.0.1:{database}/postgres",
        "person": "{narrows} system customer-360 person --port {port} --name http://127.0.0.1:{next}",
        "customer": "{narrows} system customer-360 customer --port {port} --person http://127.0.0.1:{next}",
    },
    "go": {
        "needs": ["go"],
        "build": "go build -C {sources}/go -o {scratch}/chain .",
        "name": "{scratch}/chain name -port {port}"
        f" -database postgres://postgres@127.0.0.1:{{database}}/postgres?sslmode=disable&pool_max_conns={POOL}",
        "person": "{scratch}/chain person -port {port} -upstream http://127.0.0.1:{next}",
        "customer": "{scratch}/chain customer -port {port} -upstream http://127.0.0.1:{next}",
    },
    "spring": {
        "needs": ["mvn", "java"],
        "build": "mvn -q -B -f {system}/spring/pom.xml -DbuildFolder={scratch}/spring package",
        "name": "java -Xmx512m -jar {scratch}/spring/chain.jar --spring.profiles.active=name --server.port={port}"
        " --spring.r2dbc.url=r2dbc:postgresql://127.0.0.1:{database}/postgres --spring.r2dbc.username=postgres"
        f" --spring.r2dbc.pool.initial-size={POOL} --spring.r2dbc.pool.max-size={POOL}",
        "person": "java -Xmx512m -jar {scratch}/spring/chain.jar --spring.profiles.active=person --server.port={port}"
        " --upstream=http://127.0.0.1:{next}",
        "customer": "java -Xmx512m -jar {scratch}/spring/chain.jar --spring.profiles.active=customer"
        " --server.port={port} --upstream=http://127.0.0.1:{next}",
    },
}

def words(command, **facts):
    """A command's words, its facts filled in: a path with a space stays one word."""
    return [word.format(**facts) for word in command.split()]


class Process:
    """A process in a group of its own, so that Ctrl-C reaches this script only, which ends what it began."""

    def __init__(self, command, log):
        self.log = log
        with log.open("wb") as output:
            self.popen = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)

    def wait_until(self, ready, what):
        deadline = time.monotonic() + 60
        while not ready():
            if self.popen.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"error: {what} did not become ready:\n{self.log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def cpu(self):
        """Seconds of CPU so far, user and system, of the process and all its descendants, ended ones too."""
        parents = {pid: stat for pid, stat in map(read_stat, Path("/proc").glob("[0-9]*/stat")) if stat}
        family, ticks = [self.popen.pid], 0
        for pid in family:  # grows while it is read
            family += [child for child, stat in parents.items() if int(stat[1]) == pid]
            ticks += sum(map(int, parents[pid][11:15])) if pid in parents else 0
        return ticks * TICK

    def end(self, how=signal.SIGTERM):
        if self.popen.poll() is None:
            self.popen.send_signal(how)
            try:
                self.popen.wait(10)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()


def read_stat(path):
    """A process's id and the fields of /proc/PID/stat after its name: state, parent, …"""
    try:
        return int(path.parent.name), path.read_text().rpartition(")")[2].split()
    except OSError:
        return 0, None  # it ended meanwhile


def postgres(scratch, cleanup):
    """A private PostgreSQL on loopback with the table in it. Returns its process and its port."""
    folder, port = scratch / "postgres", free_port()
    # PostgreSQL refuses to run as root: in a user namespace it runs as somebody else without an account for it.
    someone = ["unshare", "-Ur", "--map-user=1000", "--map-group=1000"] if os.geteuid() == 0 else []
    subprocess.run(
        [*someone, tool("initdb"), "-D", folder, "-U", "postgres", "-A", "trust", "-N"], check=True, stdout=subprocess.DEVNULL
    )
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": folder,
        "fsync": "off",
        "autovacuum": "off",
        "client_min_messages": "warning",
    }
    options = [word for setting, value in settings.items() for word in ("-c", f"{setting}={value}")]
    server = Process([*someone, tool("postgres"), "-D", folder, *options], scratch / "postgres.log")
    cleanup.callback(server.end, signal.SIGINT)  # "fast": it does not wait for clients
    client = ["-h", "127.0.0.1", "-p", str(port)]
    server.wait_until(lambda: subprocess.run([tool("pg_isready"), "-q", *client]).returncode == 0, "PostgreSQL")
    subprocess.run([tool("psql"), "-q", *client, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-f", SCHEMA], check=True)
    return server, port


def tool(program):
    """A program of PostgreSQL: from PATH, or from where Debian keeps it."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which(program) or next((str(f / program) for f in folders if (f / program).exists()), None)
    return found or sys.exit(f"error: {program} is not on PATH\nhint: apt install postgresql")


class Stack:
    """The three services of a stack, running."""

    def __init__(self, name, scratch, database, cleanup):
        stack, self.parts, behind = STACKS[name], {"postgres": database[0]}, None
        facts = {"narrows": NARROWS, "scratch": scratch, "sources": SOURCES, "system": SYSTEM, "database": database[1]}
        if stack["build"]:
            print(f"building {name}", file=sys.stderr)
            subprocess.run(words(stack["build"], **facts), check=True)
        for service in ("name", "person", "customer"):
            port = free_port()
            process = Process(words(stack[service], port=port, next=behind, **facts), scratch / f"{name}-{service}.log")
            cleanup.callback(process.end)
            process.wait_until(lambda: responds(f"http://127.0.0.1:{port}/health"), f"{name}'s {service}")
            self.parts[service], behind = process, port
        self.url = f"http://127.0.0.1:{behind}/api/customer"

    def response(self):
        with urllib.request.urlopen(self.url, timeout=10) as response:
            return json.load(response)

    def load(self, *how):
        """Puts load on the chain. Returns what the generator says, and the CPU of each part in µs per request."""
        before = self.cpu()
        said = generate(self.url, *how)
        after, responses = self.cpu(), said["responses"]
        if not responses:
            sys.exit(f"error: {self.url} did not respond once: {said['errors']}")
        return said, {part: (after[part] - before[part]) / responses * 1e6 for part in PARTS}

    def cpu(self):
        return {part: self.parts[part].cpu() for part in PARTS}


def responds(url):
    try:
        with urllib.request.urlopen(url, timeout=1) as response:
            return response.status == 200
    except OSError:
        return False


def generate(url, *how):
    said = subprocess.run([NARROWS, "load", "--json", *how, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not said.stdout:
        sys.exit(f"error: narrows load {' '.join(how)} {url} ended with status {said.returncode} and said nothing")
    return json.loads(said.stdout)


def failures(said):
    """Requests without a response of status 200."""
    return said["responses"] - said["statuses"].get("200", 0) + sum(error["count"] for error in said["errors"])


def start(names, cleanup):
    """Starts PostgreSQL and the stacks, and compares their responses."""
    scratch = Path(tempfile.mkdtemp(prefix="narrows-bench-"))
    cleanup.callback(shutil.rmtree, scratch, ignore_errors=True)
    database = postgres(scratch, cleanup)
    stacks = {name: Stack(name, scratch, database, cleanup) for name in names}
    bodies = {name: stack.response() for name, stack in stacks.items()}
    for name, body in bodies.items():
        if body != bodies[names[0]] or len(body) != 5:
            sys.exit(f"error: the responses differ, or are not five rows: {bodies[names[0]]} of {names[0]}, {body} of {name}")
    return stacks


def present():
    """The stacks that can be built here."""
    found = []
    for name, stack in STACKS.items():
        missing = [program for program in stack["needs"] if not shutil.which(program)]
        if missing:
            print(f"note: {', '.join(missing)} not on PATH: {name} is left out")
        else:
            found.append(name)
    return found


def peers(names, rounds, seconds, warm_up):
    with contextlib.ExitStack() as cleanup:
        stacks = start(names, cleanup)
        for name, stack in stacks.items():
            print(f"warming up {name}", file=sys.stderr)
            stack.load(*CLOSED, "-n", str(warm_up))
        figures = {name: [] for name in stacks}
        for at in range(rounds):
            for name, stack in stacks.items():
                figures[name].append(stack.load(*CLOSED, "-z", f"{seconds}s"))
            print(f"\rround {at + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    compare(figures)


def compare(figures):
    base = next(iter(figures))
    print(f"{'stack':<9}{'requests per core-second':>26}{base + ' : it':>14}{'requests/s':>12}{'p95':>9}{'failed':>8}   µs of CPU per request")
    for name, rows in figures.items():
        speeds = [1e6 / sum(cpu.values()) for _, cpu in rows]
        first = [1e6 / sum(cpu.values()) for _, cpu in figures[base]]
        middle, low, high = median_interval(speeds)
        ratio, ratio_low, ratio_high = median_interval([ours / theirs for ours, theirs in zip(first, speeds)])
        rate = statistics.median(said["responses_per_second"] for said, _ in rows)
        p95 = statistics.median(said["latency"]["p95_ns"] for said, _ in rows) / 1e6
        failed = sum(failures(said) for said, _ in rows)
        print(
            f"{name:<9}{middle:>8,.0f} ({low:,.0f} to {high:,.0f}){ratio:>8.2f} ({ratio_low:.2f} to {ratio_high:.2f})"
            f"{rate:>10,.0f}{p95:>7.1f} ms{failed:>8}   {parts_of([cpu for _, cpu in rows])}"
        )


def parts_of(rows):
    """CPU per request of each part and in total, with the interval of the total."""
    each = ", ".join(f"{part} {statistics.median(row[part] for row in rows):.1f}" for part in PARTS)
    total, low, high = median_interval([sum(row.values()) for row in rows])
    return f"{each}: total {total:.1f} ({low:.1f} to {high:.1f})"


def ours(rounds, seconds, requests, warm_up):
    loads = {
        f"closed, {CONNECTIONS} connections": (*CLOSED, "-n", str(requests)),
        f"open, {OPEN_RATE:,}/s": ("--rate", str(OPEN_RATE), "-z", f"{seconds}s"),
    }
    with contextlib.ExitStack() as cleanup:
        stack = start(["narrows"], cleanup)["narrows"]
        stack.load(*CLOSED, "-n", str(warm_up))
        for what, how in loads.items():
            rows = [stack.load(*how) for _ in range(rounds)]
            report(what, rows)


def report(what, rows):
    print(f"{what}, {rows[0][0]['responses']:,} requests, {len(rows)} times")
    for figure, unit, values in (
        ("requests/s", "", [said["responses_per_second"] for said, _ in rows]),
        ("p95", " ms", [said["latency"]["p95_ns"] / 1e6 for said, _ in rows]),
        ("maximum", " ms", [said["latency"]["max_ns"] / 1e6 for said, _ in rows]),
    ):
        middle, low, high = median_interval(values)
        print(f"  {figure:<12}{middle:>10,.1f}{unit} ({low:,.1f} to {high:,.1f})")
    print(f"  {'failed':<12}{sum(failures(said) for said, _ in rows):>8}")
    print(f"  {'µs of CPU per request':<24}{parts_of([cpu for _, cpu in rows])}")
    for reason in {reason for said, _ in rows for reason in said["validity"]["reasons"]}:
        print(f"  note: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["peers", "ours"])
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--seconds", type=int, default=10, help="of each load that lasts for a time")
    parser.add_argument("--requests", type=int, default=1_000_000, help="of each closed loop of `ours`")
    parser.add_argument("--warm-up", type=int, default=150_000, help="requests of each stack before the first round")
    parser.add_argument("--stacks", nargs="+", choices=STACKS, default=None, help="only these; the first is compared with")
    arguments = parser.parse_args()
    if not NARROWS.exists():
        sys.exit(f"error: {NARROWS} is missing; run `cargo build --release` first")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("error: terminated"))
    try:
        if arguments.case == "peers":
            peers(arguments.stacks or present(), arguments.rounds or 7, arguments.seconds, arguments.warm_up)
        else:
            ours(arguments.rounds or 3, arguments.seconds, arguments.requests, arguments.warm_up)
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
