#!/usr/bin/env python3
"""Which lines and bits of the RTL the sets of seeds.py pass.

    cover.py RUN [SEEDS]       RUN is what build.sh made with COVERAGE=1; SEEDS of each mode, by default 60

A line point is a branch, a case or a straight piece of code; a toggle point is one bit of one signal, which has to change.
Points that instances of a module share count once. Waived points stand in hw/lint/cover.txt. Fails below 98% of the lines
and 90% of the bits, and if a row of that file waives nothing.
"""
import fnmatch
import glob
import os
import re
import sys
import tempfile

import seeds

HERE = os.path.dirname(os.path.abspath(__file__))
RTL = os.path.join(HERE, "..", "rtl")
WAIVED = os.path.join(HERE, "..", "lint", "cover.txt")
# Sets of each mode for 60 seeds; all of the corners.
MODES = {"small": 60, "tags": 60, "bad": 60, "hostile": 60, "stops": 60, "large": 10, "long": 20, "corners": 40}
LEAST = {"line": 98.0, "toggle": 90.0}


def points(folder):
    """Passes of each point: kind, module, and for a line its number, for a bit its name."""
    passed = {}
    for path in glob.glob(f"{folder}/*.dat"):
        with open(path, errors="replace") as file:
            for row in file:
                if not row.startswith("C '"):
                    continue
                fields, _, times = row[3:].rpartition("' ")
                field = dict(f.split("\x02", 1) for f in fields.split("\x01") if "\x02" in f)
                module = os.path.basename(field["f"])[:-3]
                if field["page"].startswith("v_toggle"):
                    key = "toggle", module, field["o"]
                else:
                    key = "line", module, int(field["l"]), field["o"]
                passed[key] = passed.get(key, 0) + int(times)
    return passed


def named(key, texts):
    """How cover.txt calls a point."""
    if key[0] == "toggle":
        return f"toggle {key[1]} {key[2]}"
    if key[1] not in texts:
        with open(os.path.join(RTL, key[1] + ".sv")) as file:
            texts[key[1]] = file.read().splitlines()
    return f"line {key[1]} {key[3]} {' '.join(texts[key[1]][key[2] - 1].split())}"


def main(args):
    run, count = os.path.abspath(args[0]), int(args[1]) if len(args) > 1 else 60
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVER"] = folder
        for mode, sets in MODES.items():
            if seeds.main([run, "0", str(max(seeds.BATCH, sets * count // 60)), mode]):
                return 1
        passed = points(folder)
    with open(WAIVED) as file:
        rows = [row.rstrip("\n").split("  # ") for row in file if row.strip() and not row.startswith("#")]
    used, texts, missed = set(), {}, []
    total, hit, waived = {}, {}, {}
    for key, times in sorted(passed.items(), key=str):
        kind, name = key[0], named(key, texts)
        row = next((row[0] for row in rows if fnmatch.fnmatchcase(name, re.sub(r"\[", "[[]", row[0]))), None)
        if row and not times:
            used.add(row)
            waived[kind] = waived.get(kind, 0) + 1
            continue
        total[kind] = total.get(kind, 0) + 1
        hit[kind] = hit.get(kind, 0) + (times > 0)
        if not times:
            missed.append(name)
    for name in missed:
        print("missed:", name)
    wrong = 0
    for row in rows:
        if len(row) != 2:
            print("no reason:", row[0])
            wrong += 1
        elif row[0] not in used:
            print("waives nothing:", row[0])
            wrong += 1
    for kind, least in LEAST.items():
        share = 100 * hit[kind] / total[kind]
        wrong += share < least
        print(f"{kind}s: {hit[kind]} of {total[kind]} passed, {share:.2f}% (at least {least}%), {waived.get(kind, 0)} waived")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
