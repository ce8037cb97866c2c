//! CRISP's own cases: `test_cases/*.json` of a checkout, and the graphs of its tests of drag and slack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::told::Told;

/// Cases with another result on purpose, and why.
const OTHERWISE: [(&str, &str); 4] = [
    ("10.json", "calls overlap by a tick: the same spans are on the path, but here no instant is told twice"),
    ("19.json", "calls overlap by 5 of 600 µs: for CRISP they follow one another, here only a tick is allowed"),
    ("20.json", "the same"),
    ("21.json", "the same"),
];
/// Cases that the checkout had when this was written; fewer mean that something else was named.
const CASES_MIN: usize = 25;

fn checkout() -> Option<PathBuf> {
    let folder = std::env::var_os("NARROWS_CRISP").map(PathBuf::from);
    if folder.is_none() {
        narrows_testing::skip("NARROWS_CRISP names no checkout of uber-research/CRISP");
    }
    folder
}

#[test]
fn its_cases() {
    let Some(folder) = checkout() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("test_cases"))
        .expect("NARROWS_CRISP names a folder with test_cases")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    assert!(files.len() >= CASES_MIN, "{} cases", files.len());
    let (mut same, mut otherwise) = (0, Vec::new());
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let (ours, theirs) = both(file);
        if ours == theirs {
            same += 1;
        } else {
            assert!(OTHERWISE.iter().any(|(known, _)| *known == name), "{name}: {ours:?}, theirs {theirs:?}");
            otherwise.push(name);
        }
    }
    for (name, why) in OTHERWISE {
        println!("{name}: {why}");
    }
    assert_eq!(otherwise, OTHERWISE.map(|(name, _)| name));
    println!("{same} of {} cases as in CRISP, {} otherwise on purpose", files.len(), otherwise.len());
}

/// Microseconds of each operation on the path, without its children: ours and theirs, none left out that is 0.
fn both(file: &Path) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let case: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let trace = &case["data"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spans = trace["spans"].as_array().unwrap();
    let mut operations: BTreeMap<String, String> = BTreeMap::new();
    let mut lines: Vec<(String, i64, i64, String)> = Vec::new();
    for span in spans {
        let (id, process) = (text(&span["spanID"]), text(&span["processID"]));
        let service = text(&trace["processes"][&process]["serviceName"]);
        operations.insert(id.clone(), format!("[{service}] {}", text(&span["operationName"])));
        let start = span["startTime"].as_i64().unwrap();
        lines.push((id, start, start + span["duration"].as_i64().unwrap(), text(&span["references"][0]["spanID"])));
    }
    let lines: Vec<_> = lines.iter().map(|(id, from, to, above)| (id.as_str(), *from, *to, above.as_str())).collect();
    let mut ours: BTreeMap<String, i64> = BTreeMap::new();
    for (id, us) in Told::of(&lines).own() {
        *ours.entry(operations[id].clone()).or_default() += us;
    }
    let expected =
        case["testing"].get(0).or_else(|| case["testing"].get("opTimeExclusive")).expect("the expected times");
    let theirs = expected.as_object().unwrap().iter().map(|(name, us)| (name.clone(), us.as_i64().unwrap()));
    (ours, theirs.filter(|(_, us)| *us > 0).collect())
}

/// Expectations of CRISP's tests of drag (inclusive) and slack for their graphs: ours, theirs, and why they differ. The
/// graphs are those of `tests/test_slack_drag.py`, by their shape.
#[test]
fn its_drag_and_slack() {
    let siblings = Told::of(&[("R", 0, 500, ""), ("A", 0, 400, "R"), ("B", 0, 50, "R")]);
    assert_eq!((siblings.drag()["A"], siblings.slack()["B"]), (350, 350), "as in CRISP");
    let chain = Told::of(&[("R", 0, 300, ""), ("X", 0, 200, "R"), ("Y", 0, 100, "X")]);
    assert_eq!(chain.drag(), BTreeMap::from([("R", 300), ("X", 200), ("Y", 100)]), "as in CRISP");
    let tail = Told::of(&[("R", 0, 1000, ""), ("N", 400, 520, "R"), ("T", 500, 1000, "R")]);
    assert_eq!(tail.slack()["N"], 480, "as in CRISP");
    let fan_out = Told::of(&[("P", 0, 1000, ""), ("B1", 0, 100, "P"), ("B2", 200, 300, "P"), ("C", 0, 1000, "P")]);
    assert_eq!((fan_out.slack()["B1"], fan_out.slack()["B2"]), (900, 700), "CRISP: 900 and 800, B2 could begin sooner");
    let after = Told::of(&[("R", 0, 1000, ""), ("A", 0, 100, "R"), ("B", 300, 750, "R"), ("D", 700, 1000, "R")]);
    assert_eq!(after.slack()["B"], 250, "CRISP: 450, B could begin 200 sooner");
    let overlap = Told::of(&[("R", 0, 1000, ""), ("A", 0, 500, "R"), ("B", 495, 1000, "R")]);
    assert_eq!(overlap.drag().get("A"), None, "CRISP: 500, it takes A for what B follows");
    assert_eq!(overlap.drag()["B"], 500, "as in CRISP");
}
