#!/usr/bin/env python3
"""Measures what keeping telemetry costs beside its peers, on one machine, in one run.

    cargo build --release
    cargo build --release -p narrows-telemetry --example ingest
    bench/telemetry.py ingest       # spans accepted per core-second, beside an OpenTelemetry Collector and Jaeger
    bench/telemetry.py file         # a run file of a million spans: bytes for each, and the time of a KQL query
    bench/telemetry.py share        # what telemetry takes beside a load of 10,000 requests a second, 1 % of them traced

`ingest` writes the requests down once (512 spans each, with 6 to 12 attributes, of four services) and sends the same
bodies to each receiver in turn, round after round: OTLP/HTTP in protobuf over four connections, the next request when
the one before is accepted. Receivers are pinned to core 0, the sender, a process of its own, to core 1. What is compared
is the receiver's CPU time (user and system, of all its threads) from before the first request until it has come to
rest, so that what is flushed and compacted afterwards counts. Narrows makes rows of spans when a trial ends: a second
figure has its CPU time to the end of its process, when every span can be queried and the file has its indices. Each
receiver's store is looked into: no span may be missing. Figures are medians over rounds; ratios are taken within a round, with a 95 % interval by bootstrap. Peers that
are not on PATH (`otelcol-contrib`, `otelcol` or `otelcol-bench`, and `jaeger`) are left out and named.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from load import NARROWS, Nginx, free_port, median_interval, number, wait_for

INGEST = NARROWS.parent / "examples" / "ingest"
RECEIVER_CORE, SENDER_CORE = 0, 1
TICK = 1 / os.sysconf("SC_CLK_TCK")
SPANS_PER_TRACE = 10
TRACES_ASKED_FOR = 200

COLLECTOR = """
receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: "127.0.0.1:{port}" }} }} }} }}
exporters: {{ file: {{ path: {folder}/spans.json }} }}
service:
  telemetry: {{ metrics: {{ level: none }}, logs: {{ level: error }} }}
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [file] }} }}
"""

JAEGER = """
receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: "127.0.0.1:{port}" }} }} }} }}
exporters: {{ jaeger_storage_exporter: {{ trace_storage: disk }} }}
extensions:
  jaeger_query:
    storage: {{ traces: disk }}
    http: {{ endpoint: "127.0.0.1:{query}" }}
    grpc: {{ endpoint: "127.0.0.1:{grpc}" }}
  jaeger_storage:
    backends:
      disk:
        badger:
          directories: {{ keys: {folder}/keys, values: {folder}/values }}
          ephemeral: false
          consistency: false
          ttl: {{ spans: 720h }}
service:
  extensions: [jaeger_storage, jaeger_query]
  telemetry: {{ metrics: {{ level: none }}, logs: {{ level: error }} }}
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [jaeger_storage_exporter] }} }}
"""


def query(*arguments, question=""):
    """The output of `narrows query`."""
    command = [str(NARROWS), "query", *arguments]
    return subprocess.run(command, input=question.encode(), stdout=subprocess.PIPE, check=True).stdout.decode()


class Narrows:
    """A run file, as every run writes it."""

    durable = "committed to SQLite's log before it is accepted, a row later; no fsync for each commit"

    def __init__(self, folder, spans):
        self.file, self.port = folder / "run.narrows", free_port()
        self.command = [str(INGEST), "serve", f"127.0.0.1:{self.port}", str(self.file), str(spans)]

    def stored(self, running):
        running.end()
        sql = "SELECT count(*) AS n FROM spans"
        return json.loads(query("--format", "json", str(self.file), sql))[0]["n"]


class Collector:
    """An OpenTelemetry Collector with contrib's file exporter: JSON, a line for each request."""

    durable = "in the exporter's buffer when it is accepted, flushed each second; no fsync"

    def __init__(self, program, folder):
        self.file, self.port = folder / "spans.json", free_port()
        config = folder / "collector.yaml"
        config.write_text(COLLECTOR.format(port=self.port, folder=folder))
        self.command = [program, "--config", str(config)]

    def stored(self, running):
        running.end()
        with self.file.open("rb") as lines:
            return sum(line.count(b'"spanId":') for line in lines)


class Jaeger:
    """Jaeger with Badger on disk. Without its batch processor, so that a span is written when it is accepted."""

    durable = "written to Badger before it is accepted; no fsync (`consistency: false`, its default)"

    def __init__(self, program, folder, spans):
        self.port, self.query, self.spans = free_port(), free_port(), spans
        config = folder / "jaeger.yaml"
        config.write_text(JAEGER.format(port=self.port, query=self.query, grpc=free_port(), folder=folder))
        self.command = [program, "--config", str(config)]

    def stored(self, running):
        """Jaeger has no count of spans: some traces are asked for, and each must be whole."""
        traces = self.spans // SPANS_PER_TRACE
        for trace in range(0, traces, max(1, traces // TRACES_ASKED_FOR)):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.query}/api/traces/{trace_id(trace)}", timeout=30) as response:
                found = len(json.load(response)["data"][0]["spans"])
            if found != SPANS_PER_TRACE:
                sys.exit(f"error: Jaeger has {found} spans of trace {trace}, expected {SPANS_PER_TRACE}")
        running.end()
        return self.spans


def trace_id(trace):
    """As the sender makes them."""
    return f"{mixed(trace):016x}{mixed(trace ^ 0xABCD):016x}"


def mixed(n):
    """The finaliser of SplitMix64."""
    bits = (1 << 64) - 1
    n = (n + 0x9E3779B97F4A7C15) & bits
    n = ((n ^ (n >> 30)) * 0xBF58476D1CE4E5B9) & bits
    n = ((n ^ (n >> 27)) * 0x94D049BB133111EB) & bits
    return n ^ (n >> 31)


class Running:
    """A receiver on its core, gone with the block."""

    def __init__(self, receiver, folder):
        self.receiver = receiver
        self.used = None
        self.log = (folder / "log").open("wb")
        command = ["taskset", "-c", str(RECEIVER_CORE), *receiver.command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        wait_for(receiver.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        self.log.close()

    def cpu(self):
        """Seconds of CPU so far, of all threads and of children that ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(ticks) for ticks in fields[11:15]) * TICK

    def at_rest(self):
        """Waits until no CPU was used for a second, and says how much was used by then."""
        before, deadline = self.cpu(), time.monotonic() + 60
        while time.monotonic() < deadline:
            time.sleep(1)
            now = self.cpu()
            if now - before <= 2 * TICK:
                return now
            before = now
        return before

    def peak(self):
        return number(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text(), 1 / 1024)

    def end(self):
        """Ends it as its user would: `ingest serve` by the end of its input, the others by a signal."""
        if self.process.poll() is None:
            self.process.stdin.close()
            if not isinstance(self.receiver, Narrows):
                self.process.send_signal(signal.SIGTERM)
            self.used = self.waited_for()

    def waited_for(self):
        """Waits for its end, and says how many seconds of CPU it used in all."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return usage.ru_utime + usage.ru_stime
            time.sleep(0.02)
        self.process.kill()
        sys.exit(f"error: {self.receiver.command[0]} did not end within two minutes")


def round_of(make, bodies, spans):
    """Sends all bodies to a new receiver. Returns spans accepted per core-second, spans per core-second when the CPU to
    the end of its process counts, and its peak memory in MiB."""
    folder = Path(tempfile.mkdtemp(prefix="narrows-bench-"))
    try:
        receiver = make(folder)
        with Running(receiver, folder) as running:
            before = running.at_rest()
            send = ["taskset", "-c", str(SENDER_CORE), str(INGEST), "send", f"127.0.0.1:{receiver.port}", str(bodies)]
            said = subprocess.run(send, stdout=subprocess.PIPE, check=True).stdout.decode()
            used, peak = running.at_rest() - before, running.peak()
            sent, stored = int(number(r"(\d+) spans", said)), receiver.stored(running)
            if not sent == stored == spans:
                sys.exit(f"error: sent {sent} of {spans} spans, but {stored} are stored")
            in_all = running.used - before
        return spans / used, spans / in_all, peak
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def receivers(spans):
    found = {"narrows": (Narrows, lambda folder: Narrows(folder, spans))}
    collector = next(filter(None, map(shutil.which, ("otelcol-contrib", "otelcol", "otelcol-bench"))), None)
    jaeger = shutil.which("jaeger")
    if collector:
        found["collector"] = (Collector, lambda folder: Collector(collector, folder))
    if jaeger:
        found["jaeger"] = (Jaeger, lambda folder: Jaeger(jaeger, folder, spans))
    for name in ("collector", "jaeger"):
        if name not in found:
            print(f"note: {name} is not on PATH and is left out")
    return found


def ingest(rounds, spans):
    with tempfile.TemporaryDirectory(prefix="narrows-bench-") as folder:
        bodies = Path(folder) / "bodies"
        subprocess.run([str(INGEST), "bodies", str(spans), str(bodies)], check=True)
        found = receivers(spans)
        figures = {name: [] for name in found}
        for at in range(rounds):
            for name, (_, make) in found.items():
                figures[name].append(round_of(make, bodies, spans))
            print(f"\rround {at + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    print(f"{spans:,} spans in each round")
    print(f"{'receiver':<12}{'accepted per core-second':>24}{'narrows : it':>14}{'95 % interval':>20}{'peak memory':>14}")
    for name, rows in figures.items():
        ratios = [ours[0] / theirs[0] for ours, theirs in zip(figures["narrows"], rows)]
        middle, low, high = median_interval(ratios)
        speed, memory = statistics.median(row[0] for row in rows), max(row[2] for row in rows)
        print(f"{name:<12}{speed:>24,.0f}{middle:>14.2f}{low:>12.2f} to {high:.2f}{memory:>10.0f} MiB   {found[name][0].durable}")
    in_all, low, high = median_interval([row[1] for row in figures["narrows"]])
    print(f"narrows, spans per core-second until each can be queried, indices included: {in_all:,.0f} ({low:,.0f} to {high:,.0f})")


QUERY = """
let from_time = datetime(2026-11-21T12:00:05Z);
let to_time = datetime(2026-11-21T12:00:35Z);
requests
| where timestamp between (from_time .. to_time)
| where name == "GET /api/orders/{id}" and success == true
| summarize Successes = sum(itemCount), Calls = toscalar(
    dependencies
    | where timestamp between (from_time .. to_time)
    | where type in ("azure.cosmosdb", "Azure DocumentDB")
    | summarize sum(itemCount))
| project Successes, Calls, CallsPerSuccess = todouble(Calls) / Successes
"""


def run_file(rounds, spans):
    with tempfile.TemporaryDirectory(prefix="narrows-bench-") as folder:
        file = Path(folder) / "run.narrows"
        said = subprocess.run([str(INGEST), str(spans), str(file)], stdout=subprocess.PIPE, check=True).stdout.decode()
        print("\n".join(line for line in said.splitlines() if re.match("spans received|finishing|  making|bytes|peak", line)))
        times = []
        for _ in range(rounds):
            begun = time.monotonic()
            rows = query(str(file), "--kql", "-", question=QUERY)
            times.append(time.monotonic() - begun)
        middle, low, high = median_interval(times)
        print(rows.rstrip())
        print(f"the query, s: median {middle:.3f} ({low:.3f} to {high:.3f}), the slowest {max(times):.3f}")


EXPERIMENT = """
experiment: share
load:
  target: http://127.0.0.1:{port}
  tracing: {tracing}
  threads: 1
  scenarios:
    steady:
      model: constant-arrival-rate
      rate: 10000/s
      duration: {seconds}s
      max_vus: 500
      steps: [{{ name: root, request: "GET /" }}]
"""
TELEMETRY_THREADS = ("otlp-", "run-file", "sampler")


def share(rounds, seconds):
    """CPU of the threads that receive, sample and write while a load runs, as a share of one core."""
    with Nginx() as nginx, tempfile.TemporaryDirectory(prefix="narrows-bench-") as folder:
        figures = {"{ sample: 0.01 }": [], "false": []}
        for _ in range(rounds):
            for tracing, rows in figures.items():
                experiment, file = Path(folder) / "share.yaml", Path(folder) / "run.narrows"
                experiment.write_text(EXPERIMENT.format(port=nginx.port, tracing=tracing, seconds=seconds))
                for left in Path(folder).glob("run.narrows*"):
                    left.unlink()
                rows.append(threads_of([str(NARROWS), "run", str(experiment), "--out", str(file)], seconds))
        for tracing, rows in figures.items():
            all_threads, low, high = median_interval([sum(row.values()) for row in rows])
            print(f"tracing: {tracing}: all threads {all_threads:.2f} s of CPU ({low:.2f} to {high:.2f})")
            for name in sorted({name for row in rows for name in row}):
                part, low, high = median_interval([row.get(name, 0.0) / seconds * 100 for row in rows])
                print(f"  {name:<16}{part:>8.2f} % of a core ({low:.2f} to {high:.2f})")
            part, low, high = median_interval(
                [sum(cpu for name, cpu in row.items() if name.startswith(TELEMETRY_THREADS)) / seconds * 100 for row in rows]
            )
            print(f"  telemetry in all{part:>8.2f} % of a core ({low:.2f} to {high:.2f})")


def threads_of(command, seconds):
    """Runs a command and says how many seconds of CPU its threads took, by name."""
    process = subprocess.Popen(["taskset", "-c", str(RECEIVER_CORE), *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    cpu = {}
    while process.poll() is None:
        for task in Path(f"/proc/{process.pid}/task").glob("*"):
            try:
                name, ns = (task / "comm").read_text().strip(), (task / "schedstat").read_text().split()[0]
            except (OSError, IndexError):
                continue
            cpu[task.name, name] = int(ns) / 1e9
        time.sleep(0.1)
    if process.returncode == 2:
        sys.exit(f"error: {' '.join(command)}: {process.stderr.read().decode()}")
    sums = {}
    for (_, name), seconds_used in cpu.items():
        sums[name] = sums.get(name, 0.0) + seconds_used
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["ingest", "file", "share"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--spans", type=int, default=None, help="in each round")
    parser.add_argument("--seconds", type=int, default=10, help="of load in each round")
    arguments = parser.parse_args()
    for program in (NARROWS, INGEST):
        if not program.exists():
            sys.exit(f"error: {program} is missing; the first lines of --help say how to build it")
    if arguments.case == "ingest":
        ingest(arguments.rounds, arguments.spans or 300_000)
    elif arguments.case == "file":
        run_file(arguments.rounds, arguments.spans or 1_000_000)
    else:
        share(arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()
