// All kernels, as one unit for either compiler.
#include "hash.cuh"
#include "unpack.cu"
#include "merge.cu"
#include "drop.cu"
#include "pack.cu"
#include "prove.cu"
