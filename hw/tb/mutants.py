#!/usr/bin/env python3
"""Plants bugs in a copy of the RTL, and checks that seeds find each.

    mutants.py [name ...]       without names, all

All bugs are in one program: where BUG stands below, the copy asks for the number of the bug that this run has. So one
build serves all of them, a bug that does not compile stops everything, and with number 0 the program has none and has
to be equal to the twin. A bug whose text is not found is an error. One changes nothing and has to survive.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile

import seeds

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "target", "fpga", "mutants")
SEEDS = 40
MODES = ("small", "tags", "bad", "corners")
WAYS = 2
# Name, file, before, after.
MUTANTS = [
    ("no-op", "plan", "begun <= 1'b1;", "begun <= BUG ? !begun || begun : 1'b1;"),
    ("prefix-tag", "prefix", "least = ilen < before_len ? ilen : before_len;",
     "least = (ilen < before_len ? ilen : before_len) - (BUG ? 8'd8 : 8'd0);"),
    ("prefix-order", "prefix", "if (!s2_same[i]) run = (LW+1)'(i);",
     "if (!s2_same[i] && !(BUG && run != (LW+1)'(W))) run = (LW+1)'(i);"),
    ("tie-to-b", "node", "a_wins = 1'b1;", "a_wins = !BUG;"),
    ("no-rewind", "node", "assign b_from = b_again ? b_sp : b_rp;", "assign b_from = b_again && !BUG ? b_sp : b_rp;"),
    ("stripe-equal", "gc", "< {8'd0, s1_tag[63:8]}", "< {8'd0, s1_tag[63:8]} + 64'(BUG)"),
    ("hides-over-marker", "gc", "before_counts <= is_data;", "before_counts <= is_data || BUG;"),
    ("held-not-released", "gc", "assign releases = held_any && ", "assign releases = !BUG && held_any && "),
    ("zero-unfree", "gc", "assign zeroes = is_value && !hides && frees", "assign zeroes = is_value && !hides && (frees || BUG)"),
    ("split-kept", "gc", "if (op_valid && op_ready && op.keep) split", "if (op_valid && op_ready && op.keep && !BUG) split"),
    ("cell-at-equal", "plan", "left_cell <= (grown & ~cell_mask) != '0;",
     "left_cell <= BUG ? grown > cell_mask + 29'd1 : (grown & ~cell_mask) != '0;"),
    ("restart-late", "plan", "since == interval", "since == interval + 16'(BUG)"),
    ("skip-one", "decoder", "assign taken = done >= cur.skip;",
     "assign taken = BUG ? done > cur.skip || cur.skip == '0 : done >= cur.skip;"),
    ("varint-three", "decoder", "h_vlen[20:14] = vb[22:16];", "h_vlen[20:14] = {vb[22] && !BUG, vb[21:16]};"),
    ("next-row", "decoder", "k_at <= {k_at[7:LW] + 1'b1, LW'(0)};", "k_at <= {k_at[7:LW] + (8-LW)'(!BUG), LW'(0)};"),
    ("tag-straddles", "decoder", "assign straddles = ", "assign straddles = !BUG && "),
    ("pad-not-zero", "gear", "grown = sub == '0 ? '0 : part;", "grown = sub == '0 && !BUG ? '0 : part;"),
    ("line-of-4k", "store", "if (to_line < want) want = to_line;", "if (to_line < want && !BUG) want = to_line;"),
    ("less-than-no-room", "store", "assign no_room = room[26] || room == '0;",
     "assign no_room = (room[26] && !BUG) || room == '0;"),
    ("early-status", "store", "TOLD: if (told_valid && at_rest && !rec_valid)",
     "TOLD: if (told_valid && (BUG ? rec_free : at_rest && !rec_valid))"),
    ("hash-tail", "hasher", "k == k_last ? n - 8'd16", "k == k_last ? n - 8'd16 - 8'(BUG)"),
    ("weight-lane", "weigh_engine", "(m_lane[1] ? K1 : 64'd0)", "(m_lane[1] ? (BUG ? K0 : K1) : 64'd0)"),
    ("sum-of-held", "weigher", "if (n_drop) sum_dropped", "if (n_drop && !BUG) sum_dropped"),
    ("area-sum", "fetch", "due_sum != {sum_b, sum_a}", "(BUG ? due_sum[63:0] != sum_a : due_sum != {sum_b, sum_a})"),
    ("ring-overrun", "gc", "assign slot_free = slot != oldest;", "assign slot_free = BUG || slot != oldest;"),
]
SURVIVE = {"no-op"}


def plant(folder):
    """A copy of the RTL with every bug in it."""
    rtl = f"{folder}/rtl"
    shutil.copytree(os.path.join(HERE, "..", "rtl"), rtl)

    def change(module, before, after):
        with open(f"{rtl}/{module}.sv") as file:
            text = file.read()
        if before not in text:
            sys.exit(f"the text `{before}` is gone from {module}.sv")
        with open(f"{rtl}/{module}.sv", "w") as file:
            file.write(text.replace(before, after))

    for number, (_, module, before, after) in enumerate(MUTANTS, 1):
        change(module, before, after.replace("BUG", f"(bugs::which == {number})"))
    change("top", "  genvar u;", "  initial bugs::which = bugs::planted();\n  genvar u;")
    with open(f"{rtl}/pkg.sv", "a") as file:
        file.write('package bugs;\n  int which;\n  import "DPI-C" function int planted();\nendpackage\n')
    return rtl


def main(names):
    os.makedirs(OUT, exist_ok=True)
    run = f"{OUT}/n{WAYS}w16/run"
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        if os.path.exists(run):
            os.remove(run)
        env = dict(os.environ, RTL=plant(folder), EXTRA=f"{HERE}/planted.cpp", OPT="-O1")
        built = subprocess.run([f"{HERE}/build.sh", "16", str(WAYS), OUT], capture_output=True, text=True, env=env)
        if built.returncode or not os.path.exists(run):
            sys.exit(f"not built\n{built.stderr[-1500:]}")
        # The same sets for all: of each mode some seeds, then of each the next ones.
        batches = [seeds.Batch(mode, base, range(base, base + seeds.BATCH), WAYS, folder)
                   for base in range(0, SEEDS, seeds.BATCH) for mode in MODES]

        def judge(job):
            number, name = job
            with tempfile.TemporaryDirectory(dir=folder) as mine:
                for batch in batches:
                    wrong, _ = batch.judge(run, {"BUG": str(number)}, mine)
                    if wrong:
                        return name, wrong[0]
            return name, None

        jobs = [(0, "none")] + [(n, m[0]) for n, m in enumerate(MUTANTS, 1) if not names or m[0] in names]
        bad = found = 0
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for name, first in pool.map(judge, jobs):
                right = (first is None) == (name in SURVIVE or name == "none")
                bad += not right
                found += first is not None
                print(f"{name}: {'found; ' + first[:90] if first else 'survives'}{'' if right else ', WRONG'}", flush=True)
    print(f"{found} of {sum(name not in SURVIVE for _, name in jobs) - 1} bugs found, {bad} wrong")
    return int(bad != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
