#!/usr/bin/env python3
"""Compares a unit with its twin over many seeds.

    seeds.py RUN FIRST COUNT [mode ...]      RUN is what build.sh made

Modes are those of twin.py (small, tags, large, long, bad, corners), and
    stops    each set is aborted or reset at some moment, and then runs whole
    hostile  anything lies in the input slot, and then a good set runs
    states   ten sets over and over; only the card's seed changes, and with it what registers hold before the reset

Memory and withheld cycles change with the seed. COVER=FOLDER in the environment keeps the points that a unit
built with COVERAGE=1 has passed.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

import twin

# Least and most cycles of an access, percent of cycles in which a port is withheld.
BUSES = [("1", "1", "0"), ("20", "60", "0"), ("1", "200", "25"), ("1", "20", "75"), ("50", "2000", "5"), ("1", "10", "99")]
BATCH = 10


class Batch:
    """Some sets that run one behind the other on one card."""

    def __init__(self, mode, base, seeds, ways, folder):
        self.mode, self.base, self.folder = mode, base, f"{folder}/{mode}-{base}"
        os.makedirs(self.folder, exist_ok=True)
        self.names, self.sets = [], []         # arguments; seed, and what has to come out
        for seed in seeds:
            if mode == "states":
                self.add(seed, "small", seed % BATCH, ways)
            elif mode == "hostile":
                self.add(seed, mode, seed, ways)
                self.add(seed, "small", seed, ways)
            elif mode == "stops":
                self.add(seed, "small", seed, ways)
            else:
                self.add(seed, mode, seed, ways)
        self.bus = BUSES[base // BATCH % len(BUSES)]
        if mode in ("long", "large", "corners") and self.bus[2] == "99":
            self.bus = ("1", "2000", "50")

    def add(self, seed, mode, of, ways):
        maker = twin.Maker(of, mode, ways)
        slot = maker.make()
        command = maker.command(slot)
        wanted = twin.Unit(slot, ways, command).run()
        if mode == "corners":
            corner = twin.CORNERS[of % len(twin.CORNERS)]
            code = corner.code if corner.ways <= ways else twin.HEADER
            assert wanted[-250] == code, f"{corner.name}: the twin has code {wanted[-250]}"
        n = len(self.sets)
        a = f"{self.folder}/{n}.in"
        with open(a, "wb") as file:
            file.write(slot)
        name = f"as:{command[0]}:{command[1]}:{a}"
        if self.mode == "stops":
            # At any moment, and most of them early or in the midst of the set.
            when = seed * 7919 % (40, 400, 4000)[seed % 3]
            self.names += [f"{('abort', 'reset')[seed // 3 % 2]}:{when}:{name}", f"{n}.stopped"]
        self.names += [("twice:" if seed % 4 == 0 else "") + name, f"{n}.out"]
        self.sets.append((seed, wanted))

    def judge(self, run, env=None, folder=None):
        """Runs the sets in a folder that has no output yet; what is wrong, and how often which code came."""
        folder = tempfile.mkdtemp(dir=folder or self.folder)
        env = dict(os.environ, **(env or {}))
        if "COVER" in env:
            env["COVER"] += f"/{self.mode}-{self.base}.dat"
        out = subprocess.run([run, str(self.base), *self.bus, *self.names], capture_output=True, text=True, env=env,
                             cwd=folder)
        wrong, codes = [], {}
        if out.returncode:
            wrong.append(f"{self.mode} {self.base}: {out.stdout.splitlines()[-1:]} {out.stderr[-300:]}")
        for n, (seed, wanted) in enumerate(self.sets):
            got = read(f"{folder}/{n}.out")
            difference = not got and "no output" or twin.compare(wanted, got) or (None if twin.f64_fits(got) else "the sum of the records")
            if difference and (got or not out.returncode):
                wrong.append(f"{self.mode} {seed}: {difference}")
            elif not difference:
                codes[wanted[-250]] = codes.get(wanted[-250], 0) + 1
            stopped = read(f"{folder}/{n}.stopped")
            if stopped and (stopped[-250] not in (0, 48) or not twin.f64_fits(stopped)):
                wrong.append(f"{self.mode} {seed}: an aborted set ends with code {stopped[-250]}")
        return wrong, codes


def read(path):
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


def ways_of(run):
    return int(re.search(r"n(\d+)w\d+", run).group(1))


def judged(args):
    run, *batch = args
    return Batch(*batch).judge(run)


def main(args):
    run, first, count = os.path.abspath(args[0]), int(args[1]), int(args[2])
    modes = args[3:] or ["small", "tags"]
    codes, failed = {}, 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ProcessPoolExecutor() as pool:
        jobs = [(run, mode, base, range(base, min(base + BATCH, first + count)), ways_of(run), folder)
                for mode in modes for base in range(first, first + count, BATCH)]
        for wrong, some in pool.map(judged, jobs):
            failed += len(wrong)
            for line in wrong[:10]:
                print(line, flush=True)
            for code, n in some.items():
                codes[code] = codes.get(code, 0) + n
            if failed > 10:
                print("too many failures")
                pool.shutdown(cancel_futures=True)
                return 1
    print(f"{sum(codes.values())} equal, {failed} not; by code {dict(sorted(codes.items()))}")
    return int(failed != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
