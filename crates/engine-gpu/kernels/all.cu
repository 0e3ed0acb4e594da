// All kernels, as one unit for either compiler.
#include "hash.cuh"
#include "unpack.cu"
#include "merge.cu"
#include "drop.cu"
#include "pack.cu"
#include "encode.cu"
#include "prove.cu"

// How this was compiled: threads, items, those in scans, then the sizes of what the host mirrors (`sizes` in `src/layout.rs`). The
// host reads it before it starts a kernel.
#ifdef __CUDACC__
extern "C" __device__ const u64 lithify_shape[] = {
    THREADS,      ITEMS,         SCAN_ITEMS,       sizeof(Params), sizeof(BlockIn), sizeof(RunIn),
    sizeof(Zone), sizeof(Bound), sizeof(BlockOut), sizeof(Status), sizeof(Tick),
};
#endif
