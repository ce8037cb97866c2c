#!/usr/bin/env python3
"""Measures what the load engine costs beside its peers, on one machine, in one run.

Each case runs Narrows and the peers in turn, round after round, against the same nginx (one worker, pinned to core 1,
`return 200`), every client pinned to core 0. What is compared is the client's CPU time per request, from the kernel's
accounting of the process (wait4), so that a busy neighbour costs little; figures are medians over rounds of the ratio
to the first peer in the same round, with a 95 % interval by bootstrap. Peers that are not on PATH are left out and
named. `floor` is bench/floor.c, built when a C compiler is there: what the kernel alone takes for the same requests.

    cargo build --release
    bench/load.py closed            # closed loop, 50 connections, against wrk (and hey, oha, k6 where there)
    bench/load.py open              # open loop, 2,000 requests a second
    bench/load.py session           # three steps with cookies and one extraction, against k6
    bench/load.py memory            # peak memory after 10^6 and 10^7 requests
    bench/load.py stall             # a server that stands still for 1 s in every 5 s: what each tool says of it
"""

import argparse
import asyncio
import os
import random
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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NARROWS = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "narrows"
CLIENT_CORE, SERVER_CORE = 0, 1

NGINX = """
daemon off; worker_processes 1; worker_cpu_affinity 10; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s; default_type application/json;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 200 'hello'; }}
    location = /login {{ add_header Set-Cookie "sid=$request_id; Path=/"; return 200 '{{"token":"$request_id"}}'; }}
    location = /cart {{ if ($cookie_sid = '') {{ return 401; }} return 200 '{{"items":[1,2,3]}}'; }}
    location = /pay {{ if ($arg_token = '') {{ return 400; }} return 200 '{{"paid":true}}'; }}
  }}
}}
"""

SESSION_NARROWS = """
experiment: session
load:
  target: http://127.0.0.1:{port}
  tracing: false
  threads: 1
  scenarios:
    shop:
      model: shared-iterations
      vus: 50
      iterations: {iterations}
      cookies: per-iteration
      steps:
        - {{ name: login, request: "POST /login", extract: {{ token: {{ json: /token }} }} }}
        - {{ name: cart, request: "GET /cart" }}
        - {{ name: pay, request: "POST /pay?token={{{{token}}}}" }}
"""

SESSION_K6 = """
import http from 'k6/http';
export const options = {{ vus: 50, iterations: {iterations}, discardResponseBodies: false }};
export default function () {{
  const login = http.post('http://127.0.0.1:{port}/login');
  const token = login.json('token');
  http.get('http://127.0.0.1:{port}/cart');
  http.post('http://127.0.0.1:{port}/pay?token=' + token);
}}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def floor(folder):
    """Builds the ruler. Gives its path, or nothing without a C compiler."""
    compiler = shutil.which("cc")
    if not compiler:
        print("note: no C compiler, so no floor is measured")
        return None
    program = Path(folder) / "floor"
    subprocess.run([compiler, "-O2", "-o", program, ROOT / "bench" / "floor.c"], check=True)
    return str(program)


class Nginx:
    """nginx on a free port of loopback, gone with the block."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="narrows-bench-")
        self.port = free_port()
        conf = Path(self.dir) / "nginx.conf"
        conf.write_text(NGINX.format(dir=self.dir, port=self.port))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = subprocess.Popen([program, "-p", self.dir, "-c", str(conf)], stderr=subprocess.DEVNULL)
        wait_for(self.port)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(10)
        shutil.rmtree(self.dir, ignore_errors=True)


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"error: nothing listens on port {port}")


def measure(command, cwd=None):
    """Runs a client on its core. Returns its output, CPU seconds and peak memory in MiB."""
    process = subprocess.Popen(
        ["taskset", "-c", str(CLIENT_CORE), *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=cwd
    )
    peak = PeakMemory(process.pid)
    output = process.stdout.read().decode(errors="replace")
    peak.stop()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return output, usage.ru_utime + usage.ru_stime, peak.mebibytes


class PeakMemory:
    """The largest VmHWM seen of a process. (Its ru_maxrss would begin at this script's own, which it is forked from.)"""

    def __init__(self, pid):
        self.mebibytes = 0.0
        self.path = Path(f"/proc/{pid}/status")
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.over.wait(0.05):
            try:
                peak = number(r"VmHWM:\s+(\d+) kB", self.path.read_text())
            except OSError:
                return
            if peak:
                self.mebibytes = peak / 1024  # rises only, but for the change from taskset to the client

    def stop(self):
        self.over.set()
        self.thread.join()


def number(pattern, text, scale=1.0):
    found = re.search(pattern, text)
    return float(found.group(1).replace(",", "")) * scale if found else None


def responses(output):
    return number(r"(\d+) responses", output)


def median_interval(values, rounds=2000):
    """Median with a 95 % interval by bootstrap from a fixed seed."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values))) for _ in range(rounds))
    return statistics.median(values), medians[int(rounds * 0.025)], medians[int(rounds * 0.975)]


def present(peers):
    missing = [name for name, (program, *_) in peers.items() if not shutil.which(program)]
    for name in missing:
        print(f"note: {name} is not on PATH and is left out")
    return {name: peer for name, peer in peers.items() if name not in missing}


def compare(cases, rounds, base):
    """Runs every case in turn, `rounds` times, and prints CPU per request and its ratio to `base`."""
    figures = {name: [] for name in cases}
    for at in range(rounds):
        for name, (command, requests) in cases.items():
            output, cpu, rss = measure(command)
            count = requests(output) if callable(requests) else requests
            if not count:
                sys.exit(f"error: cannot tell how many requests {name} sent:\n{output[-2000:]}")
            figures[name].append((cpu / count * 1e6, rss, output))
        print(f"\rround {at + 1} of {rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{'client':<12}{'CPU per request':>18}{'ratio to ' + base:>20}{'95 % interval':>18}{'peak memory':>14}")
    for name, rows in figures.items():
        cost = statistics.median(row[0] for row in rows)
        ratios = [row[0] / other[0] for row, other in zip(rows, figures[base])]
        middle, low, high = median_interval(ratios)
        memory = max(row[1] for row in rows)
        print(f"{name:<12}{cost:>15.2f} µs{middle:>20.2f}{low:>11.2f} to {high:.2f}{memory:>10.0f} MiB")
    return figures


def wrk_count(output):
    return number(r"([\d,]+) requests in", output)


def sum_of_statuses(output):
    return sum(int(n) for n in re.findall(r"\[\d+\]\s+([\d,]+)", output.replace(",", "")))


def closed(rounds, seconds):
    with Nginx() as nginx:
        url = f"http://127.0.0.1:{nginx.port}/"
        peers = present({
            "wrk": ("wrk", ["wrk", "-t1", "-c50", f"-d{seconds}s", url], wrk_count),
            "oha": ("oha", ["oha", "--no-tui", "-z", f"{seconds}s", "-c", "50", url], sum_of_statuses_oha),
            "hey": ("hey", ["hey", "-z", f"{seconds}s", "-c", "50", url], sum_of_statuses),
            "k6": ("k6", k6(url, f"vus: 50, duration: '{seconds}s'"), lambda o: number(r"http_reqs\S*:\s+(\d+)", o)),
        })
        narrows = [str(NARROWS), "load", "-c", "50", "-z", f"{seconds}s", url]
        cases = {name: (command, count) for name, (_, command, count) in peers.items()}
        cases["narrows"] = (narrows, sum_of_statuses)
        if ruler := floor(nginx.dir):
            cases["floor"] = ([ruler, "closed", str(nginx.port), "50", str(100_000 * seconds)], responses)
        compare(cases, rounds, next(iter(cases)))


def sum_of_statuses_oha(output):
    return sum(int(n) for n in re.findall(r"\[\d+\] (\d+) responses", output))


def k6(url, options):
    script = Path(tempfile.mkdtemp(prefix="narrows-bench-")) / "script.js"
    script.write_text(
        f"import http from 'k6/http';\nexport const options = {{ {options} }};\n"
        f"export default function () {{ http.get('{url}'); }}\n"
    )
    return ["k6", "run", "--quiet", str(script)]


def open_loop(rounds, seconds):
    count = 2000 * seconds
    with Nginx() as nginx:
        url = f"http://127.0.0.1:{nginx.port}/"
        rate = "executor: 'constant-arrival-rate', rate: 2000, preAllocatedVUs: 50, maxVUs: 1000"
        peers = present({
            "oha": ("oha", ["oha", "--no-tui", "--latency-correction", "-q", "2000", "-z", f"{seconds}s", "-c", "50", url], count),
            "h2load": ("h2load", ["h2load", "--h1", "-c", "50", "--rps", "40", "-D", str(seconds), url], count),
            "wrk2": ("wrk2", ["wrk2", "-t1", "-c50", "-R2000", f"-d{seconds}s", "--latency", url], wrk_count),
            "vegeta": ("vegeta", ["sh", "-c", f"echo GET {url} | vegeta attack -rate=2000 -duration={seconds}s | vegeta report"], count),
            "k6": ("k6", k6(url, f"scenarios: {{ a: {{ {rate}, duration: '{seconds}s' }} }}"), count),
        })
        narrows = [str(NARROWS), "load", "-c", "50", "--rate", "2000", "-z", f"{seconds}s", url]
        cases = {"narrows": (narrows, count)}
        cases.update({name: (command, n) for name, (_, command, n) in peers.items()})
        if ruler := floor(nginx.dir):
            cases["floor"] = ([ruler, "open", str(nginx.port), "50", str(count), "2000"], responses)
        figures = compare(cases, rounds, "narrows")
        medians = {
            "narrows": (r"50 ?% in ([\d.]+ \S+)", figures["narrows"][-1][2]),
            "oha": (r"50(?:\.00)?% in ([\d.]+ \S+)", figures.get("oha", [(0, 0, "")])[-1][2]),
            "floor": (r"50% in ([\d.]+ \S+)", figures.get("floor", [(0, 0, "")])[-1][2]),
        }
        for name, (pattern, output) in medians.items():
            found = re.search(pattern, output)
            print(f"p50 as {name} says: {found.group(1) if found else 'not found'}")


def session(rounds, iterations):
    with Nginx() as nginx:
        folder = Path(tempfile.mkdtemp(prefix="narrows-bench-"))
        (folder / "session.yaml").write_text(SESSION_NARROWS.format(port=nginx.port, iterations=iterations))
        (folder / "session.js").write_text(SESSION_K6.format(port=nginx.port, iterations=iterations))
        steps = 3 * iterations
        peers = present({"k6": ("k6", ["k6", "run", "--quiet", str(folder / "session.js")], steps)})
        narrows = [str(NARROWS), "run", str(folder / "session.yaml"), "--out", str(folder / "RUN.narrows")]
        clean = ["sh", "-c", f"rm -f {folder}/RUN.narrows*; exec \"$0\" \"$@\"", *narrows]
        cases = {"narrows": (clean, steps)}
        cases.update({name: (command, n) for name, (_, command, n) in peers.items()})
        compare(cases, rounds, "narrows")
        shutil.rmtree(folder, ignore_errors=True)


def memory():
    with Nginx() as nginx:
        url = f"http://127.0.0.1:{nginx.port}/"
        peaks = []
        for requests in (1_000_000, 10_000_000):
            _, cpu, rss = measure([str(NARROWS), "load", "-c", "50", "-n", str(requests), url])
            peaks.append(rss)
            print(f"{requests:>11,} requests: peak memory {rss:.1f} MiB, {cpu / requests * 1e6:.2f} µs of CPU each")
        print(f"growth from the first to the second: {peaks[1] - peaks[0]:.1f} MiB")


async def stalling_server(port, ready):
    """Responds at once, but stands still during the first second of every five."""
    start = time.monotonic()

    async def serve(reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                at = (time.monotonic() - start) % 5.0
                if at < 1.0:
                    await asyncio.sleep(1.0 - at)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    ready()
    async with server:
        await server.serve_forever()


def stall(seconds):
    port = free_port()
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {SERVER_CORE})
        asyncio.run(stalling_server(port, lambda: None))
        os._exit(0)
    try:
        wait_for(port)
        url = f"http://127.0.0.1:{port}/"
        rate = "executor: 'constant-arrival-rate', rate: 500, preAllocatedVUs: 10, maxVUs: 1000"
        options = f"scenarios: {{ a: {{ {rate}, duration: '{seconds}s' }} }}, summaryTrendStats: ['p(50)', 'p(90)', 'p(99)']"
        peers = present({
            "wrk2": ("wrk2", ["wrk2", "-t1", "-c10", "-R500", f"-d{seconds}s", "--latency", url]),
            "vegeta": ("vegeta", ["sh", "-c", f"echo GET {url} | vegeta attack -rate=500 -duration={seconds}s | vegeta report -type='hist[0,100ms,500ms,900ms,1s]'; echo"]),
            "vegeta (text)": ("vegeta", ["sh", "-c", f"echo GET {url} | vegeta attack -rate=500 -duration={seconds}s | vegeta report"]),
            "oha": ("oha", ["oha", "--no-tui", "-q", "500", "-c", "10", "-z", f"{seconds}s", url]),
            "oha corrected": ("oha", ["oha", "--no-tui", "--latency-correction", "-q", "500", "-c", "10", "-z", f"{seconds}s", url]),
            "hey": ("hey", ["hey", "-q", "50", "-c", "10", "-z", f"{seconds}s", url]),
            "k6": ("k6", k6(url, options)),
        })
        print("truth: p50 about 0, p90 500 ms, p99 950 ms")
        run = {"narrows": [str(NARROWS), "load", "-c", "10", "--rate", "500", "--max-connections", "1000", "-z", f"{seconds}s", url]}
        run.update({name: command for name, (_, command) in peers.items()})
        for name, command in run.items():
            output, _, _ = measure(command)
            lines = [line for line in output.splitlines() if re.search(r"(50|90|99)(\.0+)?\s?%|p\(?(50|90|99)|Latencies|rate", line)]
            print(f"--- {name}")
            print("\n".join(lines[:12]))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", choices=["closed", "open", "session", "memory", "stall"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=int, default=None, help="of each client in each round")
    arguments = parser.parse_args()
    if not NARROWS.exists():
        sys.exit(f"error: {NARROWS} is missing; run `cargo build --release` first")
    case, rounds = arguments.case, arguments.rounds
    if case == "closed":
        closed(rounds, arguments.seconds or 3)
    elif case == "open":
        open_loop(rounds, arguments.seconds or 5)
    elif case == "session":
        session(rounds, 100_000)
    elif case == "memory":
        memory()
    else:
        stall(arguments.seconds or 20)


if __name__ == "__main__":
    main()
