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

#[test]
fn a_folder_that_may_have_lost_something_is_refused_until_its_loss_is_accepted() {
    let bench = Bench::new("");
    Store::start(&bench, &KEPT).end();
    let repair = [&ENGINE[..], &["--repair"]].concat();
    let sound = bench.run(&repair);
    assert_eq!(sound.status.code(), Some(0));
    assert_eq!(text(&sound.stdout), "data is sound: 3 documents, nothing is damaged\n");

    std::fs::remove_file(bench.path("data/acknowledged")).unwrap();
    let refused = bench.run(&ENGINE);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    let what = "the file acknowledged is missing, which says what was acknowledged";
    assert!(said.contains(&format!("error: data/docstore.sqlite is damaged: {what}\nhint: take the folder")), "{said}");
    let damaged = bench.run(&repair);
    let report = text(&damaged.stdout);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(
        report.starts_with(&format!("data is damaged; 3 documents can be read\n  {what}\nnothing was changed: ")),
        "{report}"
    );
    let accepted = bench.run(&[&repair[..], &["--accept-loss"]].concat());
    let report = text(&accepted.stdout);
    assert_eq!(accepted.status.code(), Some(0));
    assert!(report.ends_with("copies of the damaged files are in data/damaged-1\n"), "{report}");
    assert!(bench.path("data/damaged-1/docstore.sqlite").is_file());
    Store::start(&bench, &KEPT).end();

    let elsewhere = bench.run(&["engine", "docstore", "--dir", "nowhere", "--repair"]);
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(!bench.path("nowhere").exists());
    for alone in [["--repair", "--port", "0"], ["--accept-loss", "--dir", "data"]] {
        assert_eq!(bench.run(&[&["engine", "docstore"], &alone[..]].concat()).status.code(), Some(2), "{alone:?}");
    }
}
