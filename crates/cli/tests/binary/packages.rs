//! Packages around the binary under test: `packaging/build` builds each, `packaging/check` installs it into a clean
//! environment and uses it. What only a release shows (the optimised binary, its size, the other processor) is in
//! `.github/workflows/release.yml`.

use std::path::{Path, PathBuf};

use narrows_testing::{foreign_command, has_programs, succeed};

use crate::common::text;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a package that were built and then worked, without their folder.
fn built_and_checked(package: &str) -> Vec<String> {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let binary = env!("CARGO_BIN_EXE_narrows");
    succeed(&mut foreign_command(
        &root(),
        &["packaging/build", "--fast", "--binary", binary, "--out", folder, package],
    ));
    let files = std::fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<String> = files.filter(|path| path.is_file()).map(|path| path.display().to_string()).collect();
    let names = files.iter().map(String::as_str);
    succeed(&mut foreign_command(&root(), &["packaging/check"].into_iter().chain(names).collect::<Vec<_>>()));
    files.iter().map(|file| file.replace(folder, "")).collect()
}

#[test]
fn the_archive_works_where_it_is_unpacked() {
    assert_eq!(built_and_checked("archive").len(), 1);
}

#[test]
fn the_debian_package_is_installed_and_removed() {
    if has_programs(&["cargo-deb", "dpkg"]) && is_root() {
        assert_eq!(built_and_checked("deb").len(), 1);
    }
}

#[test]
fn the_wheel_is_installed_and_lists_its_crates() {
    if has_programs(&["maturin", "python3"]) {
        let files = built_and_checked("sbom");
        assert!(files.iter().any(|file| file.ends_with(".whl")) && files.iter().any(|file| file.ends_with(".json")));
    }
}

#[test]
fn the_image_serves_every_reference_service() {
    if has_programs(&["podman"]) && is_root() {
        assert_eq!(built_and_checked("image").len(), 1);
    }
}

/// Whether this user may install packages and start containers; the test is skipped where not.
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        narrows_testing::skip("only root may install packages");
    }
    is_root
}

#[test]
fn a_package_that_does_not_work_fails_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = foreign_command(folder.path(), &[root().join("packaging/check").to_str().unwrap(), "narrows.zip"]);
    std::fs::write(folder.path().join("narrows.zip"), "").unwrap();
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("narrows.zip is no package"), "{}", text(&output.stderr));
    let binary = folder.path().join("missing");
    let build = ["packaging/build", "--binary", binary.to_str().unwrap(), "archive"];
    let output = foreign_command(&root(), &build).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("missing does not exist"), "{}", text(&output.stderr));
}

/// Packages that the release profile leaves unoptimised are named in the profile of packages, which inherits from it.
#[test]
fn packages_are_optimised_everywhere() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let sections = manifest.split("[profile.release.package.").skip(1);
    let unoptimised: Vec<&str> =
        sections.filter_map(|section| section.split_once("]\nopt-level = 0\n").map(|(name, _)| name)).collect();
    let (_, dist) = manifest.split_once("[profile.dist.package]").unwrap();
    let missing: Vec<_> = unoptimised.iter().filter(|name| !dist.contains(&format!("\n{name} = "))).collect();
    assert!(!unoptimised.is_empty() && missing.is_empty(), "not in [profile.dist.package]: {missing:?}");
}
