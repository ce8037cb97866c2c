#!/usr/bin/env python3
"""Shows that a load which agents send together is one load, and what sending it together costs.

Each agent is in a network namespace of its own, joined by a bridge to that of nginx and of a NATS server, as machines are by a
switch. Needs root, Linux namespaces (`ip`), nginx and nats-server.

    cargo build --release
    bench/agents.py                     # ten agents, 5,000 requests a second for 20 s, beside one process in turn
    bench/agents.py --agents 3 --rate 20000 --rounds 5

Where k6 is installed, it sends the same load from one process as well.

It prints, for each round: what nginx counted and what Narrows did; percentiles of the merged load beside those of all
histograms that agents reported, added up here by another program (they pass this script on their way); and the CPU time of
all processes beside that of one process that sends the same load from one namespace.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NARROWS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "narrows"
NET = "10.231.7"
HUB, PREFIX = "nwb-hub", "nwb-"

NGINX = """
daemon off; worker_processes 1; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  server {{ listen {net}.1:8080; location / {{ return 200 'hello'; }} location = /count {{ stub_status; }} }}
}}
"""

EXPERIMENT = """
experiment: agents
load:
  target: http://{net}.1:8080
  tracing: false
  threads: 1
  scenarios:
    all:
      model: constant-arrival-rate
      rate: {rate}
      duration: {seconds}s
      arrivals: poisson
      max_vus: 200
      request: "GET /item"
"""


K6 = """
import http from 'k6/http';
export const options = {{ scenarios: {{ all: {{ executor: 'constant-arrival-rate', rate: {rate}, timeUnit: '1s',
  duration: '{seconds}s', preAllocatedVUs: 200 }} }}, summaryTrendStats: ['med', 'p(99)', 'p(99.9)'] }};
export default function () {{ http.get('http://{net}.1:8080/item'); }}
"""


def sh(*command, check=True):
    return subprocess.run(command, check=check, capture_output=True, text=True)


class Network:
    """A bridge in a namespace, and one namespace for each agent; gone with the block."""

    def __init__(self, agents):
        self.names = [f"{PREFIX}{number}" for number in range(agents)]

    def __enter__(self):
        self.__exit__()
        sh("ip", "netns", "add", HUB)
        sh("ip", "-n", HUB, "link", "set", "lo", "up")
        sh("ip", "-n", HUB, "link", "add", "br0", "type", "bridge")
        sh("ip", "-n", HUB, "addr", "add", f"{NET}.1/24", "dev", "br0")
        sh("ip", "-n", HUB, "link", "set", "br0", "up")
        for number, name in enumerate(self.names):
            sh("ip", "netns", "add", name)
            sh("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"v{number}", "netns", HUB)
            sh("ip", "-n", HUB, "link", "set", f"v{number}", "master", "br0", "up")
            sh("ip", "-n", name, "addr", "add", f"{NET}.{number + 10}/24", "dev", "eth0")
            sh("ip", "-n", name, "link", "set", "eth0", "up")
            sh("ip", "-n", name, "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for name in [*self.names, HUB]:
            sh("ip", "netns", "del", name, check=False)


def inside(namespace, *command):
    return ["ip", "netns", "exec", namespace, *map(str, command)]


def cpu(process):
    """CPU time of a process that still runs, seconds."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ended_cpu(process):
    """Waits for a process; its CPU time and that of what it waited for, seconds."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def requests_of_nginx():
    page = sh("ip", "netns", "exec", HUB, "curl", "-s", f"http://{NET}.1:8080/count").stdout
    return int(re.search(r"(\d+) +(\d+) +(\d+)", page).group(3))


class Listener(threading.Thread):
    """Reads what agents report as it passes the NATS server, and adds up their histograms."""

    def __init__(self, port_of):
        super().__init__(daemon=True)
        self.buckets, self.sent, self.pieces = {}, 0, {}
        self.stream = port_of
        self.stream.settimeout(None)

    def run(self):
        lines = self.stream.makefile("rb")
        while line := lines.readline():
            if line.startswith(b"PING"):
                self.stream.sendall(b"PONG\r\n")
            elif line.startswith((b"MSG", b"HMSG")):
                words = line.split()
                size, head = int(words[-1]), int(words[-2]) if words[0] == b"HMSG" else 0
                self.take(words[1], lines.read(size)[head:])
                lines.read(2)

    def take(self, subject, message):
        number, count = struct.unpack(">II", message[:8])
        kept = self.pieces.setdefault(subject, [])
        if number == 0:
            kept.clear()
        kept.append(message[8:])
        if number + 1 < count:
            return
        report = json.loads(zlib.decompress(b"".join(kept)))
        for row in report.get("Second", {}).get("batch", {}).get("seconds", []):
            self.sent += row["sent"]
            for lower, bucket in row["latency"]["buckets"]:
                self.buckets[lower] = self.buckets.get(lower, 0) + bucket


def listen():
    """A subscription from within the namespace of the server, through a socket that is handed over."""
    helper = (
        "import socket,sys,array;"
        f"s=socket.create_connection(('{NET}.1',4222));"
        "u=socket.socket(fileno=0);"
        "u.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[s.fileno()]))])"
    )
    ours, theirs = socket.socketpair()
    subprocess.run(inside(HUB, sys.executable, "-c", helper), stdin=theirs, check=True)
    _, [(_, _, data)], _, _ = ours.recvmsg(1, 64)
    stream = socket.socket(fileno=struct.unpack("i", data[:4])[0])
    stream.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB narrows.reports.> 1\r\nPING\r\n')
    return stream


def ask(run, sql):
    return sh(NARROWS, "query", run, sql, "--format", "csv").stdout.splitlines()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=10)
    parser.add_argument("--rate", type=int, default=5_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="narrows-bench-"))
    children = []

    def start(namespace, *command, **settings):
        child = subprocess.Popen(inside(namespace, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **settings)
        children.append(child)
        return child

    try:
        with Network(options.agents) as network:
            (folder / "nginx.conf").write_text(NGINX.format(dir=folder, net=NET))
            text = EXPERIMENT.format(net=NET, rate=options.rate, seconds=options.seconds)
            (folder / "experiment.yaml").write_text(text)
            (folder / "k6.js").write_text(K6.format(net=NET, rate=options.rate, seconds=options.seconds))
            start(HUB, shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", folder / "nginx.conf")
            server = shutil.which("nats-server") or "/usr/sbin/nats-server"
            nats = start(HUB, server, "-a", f"{NET}.1", "-p", "4222", "-js", "-sd", folder / "js")
            time.sleep(1)
            url = f"nats://{NET}.1:4222"
            agents = [
                start(name, NARROWS, "agent", "--nats", url, "--name", name, "--threads", "1") for name in network.names
            ]
            time.sleep(1)
            ratios, shares = [], []
            of_k6 = []
            for number in range(options.rounds):
                if shutil.which("k6"):
                    of_k6.append(k6(folder, network.names[0]))
                figures = {}
                for kind in ("agents", "one") if number % 2 == 0 else ("one", "agents"):
                    run = folder / f"{kind}-{number}.narrows"
                    listener = Listener(listen())
                    listener.start()
                    nats_before, agents_before = cpu(nats), sum(map(cpu, agents))
                    before = requests_of_nginx(), nats_before + agents_before
                    extra = ["--nats", url, "--agents", options.agents] if kind == "agents" else []
                    namespace = HUB if kind == "agents" else network.names[0]
                    command = inside(namespace, NARROWS, "run", folder / "experiment.yaml", "--out", run, *extra)
                    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    said = process.stderr.read()
                    own = ended_cpu(process)
                    if process.returncode != 0:
                        sys.exit(said)
                    time.sleep(0.5)
                    shared = sum(map(cpu, [nats, *agents])) - before[1]
                    counted = int(float(ask(run, "select sum(sent) from load_seconds")))
                    # The question itself is a request.
                    came = requests_of_nginx() - before[0] - 1
                    figures[kind] = own + (shared if kind == "agents" else 0)
                    load = loading(run) if kind == "agents" else 0
                    print(f"round {number + 1}, {kind}: nginx {came:,}, narrows {counted:,}, CPU {figures[kind]:.2f} s")
                    if came != counted:
                        sys.exit("the counts differ")
                    if kind == "agents":
                        compare(run, listener)
                        shares.append((cpu(nats) - nats_before + sum(map(cpu, agents)) - agents_before - load) / figures[kind])
                        print(f"  load threads {load:.2f} s, the rest of the agents and NATS {100 * shares[-1]:.1f} % of all")
                ratios.append(figures["agents"] / figures["one"])
            print(f"CPU of {options.agents} agents, NATS and coordinator ÷ that of one process: "
                  f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
            print(f"of it beside load threads and coordinator: {100 * statistics.median(shares):.1f} %")
            if of_k6:
                print(f"CPU of k6: {statistics.median(of_k6):.2f} s ({min(of_k6):.2f} to {max(of_k6):.2f})")
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def k6(folder, namespace):
    """CPU time of k6 for the same load, seconds."""
    before = requests_of_nginx()
    command = inside(namespace, "k6", "run", "--quiet", "--no-usage-report", folder / "k6.js")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    said = process.stdout.read()
    used = ended_cpu(process)
    latency = re.search(r"http_req_duration\S*:.*", said)
    print(f"k6: nginx {requests_of_nginx() - before - 1:,}, CPU {used:.2f} s; {latency.group(0) if latency else said}")
    return used


def loading(run):
    """CPU time of the load threads of all agents, seconds: what each used of its core, times the length of the load."""
    caveats = json.loads(sh(NARROWS, "query", run, "select caveats from trials", "--format", "json").stdout)
    parts = [caveat["part"] for caveat in found(caveats) if caveat.get("kind") == "sent-by-agent"]
    seconds = float(ask(run, "select (max(start_ns + length_ns) - min(start_ns)) / 1e9 from load_seconds"))
    return sum(part["cpu"] * part["threads"] * seconds for part in parts)


def found(rows):
    """The caveats of the first row, whichever form the query gives them."""
    first = rows[0] if isinstance(rows, list) else rows["rows"][0]
    value = next(iter(first.values())) if isinstance(first, dict) else first[0]
    return json.loads(value) if isinstance(value, str) else value


def compare(run, listener):
    """The buckets of the merged load beside those of the pooled histograms, and percentiles of both."""
    rows = sh(NARROWS, "query", run, "select lower_ns, sum(count) from load_latency where measure = 'latency' group by 1", "--format", "csv").stdout
    merged = {int(float(lower)): int(float(count)) for lower, count in (row.split(",") for row in rows.splitlines()[1:])}
    same = merged == listener.buckets
    figures = ", ".join(
        f"p{100 * share:g} {quantile(merged, share) / 1e3:.1f} and {quantile(listener.buckets, share) / 1e3:.1f} µs"
        for share in (0.5, 0.99, 0.999)
    )
    print(f"  merged and pooled: {figures}; {'all buckets equal' if same else 'BUCKETS DIFFER'}")
    if not same:
        sys.exit(1)


def quantile(buckets, share):
    """The lower bound of the bucket that holds it, ns."""
    wanted, seen = share * sum(buckets.values()), 0
    for lower in sorted(buckets):
        seen += buckets[lower]
        if seen >= wanted:
            return lower
    return 0


if __name__ == "__main__":
    main()
