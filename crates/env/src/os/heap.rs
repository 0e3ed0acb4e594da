//! What the allocator keeps of freed memory.

/// Has the system's allocator give back whole pages that nothing lies on, of all its arenas. Jobs build
/// and drop lists of some hundred KiB on threads of their own, and glibc has an arena for each thread, which
/// it shortens at its end alone: without this it keeps several times of what is in use.
///
/// Takes about a millisecond for a few dozen MiB. Does nothing for another allocator, or another libc.
pub fn trim_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: glibc's own function, which any thread may call at any time; it changes no byte in use.
        unsafe { malloc_trim(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays() {
        let mut held: Vec<Vec<u8>> = (0..1000_usize).map(|n| vec![n as u8; 3000]).collect();
        held.retain(|bytes| bytes[0] % 5 == 0);
        trim_heap();
        assert!(held.iter().all(|bytes| bytes.iter().all(|byte| *byte == bytes[0])));
    }
}
