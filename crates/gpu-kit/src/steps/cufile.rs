//! Step 10: a file through cuFile into the memory of the GPU, in whatever mode that opens, against the same bytes read by the
//! host; and beside a read by the host with a copy up.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Result, ensure};
use lithify_engine_gpu::Device;
use lithify_engine_gpu::cufile::CuFile;
use lithify_engine_gpu::device::{Arena, Memory, Queue};
use lithify_engine_gpu::gds::Gds;

use super::Found;
use crate::machine::Machine;

/// Direct IO, as Linux numbers it on the machines that have GPUs.
#[cfg(target_arch = "x86_64")]
const DIRECT: i32 = 0o40000;
#[cfg(not(target_arch = "x86_64"))]
const DIRECT: i32 = 0o200_000;
const ROUNDS: usize = 3;
/// Places and lengths that are no multiples of a page, besides the whole file.
const ODD: [(u64, u64); 4] = [(1, 4096), (4095, 2), (12_345, 67_890), (8192, 4093)];

pub(crate) fn run(machine: &Machine, mut device: Box<dyn Device>) -> Result<Found> {
    if !machine.is_real() {
        // The library would write to addresses of a GPU, and here are none. Tests have one that does not.
        return Ok(Found::not_run(
            "cuFile reads into the memory of a GPU, and this is the emulator",
        ));
    }
    let gds = match Gds::open(CuFile::installed()) {
        Ok(gds) => gds,
        Err(why) => return Ok(Found::not_run(why.to_string())),
    };
    let bytes: usize = machine.size(256 << 20, 1 << 20);
    let folder = tempfile::tempdir_in(".")?;
    let path = folder.path().join("data");
    let data: Vec<u8> =
        (0..bytes as u64 / 8).flat_map(|n| ((n * n) ^ (n << 40)).to_le_bytes()).collect();
    let mut file = File::create(&path)?;
    file.write_all(&data)?;
    file.sync_all()?;
    let mut found = Found::default();
    let opened = match std::fs::OpenOptions::new().read(true).custom_flags(DIRECT).open(&path) {
        Ok(file) => file,
        Err(error) => {
            found.note(format!("no direct IO here ({error})"));
            File::open(&path)?
        }
    };
    let file = match gds.file(opened.into()) {
        Ok(file) => file,
        Err(error) => return Ok(Found::not_run(error.to_string())),
    };
    let memory = device.alloc(bytes as u64)?;
    let arena = device.arena(bytes)?;
    let (mut best, mut host) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let start = machine.seconds();
        file.read(0, &memory, 0..bytes as u64)?;
        best = best.min(machine.seconds() - start);
    }
    let mut differ = u64::from(down(&mut *device, &memory, &arena, 0..bytes)? != data);
    for (at, len) in ODD {
        file.read(at, &memory, 3..3 + len)?;
        let of_file = &data[at as usize..(at + len) as usize];
        differ += u64::from(down(&mut *device, &memory, &arena, 3..3 + len as usize)? != of_file);
    }
    for _ in 0..ROUNDS {
        host = host.min(by_host(machine, &mut *device, &path, &memory, &arena)?);
    }
    device.drop_arena(arena);
    device.free(memory);
    ensure!(differ == 0, "{differ} of {} reads have other bytes than the host's", 1 + ODD.len());
    found.figure("reads", 1.0 + ODD.len() as f64);
    found.figure("differences", differ as f64);
    found.figure("gb_per_s", bytes as f64 / best / 1e9);
    found.figure("host_gb_per_s", bytes as f64 / host / 1e9);
    found.note("the mode is cuFile's own choice; the host's read is buffered, after a first one");
    Ok(found)
}

/// What a part of the memory holds.
fn down(
    device: &mut dyn Device,
    memory: &Memory,
    arena: &Arena,
    part: Range<usize>,
) -> Result<Vec<u8>> {
    let from = memory.address + part.start as u64;
    device.download(Queue::Down, from, arena, 0..part.len())?;
    let event = device.record(Queue::Down)?;
    while !device.ready(event)? {}
    Ok(device.bytes(arena)?[..part.len()].to_vec())
}

/// Seconds of the host's way: a read into pinned memory, a copy up.
fn by_host(
    machine: &Machine,
    device: &mut dyn Device,
    path: &Path,
    memory: &Memory,
    arena: &Arena,
) -> Result<f64> {
    let start = machine.seconds();
    let to = device.bytes(arena)?;
    let bytes = to.len();
    File::open(path)?.read_exact_at(to, 0)?;
    device.upload(Queue::Up, arena, 0..bytes, memory.address)?;
    let event = device.record(Queue::Up)?;
    while !device.ready(event)? {}
    Ok(machine.seconds() - start)
}
