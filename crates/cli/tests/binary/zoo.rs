//! Conclusions from the recorded runs of the zoo's programs match the known faults.

use std::path::Path;
use std::process::Command;

use narrows_testing::has_programs;

use crate::common::text;

#[test]
fn recorded_programs_are_judged_right() {
    if !has_programs(&["python3"]) {
        return;
    }
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/zoo/zoo");
    let judged = Command::new("python3")
        .arg(zoo)
        .args(["--recorded", "--narrows", env!("CARGO_BIN_EXE_narrows")])
        .output()
        .expect("the zoo's judge runs");
    let said = text(&judged.stdout);
    println!("{said}");
    assert_eq!(judged.status.code(), Some(0), "{said}{}", text(&judged.stderr));
}
