//! Names of blobs and nodes, which are the same on every file system and in every database.

use super::StoreError;

/// The longest name of a blob, in bytes.
pub const BLOB_NAME_BYTES_MAX: usize = 200;

/// Checks the name of a blob: 1 to [`BLOB_NAME_BYTES_MAX`] of `a-z 0-9 - . /`, and no part between slashes that is
/// empty, `.` or `..`.
///
/// # Errors
/// [`StoreError::BadName`].
pub fn check_blob_name(name: &str) -> Result<(), StoreError> {
    let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-./".contains(&byte);
    let is_good = name.len() <= BLOB_NAME_BYTES_MAX
        && name.bytes().all(is_known)
        && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_good { Ok(()) } else { Err(StoreError::BadName { name: name.chars().take(64).collect() }) }
}

/// Checks the name of a node: as of a blob, without `/`.
///
/// # Errors
/// [`StoreError::BadName`].
pub fn check_node_name(name: &str) -> Result<(), StoreError> {
    check_blob_name(name)?;
    if name.contains('/') { Err(StoreError::BadName { name: name.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::{check_blob_name, check_node_name};

    #[test]
    fn names_that_leave_the_folder_or_differ_by_case_are_refused() {
        for good in ["a", "p0/payload/17", "p0/snapshot-3.new", "..."] {
            assert!(check_blob_name(good).is_ok(), "{good}");
        }
        for bad in ["", "/", "a//b", "/a", "a/", "..", "a/../b", "./a", "A", "ä", "a b", "a\0", &"a".repeat(201)] {
            assert!(check_blob_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn nodes_have_names_without_slashes() {
        assert!(check_node_name("node-1.a").is_ok());
        for bad in ["", "a/b", "A"] {
            assert!(check_node_name(bad).is_err(), "{bad:?}");
        }
    }
}
