#!/usr/bin/env python3
"""Runs Redis' own tools against a broker and compares what they print with what they print against redis-server.

    run.py [--binary PATH]     starts PATH --memory on a free port; last line: "N passed, N failed"
    run.py --record            writes expected/*.txt anew from /usr/bin/redis-server
"""
import argparse
import difflib
import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 60


def cli(*words, stdin=None):
    return {"tool": "redis-cli", "words": list(words), "stdin": stdin}


def benchmark(*words):
    return {"tool": "redis-benchmark", "words": ["-n", "2000", *words]}


def pipe(commands, lines=False):
    if lines:
        return "".join(" ".join(c) + "\r\n" for c in commands).encode()
    out = b""
    for command in commands:
        out += b"*%d\r\n" % len(command)
        for word in command:
            word = word.encode()
            out += b"$%d\r\n%s\r\n" % (len(word), word)
    return out


MANY = [["SET", f"pipe:{i}", f"value {i}".replace(" ", "-")] for i in range(5000)]

# name -> what is run. A case with "compare": False is checked by its exit code and its lines alone.
CASES = {
    "one-shot-ping": cli("PING"),
    "one-shot-ping-message": cli("PING", "hello"),
    "one-shot-set": cli("SET", "cli:k", "v"),
    "one-shot-get": cli("GET", "cli:k"),
    "one-shot-get-nothing": cli("GET", "cli:nothing"),
    "one-shot-set-options": cli("SET", "cli:k", "w", "XX", "GET", "EX", "100"),
    "one-shot-exists-and-del": cli("EXISTS", "cli:k", "cli:k"),
    "one-shot-del": cli("DEL", "cli:k", "cli:nothing"),
    "one-shot-error": cli("GET"),
    "one-shot-unknown": cli("FOO", "a", "b"),
    "one-shot-config-get": cli("CONFIG", "GET", "maxmemory-policy"),
    "one-shot-lpush": cli("LPUSH", "l", "a"),
    "one-shot-binary": cli("--no-raw", "ECHO", "a\r\nb\x01é"),
    "one-shot-value-from-stdin": cli("-x", "SET", "cli:x", stdin=b"from stdin"),
    "one-shot-value-from-stdin-get": cli("GET", "cli:x"),
    "one-shot-repeated": cli("-r", "3", "PING"),
    "database-0": cli("-n", "0", "PING"),
    "database-1": cli("-n", "1", "PING"),
    "another-database-set": cli("-n", "9", "SET", "cli:only", "a value"),
    "another-database-scan": cli("-n", "9", "--scan", "--pattern", "cli:*"),
    "another-database-bigkeys": cli("-n", "9", "--bigkeys"),
    "stdin-transaction": cli(stdin=b"MULTI\nSET cli:t 1\nINCR cli:t\nFOO\nEXEC\nMULTI\nSET cli:t 5\nINCRBY cli:t 2\nGET cli:t\nEXEC\nWATCH cli:t\nSET cli:t 1\nMULTI\nGET cli:t\nEXEC\nEXPIRE cli:t 100\nTTL cli:t\nDEL cli:t\n"),
    "resp3-get-nothing": cli("-3", "--no-raw", "GET", "cli:nothing"),
    "resp3-config-get": cli("-3", "--no-raw", "CONFIG", "GET", "maxmemory-policy"),
    "resp3-set-get": cli("-3", "--no-raw", "SET", "cli:3", "v", "GET"),
    "stdin-commands": cli(stdin=b"SET cli:s 1\nGET cli:s\n\nGET\nFOO\nSET cli:s \"a b\"\nGET cli:s\nDEL cli:s\n"),
    "stdin-hello-3": cli("--no-raw", stdin=b"GET cli:nothing\nHELLO 3 FOO\nGET cli:nothing\n"),
    "pipe-arrays": cli("--pipe", stdin=pipe(MANY)),
    "pipe-inline": cli("--pipe", stdin=pipe(MANY, lines=True)),
    "pipe-with-an-error": cli("--pipe", stdin=pipe(MANY[:3]) + pipe([["FOO"]]) + pipe(MANY[:3])),
    "pipe-of-nothing": cli("--pipe", stdin=b""),
    "pipe-was-written": cli("GET", "pipe:4999"),
    "interactive": {"tool": "redis-cli", "words": [], "pty": ["SET cli:i hello", "GET cli:i", "GET cli:nothing", "quit"]},
    "benchmark": benchmark("-t", "ping,set,get"),
    "benchmark-pipelined": benchmark("-t", "ping,set,get", "-P", "16"),
    "benchmark-random-keys": benchmark("-t", "set,get", "-r", "1000", "-d", "100"),
    "benchmark-csv": benchmark("-t", "ping,set,get", "--csv"),
    "benchmark-quiet-resp3": benchmark("-t", "set,get", "-q", "-3"),
    "benchmark-incr-mset": benchmark("-t", "incr,mset", "-P", "4", "-r", "100"),
    "benchmark-one-client": benchmark("-t", "set", "-c", "1", "-n", "200"),
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_redis():
    port = free_port()
    words = ["/usr/bin/redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tempfile.gettempdir())
    for line in server.stdout:
        if "Ready to accept connections" in line:
            return server, port
    raise SystemExit("redis-server did not start")


def start_hearth(binary):
    words = [binary, "--memory", "--resp", "127.0.0.1:0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    line = server.stdout.readline()
    found = re.search(r"RESP on 127\.0\.0\.1:(\d+),", line)
    if not found:
        raise SystemExit(f"{binary} printed no start line: {line!r}")
    return server, int(found[1])


def run_in_terminal(words, lines):
    """Types each line at the prompt, and gives what a terminal would show, without its control sequences."""
    home = tempfile.mkdtemp()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", HOME=home)
        os.execvp(words[0], words)
    shown = b""

    def read_until(wanted):
        nonlocal shown
        while wanted is None or not shown.endswith(wanted):
            ready, _, _ = select.select([terminal], [], [], PATIENCE)
            if not ready:
                return False
            try:
                part = os.read(terminal, 4096)
            except OSError:
                part = b""
            if not part:
                return wanted is None
            shown += part
        return True

    prompted = all(read_until(b"> ") and os.write(terminal, line.encode() + b"\n") for line in lines)
    if prompted:
        read_until(None)
    else:
        os.kill(child, 9)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    shutil.rmtree(home)
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n").replace("\r", "\n")
    return os.waitstatus_to_exitcode(status) if prompted else "no prompt", text, ""


def run(case, port):
    """What the tool did: exit code, output, errors."""
    if shutil.which(case["tool"]) is None:
        return "client missing", "", f"{case['tool']} is not installed"
    words = [case["tool"], "-h", "127.0.0.1", "-p", str(port), *case["words"]]
    if "pty" in case:
        return run_in_terminal(words, case["pty"])
    try:
        stdin = {"stdin": subprocess.DEVNULL} if case.get("stdin") is None else {"input": case["stdin"]}
        done = subprocess.run(words, capture_output=True, timeout=PATIENCE, **stdin)
    except subprocess.TimeoutExpired:
        return "timed out", "", ""
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def fit_to_compare(case, result, port):
    code, out, err = result
    text = f"exit {code}\n{out}" + (f"errors:\n{err}" if err else "")
    text = text.replace(f":{port}", ":PORT")
    if case["tool"] == "redis-benchmark":
        # Figures differ from run to run: progress lines go, numbers become #.
        text = re.sub(r"[^\n]*\r", "", text)
        text = re.sub(r"\d+(\.\d+)?", "#", text.replace("exit 0", "exit zero"))
        if "-q" not in case["words"] and "--csv" not in case["words"]:
            # Percentiles are as many as were measured: only the headings are compared.
            text = "".join(line for line in text.splitlines(True) if not re.match(r"^\s*#[.#]*%", line))
        text = re.sub(r" {2,}", " ", text)
    return text


def problems_of_benchmark(case, result):
    code, out, err = result
    if case["tool"] != "redis-benchmark":
        return []
    problems = [] if code == 0 else [f"exit code {code}"]
    bad = [line for line in (out + err).splitlines() if re.search(r"error|warning|fail", line, re.IGNORECASE)]
    return problems + [f"it says: {line}" for line in bad]


def differences():
    """Name -> (reason, what Hearth prints instead), from differences.txt."""
    found = {}
    for block in (HERE / "differences.txt").read_text().split("\n== ")[1:]:
        head, _, body = block.partition("\n")
        name, _, reason = head.partition(": ")
        assert reason, f"differences.txt gives no reason for {name}"
        found[name] = (reason, body.rstrip("\n") + "\n")
    return found


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--binary", default="target/release/hearth")
    arguments.add_argument("--record", action="store_true")
    asked = arguments.parse_args()
    server, port = start_redis() if asked.record else start_hearth(asked.binary)
    passed, failed = 0, 0
    try:
        known = differences()
        unknown_names = sorted(set(known) - set(CASES))
        assert not unknown_names, f"differences.txt names cases that there are not: {unknown_names}"
        for name, case in CASES.items():
            result = run(case, port)
            text = fit_to_compare(case, result, port)
            expected_file = HERE / "expected" / f"{name}.txt"
            problems = problems_of_benchmark(case, result)
            if asked.record:
                expected_file.write_text(text)
            elif not expected_file.exists():
                problems.append("nothing is recorded: run with --record")
            else:
                recorded = expected_file.read_text()
                expected = known[name][1] if name in known else recorded
                if name in known and expected == recorded:
                    problems.append("differences.txt lists it, and it does not differ")
                if text.rstrip("\n") != expected.rstrip("\n"):
                    problems += difflib.unified_diff(expected.splitlines(), text.splitlines(), "expected", "got", lineterm="")
            if problems:
                failed += 1
                print(f"FAILED {name}", *problems, sep="\n    ")
            else:
                passed += 1
                print(f"passed {name}" + (f" (differs: {known[name][0]})" if name in known else ""))
    finally:
        server.kill()
        server.wait()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
