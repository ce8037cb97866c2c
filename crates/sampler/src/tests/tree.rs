//! A tree of files that looks like `/proc`, for what cannot be had from a real one at will.

use std::fs;
use std::path::Path;

use crate::files::Files;

/// Removed when it is dropped.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    pub(crate) fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write("stat", "cpu 100 5 50 800 40 1 2 7 90 0\n");
        tree
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    pub(crate) fn files(&self) -> Files {
        Files::new(self.path())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn link(&self, path: &str, target: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub(crate) fn remove(&self, path: &str) {
        let path = self.0.path().join(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// A process's line; `rest` begins with its state.
    pub(crate) fn process(&self, pid: u32, rest: &str) {
        self.write(&format!("{pid}/stat"), &format!("{pid} (shop) {rest}\n"));
    }

    /// A thread's line: its CPU time and start, in ticks.
    pub(crate) fn thread(&self, pid: u32, tid: u32, ticks: u64, started: u64) {
        let line = format!("{tid} (worker) R 1 {pid} {pid} 0 0 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 9\n");
        self.write(&format!("{pid}/task/{tid}/stat"), &line);
    }

    pub(crate) fn schedule(&self, pid: u32, tid: u32, run_ns: u64, times_run: u64) {
        self.write(&format!("{pid}/task/{tid}/schedstat"), &format!("{run_ns} 7 {times_run}\n"));
    }

    pub(crate) fn switches(&self, pid: u32, tid: u32, voluntary: u64, involuntary: u64) {
        let text =
            format!("Name:\tx\nvoluntary_ctxt_switches:\t{voluntary}\nnonvoluntary_ctxt_switches:\t{involuntary}\n");
        self.write(&format!("{pid}/task/{tid}/status"), &text);
    }

    /// A file in a folder of control groups that lies in the tree; gives the folder.
    pub(crate) fn group(&self, folder: &str, files: &[(&str, &str)]) -> String {
        files.iter().for_each(|(name, text)| self.write(&format!("{folder}/{name}"), text));
        Path::new(self.path()).join(folder).to_str().unwrap().to_owned()
    }
}
