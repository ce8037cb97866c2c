//! Files of the repository that tests generate: compared as a rule, written with `NARROWS_WRITE=1`.

use std::path::{Path, PathBuf};

/// The end of a generated part of a page.
const END: &str = "<!-- end -->\n";

/// Advice if a file is not current.
pub const RENEW: &str = "run this test with NARROWS_WRITE=1 to write it, and read the difference";

/// Fails if a file of the repository has another text than expected. `file` is relative to the root of the repository.
pub fn check(file: &str, expected: &str) {
    assert!(is_current(&root().join(file), expected), "{file} is not current: {RENEW}");
}

/// True if a file has the expected text. With `NARROWS_WRITE` set, the file is written.
pub fn is_current(file: &Path, expected: &str) -> bool {
    if std::env::var_os("NARROWS_WRITE").is_some() {
        std::fs::write(file, expected).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    std::fs::read_to_string(file).is_ok_and(|text| text == expected)
}

/// Text of a file of the repository.
pub fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A page whose part between the line `<!-- NAME -->` and the line `<!-- end -->` is this text.
pub fn with_part(page: &str, name: &str, part: &str) -> String {
    let begin = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no line {begin:?}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("no line {END:?} after {begin:?}"));
    format!("{before}{begin}{part}{END}{after}")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_page_is_replaced() {
        let page = "# Page\n\n<!-- rows -->\nold\n<!-- end -->\n\nText.\n";
        assert_eq!(with_part(page, "rows", "new\n"), "# Page\n\n<!-- rows -->\nnew\n<!-- end -->\n\nText.\n");
    }
}
