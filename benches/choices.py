#!/usr/bin/env python3
"""Measures choices inside the broker against each other: where a batch is flushed, how many worker threads there are.

    python3 benches/choices.py --binary target/release/hearth [--rounds 5] flush|workers

Each choice is a fresh broker with a hidden flag; choices take turns within a round (A B C A B C ...); medians of rounds.
Rows: flushed SET with 1 client, 50 clients, 50 clients pipeline 16; GET with 50 clients while 8 others SET without a pause
(its p99 tells whether reads wait behind flushes); GET with 50 clients and pipeline 16.
"""
import argparse
import csv
import io
import os
import shutil
import statistics
import subprocess
import tempfile

CHOICES = {
    "flush": [("on the worker", ["--flush-on", "worker"]), ("on a thread", ["--flush-on", "thread"]),
              ("on either", ["--flush-on", "either"])],
    "workers": [("1 worker", ["--workers", "1"]), ("2 workers", ["--workers", "2"])],
}
COMMON = ["-d", "100", "-r", "100000", "--csv"]
ROWS = [
    ("SET, 1 client", ["-t", "set", "-c", "1", "-n", "8000"], False),
    ("SET, 50 clients", ["-t", "set", "-c", "50", "-n", "60000"], False),
    ("SET, 50 clients, pipeline 16", ["-t", "set", "-c", "50", "-P", "16", "-n", "500000"], False),
    ("GET, 50 clients, beside 8 that SET", ["-t", "get", "-c", "50", "-n", "60000"], True),
    ("GET, 50 clients, pipeline 16", ["-t", "get", "-c", "50", "-P", "16", "-n", "800000"], False),
]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def bench(port, args):
    out = subprocess.run(["redis-benchmark", "-p", port, *COMMON, *args], check=True, capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if line.startswith('"')]
    row = list(csv.DictReader(io.StringIO("\n".join(lines))))[0]
    return float(row["rps"]), float(row["p99_latency_ms"])


def measure(binary, flags):
    """One fresh broker, every row: (requests a second, p99 ms, CPU microseconds a request)."""
    folder = tempfile.mkdtemp(prefix="hearth-choices-", dir=os.environ.get("CARGO_TARGET_DIR", "target"))
    broker = subprocess.Popen([binary, "--resp", "127.0.0.1:0", "--data-dir", os.path.join(folder, "data"), *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = broker.stdout.readline().split("127.0.0.1:")[1].split(",")[0]
        bench(port, ["-t", "set", "-c", "50", "-P", "16", "-n", "300000"])
        figures = []
        for _, args, beside in ROWS:
            writer = None
            if beside:
                writer = subprocess.Popen(["redis-benchmark", "-p", port, "-t", "set", "-c", "8", "-d", "100", "-r", "100000",
                                           "-n", "100000000", "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            before = cpu_seconds(broker.pid)
            rps, p99 = bench(port, args)
            used = cpu_seconds(broker.pid) - before
            if writer:
                writer.kill()
                writer.wait()
            figures.append((rps, p99, used * 1e6 / int(args[args.index("-n") + 1])))
        return figures
    finally:
        broker.terminate()
        broker.wait()
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=CHOICES)
    parser.add_argument("--binary", default="target/release/hearth")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    choices = CHOICES[options.what]
    rounds = [[measure(options.binary, flags) for _, flags in choices] for _ in range(options.rounds)]
    print("| work | " + " | ".join(f"{name}: requests/s, p99 ms, CPU µs" for name, _ in choices) + " |")
    print("|---|" + "---|" * len(choices))
    for row, (name, _, _) in enumerate(ROWS):
        cells = []
        for choice in range(len(choices)):
            rps, p99, cpu = (statistics.median(one[choice][row][k] for one in rounds) for k in range(3))
            ratio = statistics.median(one[choice][row][0] / one[0][row][0] for one in rounds)
            cells.append(f"{rps:,.0f} ({ratio:.2f}x), {p99:.2f}, {cpu:.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
