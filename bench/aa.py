#!/usr/bin/env python3
"""Measures how often Narrows reports a difference where there is none: pairs of trials of one system.

    cargo build --release
    bench/aa.py                     # 40 pairs; at most 2 of them may be reported as different
    bench/aa.py --pairs 10 --seconds 2 --narrows target/debug/narrows
    bench/aa.py --repeat 10                   # 40 comparisons by `narrows run --compare` of equal variants
    bench/aa.py --repeat 10 --slower 0.05     # the same of variants of which the second is 5 % slower
    bench/aa.py --repeat 5 --pairs 3 --of systems/micron/experiment.yaml:initial   # of a variant with its own copy

Each pair is a run of its own with two equal variants, each measured once: a small HTTP server in Python under four users
that send without a pause. The table shows how throughput and mean latency of the second variant relate to the first, and what
Narrows makes of it. Below stand the claims (pairs with a quantity called higher or lower) and the spread between
trials: the standard deviation of the logarithm of the ratios, divided by the square root of 2, because a ratio has the
noise of two trials. `trial_spread` is to be no smaller than that on a busy machine.

With `--repeat`, each pair is a comparison of at most so many pairs of trials, of a server that waits 10 ms before each response
and, in the second variant, longer by `--slower`. A comparison that cannot tell is made again with the number of trials it
suggests, up to `--most`. Equal variants may be called different in at most 2 of 40; ones that are 5 % apart are to be found in 36.
With `--of EXPERIMENT:VARIANT`, which may be repeated, each comparison is one of a variant of this experiment with itself.

A quiet machine says little here. Run it beside something that comes and goes, such as a build.
"""

import argparse
import collections
import contextlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from load import NARROWS

CLAIMS_MAX_SHARE = 0.05
EXPERIMENT = """
experiment: aa
parameters: {{ wait: "{wait}" }}
system:
  services:
    web:
      run: [python3, server.py, "${{port}}", "${{wait}}"]
      ready: "GET /"
load:
  target: web
  warmup: 1s
  scenarios:
    read: {{ model: constant-vus, vus: 4, duration: {seconds}s, request: "GET /" }}
variants:
  - {{ name: one }}
  - {{ name: other, from: one, wait: "{other_wait}" }}
"""
COMPARED_WAIT_S = 0.01
FOUND_MIN_SHARE = 0.9
SERVER = """
import http.server, sys, time

WAIT_S = float(sys.argv[2])

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        if WAIT_S > 0:
            time.sleep(WAIT_S)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def pair(narrows, experiment, folder):
    """The difference of the second variant to the first."""
    out = Path(folder) / "run.narrows"
    command = [narrows, "run", str(experiment), "--out", str(out), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.decode())
    out.unlink()
    return json.loads(done.stdout)["comparison"]["variants"][1]["against_first"]


@contextlib.contextmanager
def with_itself(experiment, variant):
    """A copy of an experiment beside it, with two more variants, both equal to this one."""
    text = experiment.read_text()
    block = re.search(r"^variants:\n(?:(?:[ #].*)?\n)*", text, re.MULTILINE)
    if not block:
        sys.exit(f"error: {experiment} has no list of variants\nhint: one line for each, below `variants:`")
    added = "".join(f"  - {{ name: {name}, from: {variant} }}\n" for name in ("one", "other"))
    copy = experiment.with_name(f".aa-{os.getpid()}.yaml")
    copy.write_text(text[: block.end()].rstrip() + "\n" + added + "\n" + text[block.end() :])
    try:
        yield copy
    finally:
        copy.unlink()


def compared(arguments, narrows, experiment, folder, repeat):
    """The verdict on the two variants, after as many trials as Narrows itself suggests."""
    out = Path(folder) / "run.narrows"
    command = [narrows, "run", str(experiment), "--compare", "one,other", "--out", str(out), "--json"]
    command += ["--repeat", str(repeat), "--time-scale", str(arguments.time_scale)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.decode())
    out.unlink()
    proof = json.loads(done.stdout)
    wanted = proof["repeats_wanted"]
    if wanted is not None and repeat < wanted <= arguments.most:
        return compared(arguments, narrows, experiment, folder, wanted)
    return proof


def comparisons(arguments, narrows, experiments, folder):
    """Counts the verdicts; whether they are as often right as stated."""
    verdicts = collections.Counter()
    print("| comparison | mean latency | interval | pairs | verdict |\n|---|---:|---|---:|---|")
    for name, opened in experiments:
        with opened as experiment:
            for number in range(1, arguments.pairs + 1):
                proof = compared(arguments, narrows, experiment, folder, arguments.repeat)
                change = next(one for one in proof["quantities"] if one["quantity"] == proof["by"])
                interval = f"{change['interval']['low']:+.1%} to {change['interval']['high']:+.1%}"
                verdict, pairs = proof["verdict"], proof["design"]["trials"][0]
                verdicts[verdict] += 1
                print(f"| {name} {number} | {change['ratio']:+.1%} | {interval} | {pairs} | {verdict} |", flush=True)
    print("\n" + ", ".join(f"{verdict}: {count}" for verdict, count in sorted(verdicts.items())))
    if arguments.slower > 0:
        return verdicts["slower"] >= FOUND_MIN_SHARE * verdicts.total()
    return verdicts["slower"] + verdicts["faster"] <= CLAIMS_MAX_SHARE * verdicts.total()


def spread(ratios):
    """The standard deviation of one trial's logarithm; the mean of the ratios is known to be 1."""
    return math.sqrt(sum(math.log(ratio) ** 2 for ratio in ratios) / len(ratios) / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--seconds", type=int, default=4, help="of each trial, after a second of warm-up")
    parser.add_argument("--repeat", type=int, help="pairs of trials of a comparison, at most")
    parser.add_argument("--most", type=int, default=100, help="pairs of trials that a comparison may suggest")
    parser.add_argument("--slower", type=float, default=0.0, help="of the second variant of a comparison, as a share")
    parser.add_argument("--of", action="append", metavar="EXPERIMENT:VARIANT", help="compare this variant with itself")
    parser.add_argument("--time-scale", type=float, default=1.0, help="of the durations in an experiment")
    parser.add_argument("--narrows", default=str(NARROWS))
    arguments = parser.parse_args()
    narrows = os.path.abspath(arguments.narrows)
    ratios = {"rate": [], "mean": []}
    claims = 0
    with tempfile.TemporaryDirectory() as folder:
        experiment = Path(folder) / "aa.yaml"
        wait = COMPARED_WAIT_S if arguments.repeat else 0
        waits = {"wait": wait, "other_wait": wait * (1 + arguments.slower)}
        experiment.write_text(EXPERIMENT.format(seconds=arguments.seconds, **waits))
        (Path(folder) / "server.py").write_text(SERVER)
        if arguments.of:
            named = [(Path(path), variant) for path, _, variant in (one.rpartition(":") for one in arguments.of)]
            experiments = [(f"{path.parent.name} {variant}", with_itself(path, variant)) for path, variant in named]
            sys.exit(not comparisons(arguments, narrows, experiments, folder))
        if arguments.repeat:
            experiments = [("", contextlib.nullcontext(experiment))]
            sys.exit(not comparisons(arguments, narrows, experiments, folder))
        print("| pair | throughput | 95 % interval | mean latency | 95 % interval | reported |\n|---:|---:|---|---:|---|---|")
        for number in range(1, arguments.pairs + 1):
            found = pair(narrows, experiment, folder)
            cells = []
            for quantity, values in ratios.items():
                change = found[quantity]
                values.append(1 + change["ratio"])
                cells += [f"{change['ratio']:+.1%}", f"{change['low']:+.0%} to {change['high']:+.0%}"]
            meanings = [found[quantity]["meaning"] for quantity in ratios]
            is_claim = any(meaning in ("higher", "lower") for meaning in meanings)
            claims += is_claim
            print(f"| {number} | {' | '.join(cells)} | {', '.join(meanings)} |", flush=True)
    print(f"\nclaims: {claims} of {arguments.pairs} pairs")
    for quantity, values in ratios.items():
        print(f"spread between trials, {quantity}: {spread(values):.3f}")
    sys.exit(claims > CLAIMS_MAX_SHARE * arguments.pairs)


if __name__ == "__main__":
    main()
