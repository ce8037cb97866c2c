//! Programs that tests need, and the variables that disable groups of tests.

use std::path::{Path, PathBuf};

use crate::skip;

/// Folders of system programs that may be missing in a user's `PATH`.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Whether an executable file of this name lies in `PATH` or in a folder of system programs.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = SYSTEM_FOLDERS.iter().map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|folder| is_executable(&folder.join(name)))
}

/// Whether all these programs are installed; the test is skipped where one is missing.
pub fn has_programs(names: &[&str]) -> bool {
    let missing: Vec<&str> = names.iter().copied().filter(|name| !has_program(name)).collect();
    if !missing.is_empty() {
        skip(&format!("{} missing", missing.join(", ")));
    }
    missing.is_empty()
}

/// Whether the environment disables a group of tests: `variable` is set to `1`.
pub fn is_disabled(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_found_and_an_invented_program_is_not() {
        assert!(has_program("sh"));
        assert!(!has_program("no-such-program-anywhere"));
    }
}
