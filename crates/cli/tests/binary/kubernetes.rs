//! `narrows kubernetes manifests`: those of `deploy/kubernetes` are what it prints now, and run on a real cluster where one
//! has been built.

use std::path::{Path, PathBuf};
use std::process::Command;

use narrows_testing::skip;

use crate::common::Bench;

/// Writes the manifests anew instead of comparing them.
const WRITE: &str = "NARROWS_WRITE";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files called `manifests.yaml` below a folder.
fn manifests_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let ours = files.into_iter().filter(|path| path.ends_with("manifests.yaml"));
    let mut found: Vec<_> = ours.chain(folders.iter().flat_map(|folder| manifests_below(folder))).collect();
    found.sort();
    found
}

#[test]
fn the_manifests_of_reference_systems_are_current() {
    let files = manifests_below(&root().join("deploy/kubernetes"));
    assert!(files.len() >= 4, "{files:?}");
    let mut stale = Vec::new();
    for file in files {
        let kept = std::fs::read_to_string(&file).unwrap();
        let command = kept.strip_prefix("# Made by `narrows ").and_then(|rest| rest.split_once('`'));
        let (arguments, _) = command.unwrap_or_else(|| panic!("{}: its first line is no command", file.display()));
        let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
            .args(arguments.split(' '))
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        let made = String::from_utf8(output.stdout).unwrap();
        if made != kept {
            stale.push(file.display().to_string());
            if std::env::var_os(WRITE).is_some() {
                std::fs::write(&file, made).unwrap();
            }
        }
    }
    assert!(stale.is_empty() || std::env::var_os(WRITE).is_some(), "not what narrows prints now: {stale:?}");
}

/// Needs the programs of testing/kubernetes/build.sh, and root.
#[test]
fn the_reference_systems_run_on_a_real_cluster() {
    if !root().join("target/kubernetes/kubernetes").is_file() || !rustix::process::geteuid().is_root() {
        skip("no Kubernetes to start: testing/kubernetes/build.sh builds one, and root starts it");
        return;
    }
    let proof = Command::new(root().join("testing/kubernetes/prove.sh"))
        .args([env!("CARGO_BIN_EXE_narrows"), "0.2"])
        .output()
        .unwrap();
    let said = [proof.stdout, proof.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(proof.status.success(), "{said}");
}

#[test]
fn an_experiment_without_images_is_refused_by_service() {
    let bench = Bench::new(
        "experiment: shop\n\
         system: { services: { shop: { run: [./shop, --port, \"${port}\"] } } }\n\
         load:\n  target: shop\n  scenarios: { main: { model: constant-vus, vus: 1, duration: 1s, request: GET / } }\n",
    );
    let refused = |arguments: &[&str]| {
        let output = bench.run(&[&["kubernetes", "manifests"], arguments].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refused(&[]),
        "error: `shop` runs `./shop` and has no `image`\nhint: name one that has the program: `image: registry/shop:1`\n"
    );
    assert!(
        refused(&["--variant", "other"]).starts_with("error: the experiment has no variant `other`\nhint: it has ")
    );
    assert!(refused(&["--only", "shp"]).contains("no service `shp`\nhint: did you mean `shop`?"));
    assert!(refused(&["missing.yaml"]).starts_with("error: "));
}
