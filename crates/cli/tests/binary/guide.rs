//! The guide in `docs/guide`: every command in its pages still ends as the page states, with output of the same shape.
//!
//! `docs/guide/update` runs the commands. The pages start a Python service with packages from PyPI;
//! `NARROWS_TEST_SKIP_PYTHON=1` leaves them out.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Bench, end, has_caps, text};
use narrows_testing::{has_programs, is_disabled, measure, skip};

fn guide() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide")
}

/// Runs a copy of `update` with the tested binary first on `PATH`.
fn update(program: &Path, scratch: &Path, arguments: &[&str]) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_narrows")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(binary).chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new("python3");
    command.arg(program).arg("--scratch").arg(scratch).args(arguments).env("PATH", path);
    end(command)
}

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_pages_show_what_the_commands_print_about_one_version() {
    let pages = ["getting-started", "reading-a-report", "finding-the-knee", "what-would-it-gain"];
    check_pages("one-version", &pages);
}

#[test]
fn the_pages_show_what_the_commands_print_about_two_versions() {
    check_pages("two-versions", &["comparing-versions", "which-service", "in-ci"]);
}

fn check_pages(scratch: &str, pages: &[&str]) {
    if is_disabled("NARROWS_TEST_SKIP_PYTHON") {
        return skip("NARROWS_TEST_SKIP_PYTHON is set");
    }
    if !has_programs(&["python3", "bash"]) || !has_caps() {
        return;
    }
    // Not a temporary folder, so that the packages of the service stay installed.
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide").join(scratch);
    measure(|| {
        let output = update(&guide().join("update"), &scratch, &[&["--check"], pages].concat());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    });
}

#[test]
fn every_page_is_checked() {
    let program = std::fs::read_to_string(guide().join("update")).unwrap();
    let (_, pages) = program.split_once("PAGES = [").unwrap();
    let (pages, _) = pages.split_once(']').unwrap();
    let test = include_str!("guide.rs");
    for page in pages.split('"').skip(1).step_by(2) {
        assert!(test.contains(&format!("\"{page}\"")), "{page} is in no test");
    }
}

#[test]
fn a_page_that_differs_from_the_output_is_reported_and_rewritten() {
    if !has_programs(&["python3", "bash"]) {
        return;
    }
    let bench = Bench::new("");
    std::fs::create_dir(bench.path("shop")).unwrap();
    std::fs::copy(guide().join("update"), bench.path("update")).unwrap();
    let page = bench.path("page.md");
    let run = |arguments: &[&str]| {
        let output = update(&bench.path("update"), &bench.path("scratch"), arguments);
        (output.status.code(), said(&output))
    };

    std::fs::write(&page, "<!-- run -->\n```console\n$ echo took 7 ms\nold output\n```\n").unwrap();
    let (code, said) = run(&["--check", "page"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("page.md:1: the shape of the output differs"), "{said}");
    assert_eq!(run(&["page"]), (Some(0), String::new()));
    let rewritten = std::fs::read_to_string(&page).unwrap();
    assert_eq!(rewritten, "<!-- run -->\n```console\n$ echo took 7 ms\ntook 7 ms\n```\n");

    // Another figure has the same shape.
    std::fs::write(&page, rewritten.replace("\ntook 7 ms", "\ntook 1,234.5 ms")).unwrap();
    assert_eq!(run(&["--check", "page"]), (Some(0), String::new()));

    std::fs::write(&page, "<!-- run check=\"echo took 9 ms\" -->\n```console\n$ sleep 600\ntook 7 ms\n```\n").unwrap();
    assert_eq!(run(&["--check", "page"]), (Some(0), String::new()), "what prints the same in less time");

    std::fs::write(&page, "<!-- run exit=1 -->\n```sh\ntrue\n```\n").unwrap();
    let (code, said) = run(&["--check", "page"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("ended with exit code 0, expected 1"), "{said}");
}
