#!/bin/sh
# Builds the bench of one shape: build.sh W N [folder], by default target/fpga of the checkout. Needs Verilator 5.006 and
# a C++17 compiler. Prints where the runner of slots is. OPT=-O0 compiles faster and runs slower; COVERAGE=1 counts the lines
# and bits that are passed; RTL is another folder of modules, and EXTRA further C++.
set -e
W=$1 N=$2
HERE=$(cd "$(dirname "$0")" && pwd)
RTL=${RTL:-$HERE/../rtl}
OUT=${3:-$HERE/../../target/fpga}
NAME=n${N}w${W}
# Verilator splits a block into what depends on nothing and the rest, and so counts many blocks and branches before the
# reset only: with coverage it does not.
COUNTS=${COVERAGE:+--coverage-line --coverage-toggle -fno-split}
# The points of coverage are set up in code that runs once and compiles for minutes if it is optimised.
SLOW=${COVERAGE:+-O0}
SLOW=${SLOW:-${OPT:--O1}}
mkdir -p "$OUT/$NAME"
verilator --cc --exe --build -j 2 -O3 --x-assign unique --x-initial unique --assert \
  $COUNTS \
  -Wall -Wno-fatal -Werror-UNOPTFLAT --top-module top -GW="$W" -GN="$N" \
  --prefix "V$NAME" --Mdir "$OUT/$NAME" -CFLAGS "-std=c++17 -DMODEL=$NAME" \
  -MAKEFLAGS "OPT_FAST=${OPT:--O2} OPT_SLOW=$SLOW OPT_GLOBAL=${OPT:--O2}" \
  "$RTL/pkg.sv" $(ls "$RTL"/*.sv | grep -v /pkg.sv) \
  "$HERE/shim.cpp" "$HERE/run.cpp" $EXTRA -o run
echo "$OUT/$NAME/run"
