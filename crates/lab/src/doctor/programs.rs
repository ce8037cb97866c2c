//! Servers and tools that experiments may start, with the command that installs each.

use crate::components::{self, sidecar};
use crate::doctor::{Check, CheckStatus, check};
use crate::programs::Program;

/// Of services and virtual environments.
static PYTHON: Program = Program {
    name: "Python",
    used_for: "Python services",
    binary: "python3",
    tools: &[],
    folders: &[],
    install: "apt-get install python3",
};

/// Of services that are built when they first run.
static MAVEN: Program = Program {
    name: "Maven",
    used_for: "Java services",
    binary: "mvn",
    tools: &["java", "javac"],
    folders: &[],
    install: "apt-get install maven default-jdk-headless",
};

static CHROMIUM: Program = Program {
    name: "Chromium",
    used_for: "looking at reports without a screen",
    binary: "chromium",
    tools: &[],
    folders: &[],
    install: "apt-get install chromium",
};

/// Programs that neither a component nor a proxy names.
static OTHERS: [&Program; 2] = [&MAVEN, &CHROMIUM];

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![look_for(&PYTHON), python_venv()];
    checks.extend(of_experiments().into_iter().chain(OTHERS).map(look_for));
    checks
}

/// Command that installs a program, by the name of its executable; `None` if the program is on this machine.
///
/// # Panics
///
/// If Narrows starts no program of that name.
pub fn missing_program(binary: &str) -> Option<&'static str> {
    let mut known = of_experiments().into_iter().chain(OTHERS);
    let program =
        known.find(|program| program.binary == binary).unwrap_or_else(|| panic!("unknown program `{binary}`"));
    program.find().is_err().then_some(program.install)
}

/// The programs of components and sidecars, each once, in the order in which they are first named.
fn of_experiments() -> Vec<&'static Program> {
    let of_components = components::ALL.iter().flat_map(|entry| entry.programs);
    let mut programs: Vec<&'static Program> = Vec::new();
    for program in of_components.copied().chain(sidecar::programs()) {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs
}

fn look_for(program: &'static Program) -> Check {
    match program.find() {
        Ok(found) => check(program.name, CheckStatus::Fine, found.path.display().to_string(), None),
        Err(lacking) => missing(program.name, &format!("{} ({})", lacking.binary, program.used_for), program.install),
    }
}

fn missing(name: &str, detail: &str, install: &str) -> Check {
    check(name, CheckStatus::Missing, detail, Some(install))
}

fn python_venv() -> Check {
    let works = std::process::Command::new("python3")
        .args(["-c", "import venv, ensurepip"])
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if works {
        check("Python venv", CheckStatus::Fine, "python3 -m venv works", None)
    } else {
        missing("Python venv", "python3 -m venv (the setup of Python services)", "apt-get install python3-venv")
    }
}
