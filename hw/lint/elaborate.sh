#!/bin/sh
# Reads the RTL with Yosys, binds the hierarchy of one shape (elaborate.sh W N) and checks it: no latch, loop or double driver.
set -e
HERE=$(cd "$(dirname "$0")" && pwd)
yosys -q -p "read_verilog -sv $HERE/../rtl/pkg.sv $(ls "$HERE"/../rtl/*.sv | grep -v /pkg.sv | tr '\n' ' ')
  hierarchy -check -top top -chparam W ${1:-16} -chparam N ${2:-4}
  proc
  select -assert-none t:\$dlatch t:\$adlatch
  check -assert"
