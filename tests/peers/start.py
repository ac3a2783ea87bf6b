#!/usr/bin/env python3
"""From process start to the first optimizer step, and what of it is reading the data.

usage: start.py PONS FILE.ini [SECTION.KEY=VALUE...] [--rounds N]

Prints the medians of N (5) rounds: until the first record, of which the step itself, reading and preprocessing
(pons bench --data), and what remains, which should be at most 0.3 s. The file cache is warm after the first round,
which does not count.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

a = argparse.ArgumentParser()
a.add_argument("pons")
a.add_argument("file")
a.add_argument("sets", nargs="*")
a.add_argument("--rounds", type=int, default=5)
a = a.parse_args()
sets = [word for s in a.sets for word in ("--set", s)]


def first_step(folder):
    """Seconds until the first record is there, and of the step."""
    begin = time.perf_counter()
    run = subprocess.Popen([a.pons, "train", a.file, "-q", *sets, "--set", "train.epochs=",
                            "--set", "train.steps=100000", "--set", f"experiment.output={folder}"])
    try:
        while run.poll() is None:
            for records in pathlib.Path(folder).glob("*/metrics.jsonl"):
                line = records.read_text().split("\n", 1)
                if len(line) == 2:
                    return time.perf_counter() - begin, json.loads(line[0])["seconds"]
            time.sleep(0.001)
    finally:
        run.kill()
        run.wait()
    raise SystemExit(f"pons train ended with {run.returncode}")


total, step, data = [], [], []
for n in range(a.rounds + 1):
    with tempfile.TemporaryDirectory() as folder:
        found = first_step(folder)
    told = json.loads(subprocess.run([a.pons, "bench", a.file, "--data", "--json", "--steps", "1", "--warm-up", "0", *sets],
                                     capture_output=True, check=True).stdout)
    if n > 0:
        total.append(found[0])
        step.append(found[1])
        data.append(told["cache"]["seconds"])
total, step, data = map(statistics.median, (total, step, data))
print(f"first step done after {total:.3f} s: the step {step:.3f} s, data {data:.3f} s, rest {total - step - data:.3f} s")
