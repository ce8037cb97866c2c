//! Copies of damaged files: `HUB/damaged-1`, `HUB/damaged-2` and so on, laid out like the hub.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, RealDisk};
use crate::store::StoreError;

/// So many copies are kept; the next repair is refused until one was removed.
const COPIES_MAX: usize = 8;

/// Copies those of these files and folders below `folder` that exist into a new folder there, which is returned.
pub(super) fn copy(folder: &Path, what: &[PathBuf]) -> Result<PathBuf, StoreError> {
    let kept = free(folder)?;
    let copied = || -> io::Result<()> {
        std::fs::create_dir(&kept)?;
        what.iter().try_for_each(|path| copy_below(&folder.join(path), &kept.join(path)))
    };
    if let Err(error) = copied() {
        // Half a copy is of no use; nothing else was changed yet.
        let _ = std::fs::remove_dir_all(&kept);
        return Err(disk::failed("copy the damaged files to", &kept, None, &error));
    }
    disk::sync_tree(&RealDisk, &kept)?;
    Ok(kept)
}

fn free(folder: &Path) -> Result<PathBuf, StoreError> {
    let paths = (1..=COPIES_MAX).map(|number| folder.join(format!("damaged-{number}")));
    paths.into_iter().find(|path| !path.exists()).ok_or_else(|| {
        let full =
            io::Error::other(format!("it holds {COPIES_MAX} copies from earlier repairs, damaged-1 to -{COPIES_MAX}"));
        disk::failed("keep the damaged files in", folder, None, &full)
    })
}

fn copy_below(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        std::fs::create_dir_all(to)?;
        for entry in std::fs::read_dir(from)? {
            let name = entry?.file_name();
            copy_below(&from.join(&name), &to.join(&name))?;
        }
    } else if from.exists() {
        if let Some(above) = to.parent() {
            std::fs::create_dir_all(above)?;
        }
        std::fs::copy(from, to)?;
        std::fs::File::open(to)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("p0")).unwrap();
        std::fs::write(folder.path().join("p0/end"), "x").unwrap();
        let what = [PathBuf::from("hub"), PathBuf::from("p0")];
        for number in 1..=COPIES_MAX {
            let kept = copy(folder.path(), &what).unwrap();
            assert_eq!(kept, folder.path().join(format!("damaged-{number}")));
            assert_eq!(std::fs::read(kept.join("p0/end")).unwrap(), b"x");
        }
        let error = copy(folder.path(), &what).unwrap_err().to_string();
        assert!(error.ends_with("it holds 8 copies from earlier repairs, damaged-1 to -8"), "{error}");
    }
}
