//! The database servers that tests start: where their programs are.

use std::path::{Path, PathBuf};

use crate::{is_disabled, skip};

/// Where Debian puts PostgreSQL's programs: a folder for each version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";
const POSTGRES_PROGRAMS: [&str; 3] = ["psql", "initdb", "postgres"];
const POSTGRES_SKIP: &str = "NARROWS_TEST_SKIP_POSTGRES";

/// Folders that distributions put Galera's library in.
const GALERA_FOLDERS: [&str; 4] = ["/usr/lib/galera", "/usr/lib/galera-4", "/usr/lib64/galera-4", "/usr/lib"];
const GALERA_LIBRARY: &str = "libgalera_smm.so";

/// The folder of PostgreSQL's programs. Where they are missing or `NARROWS_TEST_SKIP_POSTGRES` disables them, there is none
/// and the test is skipped.
pub fn postgres_programs() -> Option<PathBuf> {
    if is_disabled(POSTGRES_SKIP) {
        skip(&format!("{POSTGRES_SKIP} is set"));
        return None;
    }
    let versions = std::fs::read_dir(POSTGRES_VERSIONS).into_iter().flatten().flatten();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = versions.map(|version| version.path().join("bin")).chain(std::env::split_paths(&path));
    let found = first_with_all(folders, &POSTGRES_PROGRAMS);
    if found.is_none() {
        skip("PostgreSQL is missing (Debian package postgresql)");
    }
    found
}

/// Whether Galera's library is installed; the test is skipped where it is not.
pub fn has_galera() -> bool {
    let found = first_with_all(GALERA_FOLDERS.map(PathBuf::from), &[GALERA_LIBRARY]);
    if found.is_none() {
        skip("Galera is missing (Debian package galera-4)");
    }
    found.is_some()
}

/// The first folder that holds files of all these names.
fn first_with_all(folders: impl IntoIterator<Item = PathBuf>, names: &[&str]) -> Option<PathBuf> {
    let is_whole = |folder: &Path| names.iter().all(|name| folder.join(name).is_file());
    folders.into_iter().find(|folder| is_whole(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_only_with_all_files() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = || [here.to_owned(), here.join("src")];
        assert_eq!(first_with_all(folders(), &["lib.rs", "databases.rs"]), Some(here.join("src")));
        assert_eq!(first_with_all(folders(), &["Cargo.toml"]), Some(here.to_owned()));
        assert_eq!(first_with_all(folders(), &["Cargo.toml", "lib.rs"]), None);
    }
}
