#!/bin/sh
# Bounded proofs with yosys-smtbmc and z3: prove.sh [folder for what is made], by default target/fpga/formal.
set -e
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=${1:-$HERE/../../target/fpga/formal}
mkdir -p "$OUT"
# Name, module proven, its parameters, steps.
prove() {
  yosys -q -p "read_verilog -sv -formal $HERE/../rtl/pkg.sv $HERE/../rtl/$2.sv $HERE/$2.sv
    hierarchy -check -top $2_proof $3
    proc; flatten; memory_map; async2sync; dffunmap; write_smt2 -wires $OUT/$1.smt2"
  yosys-smtbmc --noprogress -s z3 -t "$4" "$OUT/$1.smt2" > "$OUT/$1.log" || { tail -20 "$OUT/$1.log"; echo "$1: broken"; exit 1; }
  echo "$1: holds for $4 steps"
}
prove fifo-lut fifo "-chparam LG 2" 12
prove fifo-block fifo "-chparam LG 2 -chparam BLOCK 1" 12
prove skid skid "" 16
