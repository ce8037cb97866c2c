//! Paths of the file as paths of the machine.

use std::path::{Path, PathBuf};

/// A path of the file, which starts from `dir`, without the `./` in it.
pub(crate) fn resolve(dir: &Path, text: &str) -> PathBuf {
    dir.join(text).components().collect()
}
