"""Log runs of pons to Weights & Biases, from their metrics.jsonl and resolved.ini: pip install wandb.

    python3 to_wandb.py [--project NAME] RUN...

Each number is logged as step/NAME or validation/NAME at its step. WANDB_MODE=offline writes wandb's own folder of
the run, which 'wandb sync' delivers later. Repeating it for a run makes another run in wandb.
"""
import argparse
import json
import os

import wandb


def read_settings(run):
    """Give the values of resolved.ini as {"section.key": text}."""
    settings, section = {}, ""
    with open(os.path.join(run, "resolved.ini"), encoding="utf-8") as file:
        for line in file:
            line = line.split(" ;")[0].strip()
            if line.startswith("["):
                section = line.strip("[]")
            elif " = " in line and not line.startswith(";"):
                key, value = line.split(" = ", 1)
                settings[f"{section}.{key}"] = value
    return settings


def read_numbers(record):
    """Give the numbers of a record as {"kind/name": number}; null is a number that is not finite."""
    numbers = {}
    for name, value in record.items():
        if name in ("kind", "step", "epoch"):
            continue
        for key, number in value.items() if isinstance(value, dict) else [("", value)]:
            if number is not None:
                numbers[f"{record['kind']}/{name}" + (f".{key}" if key else "")] = number
    return numbers


def log_run(run, project):
    """Log one run under the name of its folder."""
    name = os.path.basename(os.path.normpath(run))
    with wandb.init(project=project, name=name, config=read_settings(run)) as logged, \
            open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            logged.log(read_numbers(record), step=record["step"])


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", default="pons")
    parser.add_argument("run", nargs="+")
    given = parser.parse_args()
    for run in given.run:
        log_run(run, given.project)


if __name__ == "__main__":
    main()
