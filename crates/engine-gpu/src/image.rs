//! The image of the kernels: code for several generations of GPUs in one file, which `cargo xtask gpu build` makes.
//!
//! Keeps: what is in a build is the image of `image.lock`, or none (`build.rs` holds it against the lock); bytes of a
//! file that the user names are taken in its place, and are called what they are. Before a driver gets an image, its
//! header and its length agree, so the driver reads no further than the bytes go.
//! Leaves to others: reading that file, and whether its kernels have the host's layout (`card` asks the image itself).

use std::sync::Arc;

use crate::choose::NoGpu;

/// The variable that names a file to take in place of the image in the build.
pub const IMAGE: &str = "LITHIFY_GPU_IMAGE";

/// The image in this build.
#[cfg(lithify_gpu_image)]
const BUILT_IN: Option<&[u8]> = Some(include_bytes!(env!("LITHIFY_GPU_BUILT_IN")));
#[cfg(not(lithify_gpu_image))]
const BUILT_IN: Option<&[u8]> = None;

/// An image begins with a magic number, two shorts, and how many bytes follow.
const MAGIC: u32 = 0xba55_ed50;
const HEADER: usize = 16;

/// A file in place of the image in the build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageFile {
    /// Its name, for people.
    pub name: String,
    /// All of it.
    pub bytes: Arc<[u8]>,
}

/// Whether this build has an image.
pub fn is_built_in() -> bool {
    BUILT_IN.is_some()
}

/// The image to load: that of `file`, or else that of the build.
///
/// # Errors
/// NoImage if there is neither, BadImage if it is not one.
pub fn image(file: Option<&ImageFile>) -> Result<&[u8], NoGpu> {
    let bytes = match file {
        Some(file) => &*file.bytes,
        None => BUILT_IN.ok_or(NoGpu::NoImage)?,
    };
    let of = || file.map_or("of this build".to_owned(), |file| file.name.clone());
    checked(bytes).map_err(|why| NoGpu::BadImage(format!("{why} ({})", of())))?;
    Ok(bytes)
}

/// Why bytes are no image, if so.
fn checked(bytes: &[u8]) -> Result<(), &'static str> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Err("the image of the kernels is cut short");
    };
    let word = |at: usize| header[at..].first_chunk::<4>().map_or(0, |w| u32::from_le_bytes(*w));
    if word(0) != MAGIC {
        return Err("what should be the image of the kernels is not one");
    }
    let follow = u64::from(word(8)) | u64::from(word(12)) << 32;
    match follow == rest.len() as u64 {
        true => Ok(()),
        false => Err("the image of the kernels is cut short, or has more behind it"),
    }
}

/// Sizes of what an image of this version and the host share, as `lithify_shape` in the image has them.
pub const LAYOUT: [u64; 8] = crate::layout::sizes();
