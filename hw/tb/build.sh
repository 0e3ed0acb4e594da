#!/bin/sh
# Builds the bench of one shape: build.sh W N [folder], by default target/fpga of the checkout. Needs Verilator 5.006 and
# a C++17 compiler. Prints where the runner of slots is. OPT=-O0 compiles faster and runs slower.
set -e
W=$1 N=$2
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=${3:-$HERE/../../target/fpga}
NAME=n${N}w${W}
mkdir -p "$OUT/$NAME"
verilator --cc --exe --build -j 1 -O3 --x-assign unique --x-initial unique --assert \
  -Wall -Wno-fatal -Werror-UNOPTFLAT --top-module top -GW="$W" -GN="$N" \
  --prefix "V$NAME" --Mdir "$OUT/$NAME" -CFLAGS "-std=c++17 -DMODEL=$NAME" \
  -MAKEFLAGS "OPT_FAST=${OPT:--O2} OPT_SLOW=${OPT:--O1} OPT_GLOBAL=${OPT:--O2}" \
  "$HERE/../rtl/pkg.sv" $(ls "$HERE"/../rtl/*.sv | grep -v /pkg.sv) \
  "$HERE/shim.cpp" "$HERE/run.cpp" -o run
echo "$OUT/$NAME/run"
