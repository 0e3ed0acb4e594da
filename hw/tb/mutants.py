#!/usr/bin/env python3
"""Plants bugs in copies of the RTL, one at a time, and checks that seeds.py finds each.

    mutants.py [name ...]       without names, all; builds n4w16 for each, about half a minute

A mutant whose text is not found, or whose binary is not built, is an error, not a find. One changes nothing and must survive.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "target", "fpga")
# Name, file, before, after.
MUTANTS = [
    ("no-op", "plan", "begun <= 1'b1;", "begun <= !begun || begun;"),
    ("prefix-tag", "prefix", "least = ilen < before_len ? ilen : before_len;",
     "least = (ilen < before_len ? ilen : before_len) - 8'd8;"),
    ("prefix-order", "prefix", "for (i = W - 1; i >= 0; i = i - 1)", "for (i = 0; i < W; i = i + 1)"),
    ("tie-to-b", "node", "a_wins = 1'b1;", "a_wins = 1'b0;"),
    ("no-rewind", "node", "assign b_from = b_again ? b_sp : b_rp;", "assign b_from = b_rp;"),
    ("stripe-equal", "gc", "< {8'd0, s1_tag[63:8]}", "<= {8'd0, s1_tag[63:8]}"),
    ("hides-over-marker", "gc", "before_counts <= is_data;", "before_counts <= 1'b1;"),
    ("held-not-released", "gc", "assign releases = held_any && ", "assign releases = 1'b0 && "),
    ("zero-unfree", "gc", "assign zeroes = is_value && !hides && frees", "assign zeroes = is_value && !hides"),
    ("split-kept", "gc", "if (op_valid && op_ready && op.keep) split <= 1'b0;", ""),
    ("cell-at-equal", "plan", "left_cell <= (grown & ~cell_mask) != '0;", "left_cell <= grown > cell_mask + 29'd1;"),
    ("restart-late", "plan", "since == interval", "since == interval + 16'd1"),
    ("skip-one", "decoder", "assign taken = done >= cur.skip;", "assign taken = done > cur.skip || cur.skip == '0;"),
    ("varint-three", "decoder", "h_vlen[20:14] = vb[22:16];", "h_vlen[19:14] = vb[21:16];"),
    ("bank-wrap", "decoder", "k_at[7:LW] : k_at[7:LW] + 1'b1;", "k_at[7:LW] : k_at[7:LW];"),
    ("pad-not-zero", "gear", "grown = sub == '0 ? '0 : part;", "grown = part;"),
    ("line-of-4k", "store", "if (to_line < want) want = to_line;", ""),
    ("early-status", "store", "TOLD: if (told_valid && at_rest && !rec_valid)", "TOLD: if (told_valid)"),
    ("hash-tail", "hasher", "k == k_last ? n - 8'd16", "k == k_last ? n - 8'd17"),
    ("weight-lane", "weigh_cell", "lane[2] <= seed ^ K1;", "lane[2] <= seed ^ K0;"),
    ("sum-of-held", "weigh_group", "if (note.drop_held || note.free_held) waiting_then = '0;",
     "if (note.drop_held) waiting_then = '0;"),
    ("area-sum", "fetch_way", "expected != {sum_b, sum_a}", "expected[63:0] != sum_a"),
    ("ring-overrun", "gc", "assign slot_free = slot != oldest;", "assign slot_free = 1'b1;"),
]
SURVIVE = {"no-op"}


def main(names):
    wrong = 0
    for name, module, before, after in MUTANTS:
        if names and name not in names:
            continue
        os.makedirs(OUT, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OUT) as folder:
            shutil.copytree(os.path.join(HERE, "..", "rtl"), folder + "/rtl")
            shutil.copytree(HERE, folder + "/tb")
            path = f"{folder}/rtl/{module}.sv"
            text = open(path).read()
            if before not in text:
                print(f"{name}: its text is gone from {module}.sv")
                wrong += 1
                continue
            open(path, "w").write(text.replace(before, after))
            built = subprocess.run([folder + "/tb/build.sh", "16", "4", folder + "/out"],
                                   capture_output=True, env={**os.environ, "OPT": "-O0"})
            run = folder + "/out/n4w16/run"
            if built.returncode or not os.path.exists(run):
                print(f"{name}: not built\n{built.stderr.decode()[-500:]}")
                wrong += 1
                continue
            told = subprocess.run([sys.executable, folder + "/tb/seeds.py", run, "0", "40", "small", "tags", "bad"],
                                  capture_output=True, text=True)
            found = told.returncode != 0
            first = told.stdout.splitlines()[0] if told.stdout else ""
            ok = found != (name in SURVIVE)
            wrong += not ok
            print(f"{name}: {'found' if found else 'survives'}{'' if ok else ', WRONG'}; {first[:90]}", flush=True)
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
