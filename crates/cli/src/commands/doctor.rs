//! `narrows doctor`: what this machine allows and what is missing.

use std::fmt::Write;

use narrows_lab::doctor::{Check, CheckStatus, examine};

use crate::Outcome;

pub(crate) fn execute() -> Outcome {
    let report = examine();
    let mut text = String::from("This machine\n");
    report.machine.iter().for_each(|check| describe(&mut text, check));
    text.push_str("\nServers and tools that experiments may start\n");
    report.programs.iter().for_each(|check| describe(&mut text, check));
    let missing = report.programs.iter().filter(|check| check.standing == CheckStatus::Missing).count();
    let verdict = match missing {
        0 => "\nNothing is missing.\n".to_owned(),
        n => format!("\n{n} missing: only experiments that start them need them.\n"),
    };
    text.push_str(&verdict);
    super::print(&text)
}

fn describe(text: &mut String, check: &Check) {
    let mark = match check.standing {
        CheckStatus::Fine => "ok     ",
        CheckStatus::Limited => "limited",
        CheckStatus::Missing => "missing",
    };
    let _ = writeln!(text, "  {mark}  {:<15} {}", check.name, check.detail);
    if let Some(hint) = &check.hint {
        let _ = writeln!(text, "           {:<15} hint: {hint}", "");
    }
}
