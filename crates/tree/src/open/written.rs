//! What an open and a copy write down: settings and the manifest's first state.

use lithify_base::Result;
use lithify_compact::FileNumbers;
use lithify_files::dir::Dir;
use lithify_journal::files::FileName;
pub(crate) use lithify_store::manifest::manifest_state;

use crate::settings::translate::{Described, options_text};

/// Writes the settings of the families down; the file's number.
pub(crate) fn write_options(
    dir: &Dir,
    numbers: &FileNumbers,
    families: &[Described],
) -> Result<u64> {
    let text = options_text(families);
    let number = numbers.next().0;
    dir.replace(FileName::Options(number), FileName::OptionsTemp(number), text.as_bytes())?;
    Ok(number)
}
