//! The table of supported features in the documentation: what it says works is held by a test that is there.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every test of the store, and of the programs that check it.
fn tests() -> String {
    let mut folders = vec![root().join("engines/docstore/src"), root().join("engines/docstore/tests")];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| ["rs", "py", "js"].iter().any(|known| extension == *known))
            {
                text.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

#[test]
fn every_supported_feature_names_its_test() {
    let page = std::fs::read_to_string(root().join("docs/reference/docstore.md")).unwrap();
    let (_, matrix) = page.split_once("<!-- matrix -->").unwrap();
    let (matrix, _) = matrix.split_once("<!-- end -->").unwrap();
    let tests = tests();
    let mut rows = 0;
    for row in matrix.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [feature, _, here, test] = cells.as_slice() else { panic!("{row}") };
        let name = test.trim_matches('`');
        assert_eq!(*here == "no", name.is_empty(), "{feature}");
        let is_there = ["fn", "def", "function"].iter().any(|word| tests.contains(&format!("{word} {name}(")));
        assert!(*here == "no" || is_there, "{feature}: there is no test {name}");
        rows += 1;
    }
    assert_eq!(rows, 51, "as many as Microsoft's table has");
}
