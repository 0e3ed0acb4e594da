#!/bin/sh
# Verilator's lint for all shapes, every warning on. Prints what it finds and ends with 1 then.
HERE=$(cd "$(dirname "$0")" && pwd)
bad=0
for w in 16 32 64; do
  for n in 2 4 8; do
    verilator --lint-only -Wall -Werror-UNOPTFLAT --top-module top -GW=$w -GN=$n "$HERE/../rtl/pkg.sv" \
      $(ls "$HERE"/../rtl/*.sv | grep -v /pkg.sv) || { echo "n${n}w${w} has findings"; bad=1; }
  done
done
exit $bad
