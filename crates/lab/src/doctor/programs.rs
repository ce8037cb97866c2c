//! Servers and tools that experiments may start, with the Debian package that has each.

use super::{Check, Standing, check};
use crate::programs::{ALL, Program};

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = ALL.iter().map(|program| look_for(program)).collect();
    checks.insert(1, python_venv());
    checks
}

fn look_for(program: &'static Program) -> Check {
    match program.find() {
        Ok(found) => check(program.name, Standing::Fine, found.path.display().to_string(), None),
        Err(missing) if program.package.is_empty() => check(
            program.name,
            Standing::Missing,
            format!("{} ({})", missing.binary, program.used_for),
            Some("put it on PATH; Debian has no package"),
        ),
        Err(lacking) => missing(program.name, &format!("{} ({})", lacking.binary, program.used_for), program.package),
    }
}

fn missing(name: &str, detail: &str, package: &str) -> Check {
    check(name, Standing::Missing, detail, Some(&format!("apt-get install {package}")))
}

fn python_venv() -> Check {
    let works = std::process::Command::new("python3")
        .args(["-c", "import venv, ensurepip"])
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if works {
        check("Python venv", Standing::Fine, "python3 -m venv works", None)
    } else {
        missing("Python venv", "python3 -m venv (the setup of Python services)", "python3-venv")
    }
}
