#!/usr/bin/env python3
"""Proves properties of modules with Yosys and its provers, and that each property can fail.

    prove.py [--quick] [--only-proofs] [name ...]

The properties of a module stand in a file of its name beside this one. They are put in front of the module's last line, so
they see its ports; inputs about which nothing is assumed are free. A proof holds for ever (PDR of yosys-abc), or for so
many cycles behind the reset (bounded model checking).

Each property has a bug that makes it fail: a piece of the module's text is replaced, and that property, looked at alone,
has to fail. Without that a property might say nothing. `--quick` takes the proofs that run before every merge, without
their bugs.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RTL = os.path.join(HERE, "..", "rtl")
OUT = os.path.join(HERE, "..", "..", "target", "fpga", "formal")
# Seconds for one question.
LIMIT = 90


class Proof:
    """`steps`: cycles of the bounded proof; `ever`: it is proven without a bound; `quick`: cycles before every merge, 0
    for no bound, None if it does not run then; `shrink`: texts replaced in modules to make them
    smaller (module, before, after); `free`: modules inside of which only the ports are kept, so that their outputs do
    anything in any cycle; `apart`: properties are proven one by one, which is quicker where they have little in common;
    `others`: cycles of some of these, if not `steps`."""

    def __init__(self, name, module, parameters, steps, bugs, parts=(), ever=True, quick=None, shrink=(), free=(), apart=False,
                 others=()):
        self.name, self.module, self.parameters, self.steps = name, module, parameters, steps
        self.bugs, self.parts, self.ever, self.quick, self.shrink = bugs, parts, ever, quick, shrink
        self.free, self.apart, self.others = free, apart, dict(others)

    def cycles(self, label):
        return self.others.get(label, self.steps)


# A bug: the property that it breaks, the text before and after.
PROOFS = [
    Proof("fifo-lut", "fifo", "WIDTH=1 LG=2", 12, quick=0, bugs=[
        ("counted", "stored <= stored + (LG+1)'(put) - (LG+1)'(get);",
         "stored <= stored + (LG+1)'(put) - (LG+1)'(get && !put);"),
        ("filled", "assign out_valid = stored != '0;", "assign out_valid = 1'b1;"),
        ("ordered", "assign out_word = mem[rp];", "assign out_word = mem[rp | wp];"),
        ("accepts", "stored != (LG+1)'(DEPTH);", "stored < (LG+1)'(DEPTH - 1);"),
        ("shows", "assign out_valid = stored != '0;", "assign out_valid = stored > (LG+1)'(1);"),
    ]),
    Proof("fifo-block", "fifo", "WIDTH=1 LG=2 BLOCK=1", 12, quick=0, bugs=[
        ("ordered", "assign get = stored != '0 && (!shown || out_ready);",
         "assign get = stored != '0 && (!shown || out_ready || put);"),
        ("ordered", "if (get) out_word <= mem[rp];", "out_word <= mem[rp];"),
        ("counted", "else if (out_ready) shown <= 1'b0;", "else if (out_ready && stored != '0) shown <= 1'b0;"),
    ]),
    Proof("skid", "skid", "WIDTH=1", 14, quick=0, bugs=[
        ("two", "assign in_ready = !spare_valid;", "assign in_ready = 1'b1;"),
        ("shows", "out_valid <= spare_valid || in_valid;", "out_valid <= in_valid;"),
        ("accepts", "assign in_ready = !spare_valid;", "assign in_ready = !spare_valid && !out_valid;"),
        ("stays", "if (!out_valid || out_ready) out_word <=", "out_word <="),
        ("ordered", "out_word <= spare_valid ? spare : in_word;", "out_word <= in_word;"),
    ]),
    Proof("packer", "packer", "W=4", 10, ever=False, bugs=[
        ("in_place", "assign turn = piece_from - fill;", "assign turn = piece_from;"),
        ("zeros", "part <= at_once ? '0 : behind[LW] ? next : now;", "part <= behind[LW] ? next : now;"),
        ("to_the_end", "behind <= (LW+1)'(W);", "behind <= (LW+1)'(W + 1);"),
        ("told", "if (take) out_block <= piece_block;", "if (take && !piece_end) out_block <= piece_block;"),
        ("not_empty", "out_some <= ending ? fill != '0 : !at_once || behind != '0;", "out_some <= fill != '0;"),
        ("stays", "assign free = !out_valid || out_ready;", "assign free = !out_valid || out_ready || piece_end;"),
        ("shows", "ending <= piece_end && !at_once;", "ending <= 1'b0;"),
        ("accepts", "assign piece_ready = free && !ending;", "assign piece_ready = out_valid && out_ready && !ending;"),
    ]),
    Proof("node", "node", "W=1 LG=2", 14, ever=False, apart=True, others={"moves": 20}, shrink=[
        ("node", "1 + 8*W + CW + 64 + ", "1 + W + CW + 1 + "), ("node", "LOW+64", "LOW+1"), ("node", "pkg::VLEN + 5", "2"),
        ("node", "(CMP + 31) / 32", "(CMP + 2) / 3"), ("node", "32*GROUPS", "3*GROUPS"), ("node", "32*i +: 32", "3*i +: 3"),
    ], bugs=[
        ("ordered", "same[i] <= a_cmp[32*i +: 32] == b_cmp[32*i +: 32];",
         "same[i] <= i == 0 || a_cmp[32*i +: 32] == b_cmp[32*i +: 32];"),
        ("ties", "a_wins = 1'b1;", "a_wins = 1'b0;"),
        ("came", "assign b_load = (!b_shown || b_next || b_again) && b_from != b_wp;",
         "assign b_load = (!b_shown || b_next || b_again);"),
        ("whole", "assign a_from = a_again ? a_sp : a_rp;", "assign a_from = a_rp;"),
        ("whole", "if (b_done) b_sp <= b_rp;", "if (b_done && !b_load) b_sp <= b_rp;"),
        ("whole", "b_ready = b_wp - b_sp != (LG+1)'(DEPTH)", "b_ready = b_wp - b_rp != (LG+1)'(DEPTH)"),
        ("over", "if (!same[i]) a_wins = less[i];", "if (!same[i] && i == 0) a_wins = less[i];"),
        ("stays", "assign free = !out_valid || out_ready;", "assign free = 1'b1;"),
        ("moves", "PASS_B: if (b_done) mode <= MATCH;", "PASS_B: if (b_done) mode <= OVER;"),
    ]),
    Proof("fetch_way", "fetch_way", "", 24, ever=False, apart=True, others={"fits": 36}, parts=("fifo",), shrink=[
        ("fetch_way", "localparam int LG = 6;", "localparam int LG = 2;"),
        ("fetch_way", "to_line < 7'd32 ? to_line : 7'd32", "to_line < 7'd2 ? to_line : 7'd2"),
    ], bugs=[
        ("within", "w_end <= {1'b0, slot_bytes}", "w_end <= {1'b0, slot_bytes} + 33'd64"),
        ("within", "&& w_offset >= tables_end;", ";"),
        ("lines", "cut = to_line < 7'd32 ? to_line : 7'd32;", "cut = 7'd1 + (to_line < 7'd32 ? to_line : 7'd32);"),
        ("fits", "assign takes = step == FIT && !want_table && room >= {1'b0, want_beats};",
         "assign takes = step == FIT && !want_table;"),
        ("fits", "+ (LG+1)'(word_valid && word_ready);", "+ (LG+1)'(word_ready);"),
        ("stays", "PICK: if (asks_table || (live && beats != '0)) step <= PLACE;",
         "PICK: if (asks_table || (live && beats != '0)) step <= PLACE;\n        OFFER: step <= PICK;"),
        ("place", "at <= at + {20'b0, want_beats, 6'b0};", "at <= at + {19'b0, want_beats, 7'b0};"),
        ("ends_area", "want_last <= ends_here;", "want_last <= beats[22:6] == '0 && beats[6:0] < cut;"),
        ("begins_area", "fresh <= 1'b0;", "fresh <= fresh;"),
        ("announced", "area_in.skip = waits[64 +: 20];", "area_in.skip = got_row[64 +: 20];"),
        ("ended", "assign idle = live && left == '0 && !asked && !waiting;", "assign idle = live && !asked && !waiting;"),
        ("ordered", ".clk, .rst, .in_valid(got_data), .in_ready(words_ready)",
         ".clk, .rst, .in_valid(got_data && !word_ready), .in_ready(words_ready)"),
        ("one_table", "asks_table = live && left != '0 && !asked && !waiting;", "asks_table = live && left != '0 && !waiting;"),
    ]),
    Proof("fetch", "fetch", "N=2 LOG=1", 14, ever=False, parts=("fifo",), free=("fetch_way", "f64"), bugs=[
        ("bounded", "&& log_in_ready && !halt", "&& !halt"),
        ("stays", "assign grant = picked && !ar_valid", "assign grant = picked"),
        ("asked", "ar_len <= 8'(want_beats[6*i +: 6]) - 8'd1;", "ar_len <= 8'(want_beats[6*i +: 6]);"),
        ("stays", "if (ar_ready) ar_valid <= 1'b0;", "ar_valid <= 1'b0;"),
        ("halted", "log_in_ready && !halt && !rst;", "log_in_ready && !rst;"),
        ("idle_owes", "assign idle = !ar_valid && !log_valid &&", "assign idle = !ar_valid &&"),
        ("dealt", "if (r_valid) taken <= final_beat ? '0 : taken + 1'b1;", "if (r_valid) taken <= taken + 1'b1;"),
        ("dealt", "{g_owner, g_table, g_high, g_first, g_last} <= {log_out[14:8], begins, ends};",
         "{g_owner, g_table, g_high, g_first, g_last} <= {5'd0, log_out[9:8], begins, ends};"),
        ("turns", "turn <= pick == 5'(N) ? '0 : pick + 1'b1;", "turn <= 5'd1;"),
    ]),
    Proof("store", "store", "W=64", 22, ever=False, apart=True, others={"once": 14, "in_place": 14, "within": 18},
          parts=("fifo", "gear"), free=("f64",), shrink=[
        ("store", ".LG(6), .BLOCK(1)", ".LG(2), .BLOCK(1)"), ("store", "logic [6:0] q_count", "logic [2:0] q_count"),
        ("store", "want = 7'd32;", "want = 7'd2;"),
    ], bugs=[
        ("within", "room <= {1'b0, slot_bytes[31:6]} - 27'd6;", "room <= {1'b0, slot_bytes[31:6]} + 27'd1;"),
        ("lines", "if (to_line < want) want = to_line;", ""),
        ("once", "room <= {1'b0, slot_bytes[31:6]} - 27'd6;", "room <= {1'b0, slot_bytes[31:6]} - 27'd5;"),
        ("once", "assign no_room = room[26] || room == '0;", "assign no_room = room == '0;"),
        ("once", "- 27'(g_valid && g_ready && g_end);", ";"),
        ("gapless", "q_count != '0 && q_count >= want;", "q_count != '0;"),
        ("counted", "assign w_last = w_left == 7'd1;", "assign w_last = w_left <= 7'd2;"),
        ("halted", "&& !halt && !owes[8] && q_count != '0", "&& !owes[8] && q_count != '0"),
        ("behind", "TOLD: if (told_valid && at_rest && !rec_valid) begin", "TOLD: if (told_valid && !rec_valid) begin"),
        ("written", "LAST: if (at_rest && !rec_valid) begin", "LAST: if (!rec_valid) begin"),
        ("quiet_owes", "assign quiet = at_rest && !rec_valid &&", "assign quiet = !owned && !rec_valid &&"),
        ("in_place", "assign q_ready = busy_w && !w_rec && w_ready;", "assign q_ready = busy_w && w_ready;"),
        ("placed", "if (go_data) sent <= sent + 32'(want);", "if (go_data) sent <= sent + 32'd1;"),
        ("stays", "if (aw_ready) aw_valid <= 1'b0;", "aw_valid <= 1'b0;"),
    ]),
    Proof("csr", "csr", "", 20, ever=False, shrink=[
        ("csr", "ring [256]", "ring [32]"), ("csr", "ring[waddr[9:2]]", "ring[waddr[6:2]]"),
        ("csr", "ring[ring_at]", "ring[ring_at[4:0]]"),
    ], bugs=[
        ("announced", "assign more = enabled && doorbell != finished &&", "assign more = enabled &&"),
        ("content", "assign fetch_at = {finished[3:0], fetched};", "assign fetch_at = {doorbell[3:0], fetched};"),
        ("stays", "if (fetching) command <=", "if (fetching || s_ar_ready) command <="),
        ("once", "if (command_done && running) begin\n        running <= 1'b0;", "if (command_done && running) begin"),
        ("starts", "fetched <= fetched + 1'b1;", "fetched <= fetched + 1'b1; if (write) fetched <= '0;"),
        ("resets", "if (s_w_word[2]) resetting <= 1'b1;", "if (s_w_word[2] && !running) resetting <= 1'b1;"),
        ("tells", "finished <= finished + 1'b1;", "finished <= doorbell;"),
        ("tells", "pending <= (pending & ~wiped) | pends;", "pending <= (pending | pends) & ~wiped;"),
        ("interrupts", "irq <= |(mask & pending);", "irq <= |pending;"),
    ]),
]


def text(path):
    with open(path) as file:
        return file.read()


def build(proof, name, change=None, label=None):
    """The circuit of a proof, with the module's text changed and, with a label, no other property."""
    folder = os.path.join(OUT, name)
    os.makedirs(folder, exist_ok=True)
    parts = {part: text(os.path.join(RTL, part + ".sv")) for part in ("pkg",) + proof.parts + proof.free + (proof.module,)}
    for part in proof.free:
        parts[part] = parts[part].partition("\n);\n")[0] + "\n);\nendmodule\n"
    for part, before, after in [*([(proof.module, *change)] if change else []), *proof.shrink]:
        if before not in parts[part]:
            raise ValueError(f"{name}: the text `{before}` is gone from {part}.sv")
        parts[part] = parts[part].replace(before, after)
    body, end, rest = parts.pop(proof.module).rpartition("endmodule")
    whole = body + text(os.path.join(HERE, "start.sv")) + text(os.path.join(HERE, proof.module + ".sv")) + end + rest
    parameters = ", ".join(".{}({})".format(*p.split("=")) for p in proof.parameters.split())
    top = f"module proof (input logic clk);\n  {proof.module} #({parameters}) dut (.clk(clk));\nendmodule\n"
    with open(os.path.join(folder, "dut.sv"), "w") as file:
        file.write("".join(parts.values()) + whole + top)
    # Ports are driven by anything, as far as nothing is assumed. What no property depends on is removed.
    script = f"""read_verilog -sv -formal {folder}/dut.sv
        hierarchy -check -top proof; proc; flatten; setundef -undriven -anyseq
        {f'delete t:$assert c:*.{label} %d' if label else ''}
        opt_clean -purge; """
    script += f"""memory_map; opt_clean -purge; async2sync; dffunmap; techmap; opt -nodffe -nosdff; dffunmap
        setundef -anyseq; simplemap; aigmap; opt_clean -purge; write_aiger -zinit {folder}/dut.aig"""
    made = subprocess.run(["yosys", "-q", "-p", script], capture_output=True, text=True)
    if made.returncode:
        raise ValueError(f"{name}: Yosys says {made.stdout[-500:]}{made.stderr[-500:]}")
    return folder


def abc(folder, command):
    script = f"read_aiger {folder}/dut.aig; fold; orpos; strash; {command}"
    return subprocess.run(["yosys-abc", "-c", script], capture_output=True, text=True).stdout


def bounded(proof, folder, steps):
    """Whether the properties hold for so many cycles, and what was said."""
    told = abc(folder, f"bmc3 -F {steps} -T {LIMIT}")
    return f"No output asserted in {steps} frames" in told and "runtime" not in told, told


def broken(proof, label, folder):
    """Whether a property fails within the proof's cycles."""
    return "was asserted in frame" in abc(folder, f"bmc3 -F {proof.cycles(label)} -T {LIMIT}")


def prove(proof, quick):
    """A line about the proof, and whether it holds."""
    begun = time.time()
    folder = build(proof, proof.name)
    if proof.apart:
        lone = {label: build(proof, f"{proof.name}-{label}", None, label) for label in sorted(labels(proof))}
        each = {label: bounded(proof, at, proof.cycles(label)) for label, at in lone.items()}
        told = "".join(f"{label}: {told}" for label, (holds, told) in each.items() if not holds)
        cycles = [proof.cycles(label) for label in lone]
        holds, how = not told, f"for {min(cycles)} to {max(cycles)} cycles"
    elif proof.ever and (not quick or proof.quick == 0):
        told = abc(folder, f"pdr -T {LIMIT}")
        holds = "Property proved." in told
        how = "for ever"
    else:
        steps = quick and proof.quick or proof.steps
        holds, told = bounded(proof, folder, steps)
        how = f"for {steps} cycles"
    if not holds:
        return f"{proof.name}: BROKEN, or undecided in {LIMIT} s\n{told[-1500:]}", False
    return f"{proof.name}: holds {how}; {time.time() - begun:.1f} s", True


def plant(proof, number):
    """A line about one bug of a proof, and whether the property that it breaks fails."""
    begun = time.time()
    label, before, after = proof.bugs[number]
    name = f"{proof.name}-{label}-{number}"
    found = broken(proof, label, build(proof, name, (before, after), label))
    return f"  {name}: {'fails' if found else 'DOES NOT FAIL'}; {time.time() - begun:.1f} s", found


def labels(proof):
    return set(re.findall(r"(\w+): assert", text(os.path.join(HERE, proof.module + ".sv"))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only-proofs", action="store_true")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    proofs = [p for p in PROOFS if (not args.names or p.name in args.names) and (not args.quick or p.quick is not None)]
    jobs = [(prove, p, args.quick) for p in proofs]
    wrong = 0
    if not args.quick and not args.only_proofs:
        jobs += [(plant, p, i) for p in proofs for i in range(len(p.bugs))]
        # Each property of a module is broken by some bug of one of its proofs.
        for module in {p.module for p in proofs}:
            broken = {label for p in PROOFS if p.module == module for label, _, _ in p.bugs}
            for label in labels(next(p for p in proofs if p.module == module)) - broken:
                print(f"{module}: no bug makes {label} fail")
                wrong += 1

    def run(job):
        try:
            return job[0](*job[1:])
        except ValueError as error:
            return str(error), False

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for line, good in pool.map(run, jobs):
            print(line, flush=True)
            wrong += not good
    bugs = sum(job[0] is plant for job in jobs)
    print(f"{len(proofs)} proofs, {bugs} bugs, {wrong} wrong")
    return int(wrong != 0)


if __name__ == "__main__":
    sys.exit(main())
