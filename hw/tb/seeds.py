#!/usr/bin/env python3
"""Compares a unit with its twin over many seeds.

    seeds.py RUN FIRST COUNT [mode ...]      RUN is what build.sh made

Modes are those of twin.py: small, tags, large, long, bad; and stops, in which each set is aborted or reset first. Memory and withheld
cycles change with the seed.
"""
import os
import re
import subprocess
import sys
import tempfile

import twin


def main(args):
    run, first, count = args[0], int(args[1]), int(args[2])
    modes = args[3:] or ["small", "tags"]
    ways = int(re.search(r"n(\d+)w\d+", run).group(1))
    codes, failed, cycles = {}, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for mode in modes:
            batch = 10
            for base in range(first, first + count, batch):
                seeds = range(base, min(base + batch, first + count))
                pairs, wanted = [], []
                for seed in seeds:
                    a, b = f"{folder}/{seed}.in", f"{folder}/{seed}.out"
                    slot = twin.Maker(seed, "small" if mode == "stops" else mode, ways).make()
                    open(a, "wb").write(slot)
                    wanted.append(twin.Unit(slot, ways).run())
                    if mode == "stops":
                        # At any moment, and most of them early or in the midst of the set.
                        when = seed * 7919 % (40, 400, 4000)[seed % 3]
                        pairs += [f"{('abort', 'reset')[seed // 3 % 2]}:{when}:{a}", f"{folder}/stopped"]
                    pairs += [("twice:" if seed % 4 == 0 else "") + a, b]
                bus = [("1", "1", "0"), ("20", "60", "0"), ("1", "200", "25"), ("1", "20", "75"),
                       ("50", "2000", "5"), ("1", "10", "97")][base // batch % 6]
                stopped = f"{folder}/stopped"
                out = subprocess.run([run, str(base), *bus, *pairs], capture_output=True, text=True)
                for i, seed in enumerate(seeds):
                    path = f"{folder}/{seed}.out"
                    got = open(path, "rb").read() if os.path.exists(path) else b""
                    difference = twin.compare(wanted[i], got) or (
                        None if twin.f64_fits(got) else "the sum of the records")
                    if difference and out.returncode == 0 or difference and got:
                        failed += 1
                        print(f"{mode} {seed}: {difference}", flush=True)
                    if not difference:
                        code = wanted[i][-250]
                        codes[code] = codes.get(code, 0) + 1
                if mode == "stops" and os.path.exists(stopped):
                    slot = open(stopped, "rb").read()
                    code = slot[-250]
                    if code not in (0, 48) or not twin.f64_fits(slot):
                        failed += 1
                        print(f"{mode} {base}: an aborted set ends with code {code}")
                    codes[code] = codes.get(code, 0) + 1
                if out.returncode:
                    failed += 1
                    print(f"{mode} {base}: {out.stdout.splitlines()[-1:]} {out.stderr[-300:]}", flush=True)
                if failed > 10:
                    print("too many failures")
                    return 1
    print(f"{sum(codes.values())} equal, {failed} not; by code {dict(sorted(codes.items()))}")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
