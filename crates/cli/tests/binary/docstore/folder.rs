//! The folder of `narrows engine docstore --dir`: a later start goes on with it, and one that cannot be used is refused.

use super::Store;
use crate::common::{Bench, text};

/// The options of a store in the folder `data`.
const KEPT: [&str; 4] = ["--documents", "3", "--dir", "data"];
const ENGINE: [&str; 6] = ["engine", "docstore", "--port", "0", "--dir", "data"];

#[test]
fn a_folder_in_use_or_damaged_is_refused_and_a_good_one_opened_again() {
    let bench = Bench::new("");
    let store = Store::start(&bench, &KEPT);
    let refused = bench.run(&ENGINE);
    assert_eq!(refused.status.code(), Some(2));
    let expected = format!(
        "error: the folder data is in use by process {}\nhint: end the process that has it, or name another folder\n",
        store.process.id()
    );
    assert!(text(&refused.stderr).ends_with(&expected), "{}", text(&refused.stderr));
    store.end();
    Store::start(&bench, &KEPT).end();

    std::fs::write(bench.path("data/docstore.sqlite"), "something else").unwrap();
    let refused = bench.run(&ENGINE);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("error: data/docstore.sqlite is damaged: file is not a database\nhint: "), "{said}");
}

#[test]
fn options_of_the_folder_are_checked() {
    let bench = Bench::new("");
    let sometimes = bench.run(&["engine", "docstore", "--dir", "data", "--sync", "sometimes"]);
    assert_eq!(sometimes.status.code(), Some(2));
    assert!(text(&sometimes.stderr).contains("[possible values: always, never]"), "{}", text(&sometimes.stderr));
    let alone = bench.run(&["engine", "docstore", "--sync", "never"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("--dir <DIR>"), "{}", text(&alone.stderr));
}
