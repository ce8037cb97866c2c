//! Where run files go by default: `runs/NAME-YYYYMMDD-HHMMSS.narrows` below the current folder.

use std::path::{Path, PathBuf};

/// The folder for run files.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("NARROWS_RUNS").map_or_else(|| PathBuf::from("runs"), PathBuf::from)
}

/// A path for a new run of an experiment that no file has yet.
pub(crate) fn new_path(experiment: &str) -> PathBuf {
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let base = format!("{experiment}-{stamp}");
    let candidates = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}-{n}")));
    let mut paths = candidates.map(|name| folder().join(name).with_extension("narrows"));
    paths.find(|path| !path.exists()).unwrap_or_else(|| folder().join(base))
}

/// The run file that a command's `RUN` names: a path, or a name in the runs folder; without one, the newest there.
pub(crate) fn find(run: Option<&Path>) -> Result<PathBuf, crate::exit::Failure> {
    match run {
        Some(path) => named(path).ok_or_else(|| {
            crate::exit::Failure::new(format!("no run file {}", path.display()))
                .hint(format!("run files are kept in {}/; `ls {0}` lists them", folder().display()))
        }),
        None => newest().ok_or_else(|| {
            crate::exit::Failure::new(format!("{}/ holds no run file", folder().display()))
                .hint("`narrows run experiment.yaml` makes one")
        }),
    }
}

fn named(path: &Path) -> Option<PathBuf> {
    let in_folder = folder().join(path);
    let candidates = [path.to_owned(), in_folder.clone(), in_folder.with_extension("narrows")];
    candidates.into_iter().find(|candidate| candidate.is_file())
}

/// The names of the run files in the runs folder, in order.
pub(crate) fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).into_iter().flatten().flatten().map(|entry| entry.path());
    let runs = entries.filter(|path| path.extension().is_some_and(|extension| extension == "narrows"));
    let mut names: Vec<String> = runs.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}

fn newest() -> Option<PathBuf> {
    let files = std::fs::read_dir(folder()).ok()?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let changed = path.metadata().ok()?.modified().ok()?;
        (path.extension()? == "narrows").then_some((changed, path))
    });
    files.max().map(|(_, path)| path)
}

/// The run files and files of evidence in a folder, by name.
pub(crate) fn runs_in(folder: &Path) -> Result<Vec<PathBuf>, crate::exit::Failure> {
    let cannot = |error: &std::io::Error| {
        crate::exit::Failure::new(format!("cannot read the folder {}: {error}", folder.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| cannot(&error))?;
    let is_run = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.is_file() && (name.ends_with(".narrows") || name.ends_with(".json.gz"))
    };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_run).collect();
    if files.is_empty() {
        return Err(crate::exit::Failure::new(format!("{} holds no run", folder.display())));
    }
    files.sort();
    Ok(files)
}
