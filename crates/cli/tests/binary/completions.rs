//! The words that a shell is proposed.

use crate::common::{Bench, TWO_FILE_SERVERS, has_python, text};

/// The words that may stand in place of the last one.
fn after(bench: &Bench, words: &[&str]) -> Vec<String> {
    let mut command = bench.narrows(&[&["--", "narrows"][..], words].concat());
    command.env("NARROWS_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string()).env("_CLAP_IFS", "\n");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn findings_pages_variants_and_parameters_are_proposed() {
    let bench = Bench::new(TWO_FILE_SERVERS);
    assert_eq!(after(&bench, &["diagnose", "--explain", "n-pl"]), ["n-plus-one"]);
    assert_eq!(after(&bench, &["docs", "sampled-s"]), ["sampled-series"]);
    assert_eq!(after(&bench, &["run", "--variant", ""]), ["first", "second"]);
    assert_eq!(after(&bench, &["run", "--set", "l"]), ["level="]);
    assert_eq!(after(&bench, &["diff", "nothing:"]), [""; 0]);
    std::fs::rename(bench.path("experiment.yaml"), bench.path("other.yaml")).unwrap();
    assert_eq!(after(&bench, &["capacity", "other.yaml", "--variant", "s"]), ["second"]);
    assert_eq!(after(&bench, &["run", "--variant", "s"]), [""; 0], "there is no experiment");
}

#[test]
fn runs_and_their_variants_are_proposed() {
    if !has_python() {
        return;
    }
    let bench = Bench::new(TWO_FILE_SERVERS);
    let run = bench.run(&["run", "--time-scale", "0.25", "--out", "runs/servers.narrows"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    assert_eq!(after(&bench, &["report", "ser"]), ["servers"]);
    assert_eq!(after(&bench, &["diff", "servers:"]), ["servers:first", "servers:second"]);
    assert_eq!(after(&bench, &["diff", "servers:first", ":se"]), [":second"]);
    assert_eq!(after(&bench, &["diagnose", "servers:f"]), ["servers:first"]);
}
