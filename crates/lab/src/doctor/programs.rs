//! Servers and tools that experiments may start, with the Debian package that has each.

use std::path::{Path, PathBuf};

use super::{Check, Standing, check};

/// A program, where it may lie beside `PATH`, and the Debian package that has it.
struct Program {
    name: &'static str,
    used_for: &'static str,
    binary: &'static str,
    folders: &'static [&'static str],
    package: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program { name: "Python", used_for: "Python services", binary: "python3", folders: &[], package: "python3" },
    Program {
        name: "PostgreSQL",
        used_for: "database services",
        binary: "postgres",
        folders: &["/usr/lib/postgresql"],
        package: "postgresql",
    },
    Program {
        name: "MariaDB",
        used_for: "database services",
        binary: "mariadbd",
        folders: &["/usr/sbin"],
        package: "mariadb-server",
    },
    Program { name: "NGINX", used_for: "proxies", binary: "nginx", folders: &["/usr/sbin"], package: "nginx" },
    Program { name: "HAProxy", used_for: "proxies", binary: "haproxy", folders: &["/usr/sbin"], package: "haproxy" },
    Program { name: "Envoy", used_for: "proxies", binary: "envoy", folders: &[], package: "" },
    Program {
        name: "NATS",
        used_for: "messaging",
        binary: "nats-server",
        folders: &["/usr/sbin"],
        package: "nats-server",
    },
    Program {
        name: "Chromium",
        used_for: "looking at reports without a screen",
        binary: "chromium",
        folders: &[],
        package: "chromium",
    },
];

/// The wsrep provider is a library, not a program.
const GALERA: &[&str] = &["/usr/lib/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so"];

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = PROGRAMS.iter().map(look_for).collect();
    checks.insert(1, python_venv());
    checks.insert(4, galera());
    checks
}

fn look_for(program: &Program) -> Check {
    match find(program.binary, program.folders) {
        Some(path) => check(program.name, Standing::Fine, path.display().to_string(), None),
        None if program.package.is_empty() => check(
            program.name,
            Standing::Missing,
            format!("{} ({})", program.binary, program.used_for),
            Some("put it on PATH; Debian has no package"),
        ),
        None => missing(program.name, &format!("{} ({})", program.binary, program.used_for), program.package),
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

fn galera() -> Check {
    match GALERA.iter().find(|path| Path::new(path).exists()) {
        Some(path) => check("Galera", Standing::Fine, *path, None),
        None => missing("Galera", "libgalera_smm.so (MariaDB clusters)", "galera-4"),
    }
}

fn find(binary: &str, folders: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(folders.iter().flat_map(|folder| with_versions(Path::new(folder))))
        .map(|folder| folder.join(binary))
        .find(|candidate| candidate.is_file())
}

/// The folder itself and `bin` below its version folders, newest first: `/usr/lib/postgresql/15/bin`.
fn with_versions(folder: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .collect();
    versions.sort();
    versions.reverse();
    versions.insert(0, folder.to_owned());
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_path_and_version_folders() {
        assert!(find("sh", &[]).is_some());
        assert!(find("no-such-program", &["/usr/lib"]).is_none());
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("15/bin")).unwrap();
        assert!(with_versions(root.path()).contains(&root.path().join("15/bin")));
    }
}
