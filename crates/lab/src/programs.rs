//! Servers and tools that experiments may start: where they lie and what installs them.
//!
//! Each component says itself which programs it needs; `narrows doctor` lists all of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program, where it may lie beside `PATH`, and what installs it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// For people.
    pub(crate) name: &'static str,
    /// Purpose, in a word or two.
    pub(crate) used_for: &'static str,
    /// Executed program.
    pub(crate) binary: &'static str,
    /// Other programs that it is of no use without. They are looked for beside it first.
    pub(crate) tools: &'static [&'static str],
    /// Folders that may be missing in `PATH`; version folders below them count too (`15/bin`).
    pub(crate) folders: &'static [&'static str],
    /// Command that installs it: of Debian, or of Python's package index.
    pub(crate) install: &'static str,
}

/// A program that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundProgram {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its tools and their paths.
    tools: Vec<(&'static str, PathBuf)>,
}

impl FoundProgram {
    /// The path of one of the program's tools, or its bare name for whoever asks for another.
    pub(crate) fn tool(&self, name: &str) -> PathBuf {
        let tool = self.tools.iter().find(|(known, _)| *known == name);
        tool.map_or_else(|| PathBuf::from(name), |(_, path)| path.clone())
    }
}

/// Part of a program that is not on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingPart {
    /// The program, or that of its tools which is not there.
    pub(crate) binary: &'static str,
    /// Where it was looked for, in words.
    pub(crate) places: String,
}

impl Program {
    /// Looks for it and its tools in `PATH` and in its folders.
    pub(crate) fn find(&'static self) -> Result<FoundProgram, MissingPart> {
        self.find_in(std::env::var_os("PATH"))
    }

    fn find_in(&'static self, path: Option<OsString>) -> Result<FoundProgram, MissingPart> {
        let folders: Vec<PathBuf> = std::env::split_paths(&path.unwrap_or_default())
            .chain(self.folders.iter().flat_map(|folder| with_versions(Path::new(folder))))
            .collect();
        let missing = |binary| MissingPart { binary, places: self.places() };
        let path = first_with(self.binary, &folders).ok_or_else(|| missing(self.binary))?;
        let beside = path.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned()));
        let near: Vec<PathBuf> = beside.into_iter().chain(folders).collect();
        let tool = |name: &&'static str| first_with(name, &near).map(|path| (*name, path)).ok_or_else(|| missing(name));
        Ok(FoundProgram { path, tools: self.tools.iter().map(tool).collect::<Result<_, _>>()? })
    }

    fn places(&self) -> String {
        std::iter::once("PATH").chain(self.folders.iter().copied()).collect::<Vec<_>>().join(", ")
    }
}

fn first_with(binary: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(binary)).find(|candidate| candidate.is_file())
}

/// The folder itself and `bin` below its version folders, newest first: `/usr/lib/postgresql/15/bin`.
fn with_versions(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut versions: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path().join("bin")))).collect();
    versions.sort();
    let versions = versions.into_iter().rev().map(|(_, path)| path);
    std::iter::once(folder.to_owned()).chain(versions).collect()
}

/// The first number of a version such as `15` or `9.6`.
fn version(name: &str) -> Option<u32> {
    name.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    static SHELL: Program = Program {
        name: "Shell",
        used_for: "",
        binary: "sh",
        tools: &["no-such-tool"],
        folders: &[],
        install: "apt-get install dash",
    };
    static NOWHERE: Program = Program {
        name: "Nothing",
        used_for: "",
        binary: "no-such-program",
        tools: &[],
        folders: &["/usr/lib", "/no/such/folder"],
        install: "apt-get install nothing",
    };

    #[test]
    fn what_is_missing_is_named_with_the_places() {
        let missing = NOWHERE.find().unwrap_err();
        assert_eq!((missing.binary, missing.places.as_str()), ("no-such-program", "PATH, /usr/lib, /no/such/folder"));
        assert_eq!(SHELL.find().unwrap_err().binary, "no-such-tool");
        assert_eq!(SHELL.find_in(None).unwrap_err().binary, "sh");
    }

    #[test]
    fn programs_are_found_in_path_before_their_folders_and_tools_beside_them() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for name in ["sh", "no-such-tool"] {
            std::fs::write(bin.join(name), "").unwrap();
        }
        let path = OsString::from_vec(bin.as_os_str().as_encoded_bytes().to_vec());
        let found = SHELL.find_in(Some(path)).unwrap();
        assert_eq!(found.path, bin.join("sh"));
        assert_eq!(found.tool("no-such-tool"), bin.canonicalize().unwrap().join("no-such-tool"));
    }

    #[test]
    fn the_newest_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "16", "share"] {
            std::fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let expected = ["", "16/bin", "15/bin", "9.6/bin"].map(|path| root.path().join(path));
        assert_eq!(with_versions(root.path()), expected);
    }
}
