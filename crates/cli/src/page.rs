//! The report page of a run: where it lies, and how it comes to a browser.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use narrows_model::comparison::Outcome as Concluded;

use crate::exit::Failure;
use crate::{commands, stderr};

/// How long a program that opens pages may take to fail; one that runs longer shows the page.
const OPEN_TIMEOUT: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);
/// The desktop's program for pages.
const OPENER: &str = "xdg-open";
/// Programs of `$BROWSER` that are tried at most.
const BROWSERS_MAX: usize = 8;

/// The page's place beside a run file: the same name, with another ending.
pub(crate) fn beside(run: &Path) -> Result<PathBuf, Failure> {
    let page = run.with_extension("html");
    if page == run {
        return Err(Failure::new(format!("expected a run file, found {}, where the report would lie", run.display()))
            .hint("name it without `.html`, such as `--out demo.narrows`"));
    }
    Ok(page)
}

/// Writes the page.
pub(crate) fn write(page: &Path, outcome: &Concluded) -> Result<(), Failure> {
    commands::write_to(page, &narrows_report::html::page(outcome)).map(drop)
}

/// Opens the page in a browser; prints where it is when no program can.
pub(crate) fn open(page: &Path) {
    let mut failures = Vec::new();
    for command in openers(std::env::var("BROWSER").unwrap_or_default().as_str(), page) {
        match start(&command) {
            None => return,
            Some(reason) => failures.push(format!("{} could not open it ({reason})", command[0])),
        }
    }
    stderr::say(&format!("{}; open {} in a browser", failures.join("; "), page.display()));
}

/// The commands that may open a page: those of `$BROWSER`, which a colon separates, then the desktop's. `%s` stands for the
/// page, which comes last where it is missing.
fn openers(browsers: &str, page: &Path) -> Vec<Vec<String>> {
    let page = page.to_string_lossy();
    let command = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(|word| word.replace("%s", &page)).collect();
        if !text.contains("%s") {
            words.push(page.to_string());
        }
        words
    };
    let browsers = browsers.split(':').filter(|text| !text.trim().is_empty()).take(BROWSERS_MAX);
    browsers.chain([OPENER]).map(command).collect()
}

/// Starts a command that opens a page. Why it failed, if it did so soon.
fn start(command: &[String]) -> Option<String> {
    let quiet = || Stdio::null();
    // In a group of its own: Ctrl-C in this terminal is not meant for a browser.
    let mut starting = Command::new(&command[0]);
    starting.args(&command[1..]).process_group(0).stdin(quiet()).stdout(quiet()).stderr(quiet());
    match starting.spawn() {
        Ok(child) => failed_soon(child),
        Err(error) => Some(error.to_string()),
    }
}

/// Why a program failed, if it did so soon.
fn failed_soon(mut child: Child) -> Option<String> {
    let deadline = Instant::now() + OPEN_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return (!status.success()).then(|| status.to_string()),
            Err(error) => return Some(error.to_string()),
            Ok(None) if Instant::now() >= deadline => return None,
            Ok(None) => std::thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_never_takes_the_place_of_its_run_file() {
        assert_eq!(beside(Path::new("runs/a.narrows")).unwrap(), Path::new("runs/a.html"));
        assert!(beside(Path::new("runs/a.html")).is_err());
    }

    #[test]
    fn browsers_come_before_the_desktops_program() {
        let said = |browsers| -> Vec<String> {
            openers(browsers, Path::new("a b.html")).iter().map(|words| words.join("|")).collect()
        };
        assert_eq!(said(""), ["xdg-open|a b.html"]);
        assert_eq!(
            said("firefox --new-tab: :w3m file=%s"),
            ["firefox|--new-tab|a b.html", "w3m|file=a b.html", "xdg-open|a b.html"]
        );
    }
}
