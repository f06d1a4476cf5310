#!/usr/bin/env python3
"""A storm of overwrites without a gap, and what the disk, the writers and a restart make of it.

    python3 benches/storm.py --binary target/release/hearth [--seconds 600] [--keys 300000] [--value 1000]
                             [--fsync always] [--clients 50] [--pipeline 16] [--flags "--no-compaction"]

Loads every key once, then overwrites keys at random for the given time. Once a second it reads INFO and the size of the
directory. Prints, as one table: SETs a second, p50/p99/max of the replies (redis-benchmark's, median of its runs of five
seconds and the worst), the largest size on disk as a multiple of the live bytes, write amplification (bytes appended by all for each
byte appended by clients), passes, bytes carried and trimmed; then kills the broker and times the next start.
"""
import argparse
import csv
import io
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

RUN_SECONDS = 5


def start(binary, data, flags):
    begun = time.monotonic()
    broker = subprocess.Popen([binary, "--resp", "127.0.0.1:0", "--data-dir", data, *flags], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    port = broker.stdout.readline().split("127.0.0.1:")[1].split(",")[0]
    return broker, port, time.monotonic() - begun


def info(port):
    out = subprocess.run(["redis-cli", "-p", port, "info", "everything"], check=True, capture_output=True, text=True).stdout
    return dict(line.split(":", 1) for line in out.splitlines() if ":" in line)


def on_disk(folder):
    """Bytes allocated, as du counts them."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(base, name)).st_blocks * 512
            except FileNotFoundError:
                pass
    return total


def bench(port, options, requests):
    args = ["redis-benchmark", "-p", port, "-t", "set", "-c", str(options.clients), "-P", str(options.pipeline), "-d", str(options.value),
            "-r", str(options.keys), "-n", str(requests), "--csv"]
    out = subprocess.run(args, check=True, capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if line.startswith('"')]
    row = list(csv.DictReader(io.StringIO("\n".join(lines))))[0]
    return {name: float(row[name]) for name in ("rps", "p50_latency_ms", "p99_latency_ms", "max_latency_ms")}


def load_all(port, options):
    """Every key once, over one socket in large pieces: redis-benchmark's random keys would leave a third out."""
    value, expected, seen = b"x" * options.value, 5 * options.keys, 0
    with socket.create_connection(("127.0.0.1", int(port))) as client:
        def send():
            piece = []
            for number in range(options.keys):
                key = b"key:%012d" % number
                piece.append(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (len(key), key, len(value), value))
                if len(piece) * options.value > 1_000_000 or number + 1 == options.keys:
                    client.sendall(b"".join(piece))
                    piece.clear()

        sender = threading.Thread(target=send)
        sender.start()
        while seen < expected:
            replies = client.recv(1 << 16)
            if not replies or b"-" in replies:
                sys.exit(f"loading failed: {replies[:200]}")
            seen += len(replies)
        sender.join()


def watch(port, data, samples, stop):
    while not stop.wait(1.0):
        facts = info(port)
        samples.append((on_disk(data), int(facts["hearth_live_bytes"]), int(facts["hearth_log_bytes"]),
                        int(facts["used_memory_rss"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--keys", type=int, default=300_000)
    parser.add_argument("--value", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--pipeline", type=int, default=16)
    parser.add_argument("--fsync", default="always")
    parser.add_argument("--flags", default="")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="hearth-storm-", dir=os.environ.get("CARGO_TARGET_DIR", "target"))
    data, flags = os.path.join(folder, "data"), ["--fsync", options.fsync, *options.flags.split()]
    broker, port, _ = start(options.binary, data, flags)
    try:
        load_all(port, options)
        before, samples, stop, runs = info(port), [], threading.Event(), []
        sampler = threading.Thread(target=watch, args=(port, data, samples, stop))
        sampler.start()
        requests, ends = 20_000, time.monotonic() + options.seconds
        while time.monotonic() < ends:
            run = bench(port, options, requests)
            runs.append(run)
            requests = max(1000, int(run["rps"] * RUN_SECONDS))
        stop.set()
        sampler.join()
        after = info(port)
        runs = runs[1:] or runs
        moved = {name: int(after[name]) - int(before[name])
                 for name in ("hearth_batch_bytes", "hearth_carried_bytes", "hearth_compaction_passes", "hearth_trimmed_bytes")}
        own = moved["hearth_batch_bytes"] - moved["hearth_carried_bytes"]
        ratios = [disk / max(live, 1) for disk, live, _, _ in samples]
        print(f"SET/s                 {statistics.median(run['rps'] for run in runs):,.0f}")
        for name in ("p50", "p99", "max"):
            values = [run[f"{name}_latency_ms"] for run in runs]
            print(f"{name} ms                {statistics.median(values):.3f} (worst run {max(values):.3f})")
        print(f"live bytes            {samples[-1][1]:,}")
        print(f"disk / live           median {statistics.median(ratios):.3f}, largest {max(ratios):.3f}")
        print(f"log / live            largest {max(log / max(live, 1) for _, live, log, _ in samples):.3f}")
        print(f"write amplification   {moved['hearth_batch_bytes'] / max(own, 1):.3f}")
        print(f"passes                {moved['hearth_compaction_passes']:,}; carried {moved['hearth_carried_bytes']:,} B, "
              f"trimmed {moved['hearth_trimmed_bytes']:,} B, appended {moved['hearth_batch_bytes']:,} B")
        print(f"resident memory       largest {max(rss for *_, rss in samples):,}")
        broker.send_signal(signal.SIGKILL)
        broker.wait()
        broker, port, seconds = start(options.binary, data, flags)
        records = int(info(port)["hearth_next_offset"]) - int(info(port)["hearth_base_offset"])
        print(f"start after the kill  {seconds:.2f} s for {on_disk(data):,} B on disk, {records:,} records, "
              f"{subprocess.run(['redis-cli', '-p', port, 'dbsize'], capture_output=True, text=True).stdout.strip()} keys")
    finally:
        broker.kill()
        broker.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
