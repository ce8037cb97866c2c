//! The rules of the house that the compiler does not know, as tests over the manifests and the source tree.
//!
//! Each rule collects everything that breaks it and fails once with the places, as `file:line: what is wrong`.
//! A line counts as test code from `#[cfg(test)]` on its own line to the end of its file, and in `tests/` and
//! `benches/`. The words looked for are put together from two halves here, so that this file does not find itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// Crates of `crates/` that may depend on more than `narrows-model`. The telemetry receiver uses the engines' library
/// for accepting connections, agents that for connecting to NATS, and crates that read a user's files use the library for opening them.
const JOINERS: [(&str, &[&str]); 8] = [
    ("narrows-model", &[]),
    ("narrows-load", &["narrows-model", "narrows-files"]),
    ("narrows-agents", &["narrows-model", "narrows-load", "narrows-nats", "narrows-sampler", "narrows-telemetry"]),
    ("narrows-telemetry", &["narrows-model", "narrows-files", "narrows-listener"]),
    ("narrows-sampler", &["narrows-model", "narrows-telemetry"]),
    ("narrows-report", &["narrows-model", "narrows-diagnose"]),
    (
        "narrows-serve",
        &[
            "narrows-model",
            "narrows-diagnose",
            "narrows-lab",
            "narrows-listener",
            "narrows-query",
            "narrows-report",
            "narrows-serving",
            "narrows-telemetry",
        ],
    ),
    (
        "narrows-lab",
        &[
            "narrows-model",
            "narrows-agents",
            "narrows-files",
            "narrows-load",
            "narrows-nats",
            "narrows-sampler",
            "narrows-telemetry",
            "narrows-diagnose",
            "narrows-predict",
        ],
    ),
];
/// Engines that are libraries, for programs to embed.
const EMBEDDED: [&str; 6] = [
    "engines/durable",
    "engines/durable-servers",
    "engines/listener",
    "engines/nats",
    "engines/serving",
    "engines/system",
];
const COMMAND_LINE: &str = "narrows";
const PURE_CRATES: [&str; 5] = ["model", "diagnose", "report", "query", "predict"];
const DETECTORS: &str = "crates/diagnose/src/detectors";
const KINDS: &str = "crates/model/src/finding/evidence/mod.rs";
const FINDING_PAGES: &str = "docs/reference/findings";
const LOAD_MODELS: &str = "crates/load/src/models";
const SYSTEMS: &str = "crates/cli/src/systems.rs";

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata();
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = text(package, "name");
        let manifest = relative(Path::new(&text(package, "manifest_path")));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let Some(path) = dependency["path"].as_str() else { continue };
            let (target, target_dir) = (text(dependency, "name"), relative(Path::new(path)));
            let is_dev = dependency["kind"].as_str() == Some("dev");
            if let Some(why) = forbidden(&name, &manifest, &target, &target_dir, is_dev) {
                faults.push(format!("{}: {name} depends on {target}, but {why}", place_of(&manifest, &target)));
            }
        }
    }
    assert_tidy(&faults);
}

fn forbidden(name: &str, manifest: &str, target: &str, target_dir: &str, is_dev: bool) -> Option<&'static str> {
    if is_dev && target == "narrows-testing" {
        return None;
    }
    let (in_crates, in_systems) = (target_dir.starts_with("crates/"), target_dir.starts_with("systems/"));
    if manifest.starts_with("systems/") {
        let is_embedded = EMBEDDED.contains(&target_dir);
        return (!is_embedded).then_some("a system stands alone: it meets the rest over the wire only");
    }
    if !manifest.starts_with("crates/") {
        return (in_crates || in_systems).then_some("engines know nothing of crates/ nor of systems/");
    }
    if target == COMMAND_LINE {
        return Some("nothing depends on the command line");
    }
    if name == COMMAND_LINE || (is_dev && target == "narrows-testkit") {
        return None;
    }
    let allowed = JOINERS.iter().find(|(joiner, _)| *joiner == name).map_or(&["narrows-model"][..], |(_, list)| list);
    (!allowed.contains(&target)).then_some("only the crates in its row of the tidy test are allowed")
}

/// `n-plus-one` as `NPlusOne`.
fn camel_case(id: &str) -> String {
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    id.split('-').map(capitalised).collect()
}

#[test]
fn every_detector_is_registered_and_has_its_page() {
    let mut faults = Vec::new();
    let registry = read(&format!("{DETECTORS}/mod.rs"));
    let mut ids = BTreeSet::new();
    for module in folders_in(DETECTORS) {
        let id = module.replace('_', "-");
        let file = format!("{DETECTORS}/{module}/mod.rs");
        if !declares(&registry, &module) {
            faults.push(format!("{DETECTORS}/mod.rs:1: `mod {module};` is missing"));
        }
        if !registry.contains(&format!("    {module}::{}, \"{id}\";\n", camel_case(&id))) {
            faults.push(format!("{DETECTORS}/mod.rs:1: `{module}::{}` is missing", camel_case(&id)));
        }
        let kind = camel_case(&id);
        if !read(&file).contains(&format!("FindingKind::{kind}")) {
            faults.push(format!("{file}:1: it should find `FindingKind::{kind}`, as the file is named"));
        }
        if !read(KINDS).contains(&format!("{kind} => \"{id}\", {module};")) {
            faults.push(format!("{KINDS}:1: `{kind} => \"{id}\", {module};` is missing"));
        }
        if !read(&format!("{FINDING_PAGES}/{id}.md")).starts_with(&format!("# {id}\n")) {
            faults.push(format!("{FINDING_PAGES}/{id}.md:1: should exist and open with `# {id}`"));
        }
        ids.insert(id);
    }
    for page in stems_in(FINDING_PAGES, "md").into_iter().filter(|page| page != "README" && !ids.contains(page)) {
        faults.push(format!("{FINDING_PAGES}/{page}.md:1: there is no detector of this name"));
    }
    assert!(!ids.is_empty(), "no detectors found in {DETECTORS}");
    assert_tidy(&faults);
}

#[test]
fn every_load_model_is_declared() {
    let registry = read(&format!("{LOAD_MODELS}/mod.rs")) + &read(&format!("{LOAD_MODELS}.rs"));
    let faults: Vec<String> = modules_in(LOAD_MODELS)
        .into_iter()
        .filter(|module| !declares(&registry, module))
        .map(|module| format!("{LOAD_MODELS}/mod.rs:1: `mod {module};` is missing"))
        .collect();
    assert_tidy(&faults);
}

#[test]
fn every_reference_system_is_registered_and_described() {
    let systems: Vec<String> = project_files()
        .iter()
        .filter_map(|file| Some(file.strip_prefix("systems/")?.strip_suffix("/Cargo.toml")?.to_owned()))
        .collect();
    assert!(!systems.is_empty(), "no reference systems found in systems/");
    assert_tidy(&systems.iter().flat_map(|name| faults_of_system(name, read)).collect::<Vec<_>>());
}

/// Faults of a reference system's registration and description. `text_of` reads a file.
fn faults_of_system(name: &str, text_of: impl Fn(&str) -> String) -> Vec<String> {
    let (page, demo) = (format!("systems/{name}/README.md"), format!("systems/{name}/src/demo.rs"));
    let mut faults = Vec::new();
    let mut require = |file: &str, text: String| {
        if !text_of(file).contains(&text) {
            faults.push(format!("{file}:1: `{}` is missing", text.trim()));
        }
    };
    require(SYSTEMS, format!(": narrows_{}, DEMO", name.replace('-', "_")));
    require(&demo, format!("name: \"{name}\""));
    require(&page, format!("# {name}\n"));
    require("ARCHITECTURE.md", format!("| `systems/{name}` |"));
    require("README.md", format!("(systems/{name}/README.md)"));
    faults
}

#[test]
fn every_module_says_what_it_is_for() {
    let faults: Vec<String> = rust_files()
        .into_iter()
        .filter(|file| !read(file).lines().find(|line| !line.trim().is_empty()).unwrap_or("").starts_with("//!"))
        .map(|file| format!("{file}:1: the module does not open with `//!`"))
        .collect();
    assert_tidy(&faults);
}

/// Words that the field does not use for what they stood for, and what it writes. Each is broken by an escape, so that this
/// list does not find itself.
const PLAIN_WORDS: [(&str, &str); 10] = [
    ("ans\u{77}er", "response"),
    ("asked in va\u{69}n", "retried"),
    ("fn to\u{6c}d(", "describe"),
    ("for wa\u{6e}t of", "because … is missing"),
    ("la\u{63}ks", "does not have"),
    ("me\u{6e}ded", "fixed"),
    ("pati\u{65}nce", "timeout"),
    ("stret\u{63}h", "interval"),
    ("turned aw\u{61}y", "refused"),
    ("wait\u{65}d in vain", "timed out"),
];

/// True if a line holds a word, not as the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphabetic()))
}

#[test]
fn words_are_plain() {
    let mut faults = Vec::new();
    for file in project_files().into_iter().filter(|file| [".rs", ".md", ".yaml"].iter().any(|end| file.ends_with(end)))
    {
        for (number, line) in read(&file).lines().enumerate() {
            let line = line.to_lowercase();
            let found = PLAIN_WORDS.iter().filter(|(word, _)| has_word(&line, word));
            faults.extend(found.map(|(word, plain)| format!("{file}:{}: `{word}`: write `{plain}`", number + 1)));
        }
    }
    assert_tidy(&faults);
}

/// Comment lines of each folder that still have to be read twice, see [`is_slow`]. The numbers only fall.
const SLOW_COMMENTS: &[(&str, usize)] = &[("crates/cli", 6)];

/// Whether a comment has to be read twice: it does not begin with what its item is, or states an option the long way.
fn is_slow(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
    let comment = comment.trim_start_matches(['/', '!', ' ']);
    let options = ["none when", "none where", "none if", "none for"];
    comment.starts_with("What ") || options.iter().any(|option| comment.to_lowercase().contains(option))
}

#[test]
fn comments_are_read_once() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for file in rust_files() {
        let folder: String = file.split('/').take(2).collect::<Vec<_>>().join("/");
        *found.entry(folder).or_default() += read(&file).lines().filter(|line| is_slow(line)).count();
    }
    let budget = |folder: &str| SLOW_COMMENTS.iter().find(|(known, _)| *known == folder).map_or(0, |(_, most)| *most);
    let odd = found.iter().filter(|(folder, count)| **count != budget(folder));
    let faults: Vec<String> = odd
        .map(|(folder, count)| {
            let most = budget(folder);
            format!("{folder}: {count} comments open with \"What\" or say `none when`, expected {most}; lower it if they are fewer")
        })
        .collect();
    assert_tidy(&faults);
}

#[test]
fn the_tests_of_a_package_are_one_binary() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    assert_tidy(&packages.iter().filter_map(fault_of_test_binaries).collect::<Vec<_>>());
}

fn fault_of_test_binaries(package: &Value) -> Option<String> {
    let targets = package["targets"].as_array().expect("targets");
    let tests = targets.iter().filter(|target| target["kind"][0] == "test");
    let names: Vec<String> = tests.map(|target| text(target, "name")).collect();
    let manifest = relative(Path::new(&text(package, "manifest_path")));
    let fault =
        format!("{manifest}:1: several binaries of tests, each compiled and linked by itself: {}", names.join(", "));
    (names.len() > 1).then_some(fault)
}

/// Tests in a file without a `mod` line are never compiled.
#[test]
fn every_file_of_a_test_binary_is_declared() {
    let mut faults = Vec::new();
    for main in rust_files().into_iter().filter(|file| file.contains("/tests/") && file.ends_with("/main.rs")) {
        let (folder, declared) = (main.trim_end_matches("/main.rs"), read(&main));
        for module in modules_in(folder).into_iter().chain(folders_in(folder)).filter(|module| module != "main") {
            if !declares(&declared, &module) {
                faults.push(format!("{main}:1: `mod {module};` is missing"));
            }
        }
    }
    assert_tidy(&faults);
}

#[test]
fn nothing_is_left_undone_or_switched_off() {
    let words = [concat!("to", "do!("), concat!("unimple", "mented!("), concat!("#[ig", "nore")];
    assert_tidy(&find_in(&rust_files(), &words, Scope::AllCode));
}

#[test]
fn only_the_command_line_prints() {
    let words = [concat!("print", "ln!("), concat!("pri", "nt!("), concat!("db", "g!(")];
    let files: Vec<String> = rust_files()
        .into_iter()
        .filter(|file| ["crates/", "engines/", "systems/"].iter().any(|folder| file.starts_with(folder)))
        .filter(|file| !file.starts_with("crates/cli/") && !file.ends_with("/build.rs"))
        .collect();
    assert_tidy(&find_in(&files, &words, Scope::NonTestCode));
}

#[test]
fn pure_crates_read_no_clock() {
    let words = [concat!("SystemTime", "::now"), concat!("Instant", "::now")];
    let files: Vec<String> = rust_files()
        .into_iter()
        .filter(|file| PURE_CRATES.iter().any(|name| file.starts_with(&format!("crates/{name}/"))))
        .collect();
    assert_tidy(&find_in(&files, &words, Scope::AllCode));
}

#[test]
fn only_the_command_line_exits() {
    let files: Vec<String> = rust_files().into_iter().filter(|file| !file.starts_with("crates/cli/")).collect();
    assert_tidy(&find_in(&files, &[concat!("process", "::exit")], Scope::NonTestCode));
}

#[test]
fn no_file_speaks_of_the_place_it_was_written_in() {
    let words = [concat!("/wo", "rk/"), concat!("/fa", "rm/")];
    let mut faults = Vec::new();
    for file in project_files() {
        let Ok(content) = std::fs::read_to_string(root().join(&file)) else { continue };
        for (number, line) in content.lines().enumerate() {
            if words.iter().any(|word| starts_a_path(line, word)) {
                faults.push(format!("{file}:{}: names a directory of one machine: {}", number + 1, line.trim()));
            }
        }
    }
    assert_tidy(&faults);
}

#[test]
fn the_rules_see_what_they_forbid() {
    let code = "fn a() {}\n// pri\u{6e}tln!(\n  pri\u{6e}tln!(\"x\");\n#[cfg(test)]\nmod tests { fn b() { pri\u{6e}tln!(); } }\n";
    let word = [concat!("print", "ln!(")];
    let lines = |scope| hits(code, &word, scope).into_iter().map(|(line, _)| line).collect::<Vec<_>>();
    assert_eq!(lines(Scope::NonTestCode), [3]);
    assert_eq!(lines(Scope::AllCode), [3, 5]);
    let package = |kinds: [&str; 2]| json!({ "targets": kinds.map(|kind| json!({ "name": "a", "kind": [kind] })) });
    assert!(fault_of_test_binaries(&package(["test", "test"])).is_some());
    assert!(fault_of_test_binaries(&package(["test", "lib"])).is_none());
    assert_eq!(faults_of_system("new-one", |_| String::new()).len(), 5);
    assert_eq!(faults_of_system("micron", |file| if file == SYSTEMS { String::new() } else { read(file) }).len(), 1);
    assert!(has_word("it was me\u{6e}ded", "me\u{6e}ded") && !has_word("recom\u{6d}ended", "me\u{6e}ded"));
    assert!(starts_a_path("see /wo\u{72}k/main", concat!("/wo", "rk/")));
    assert!(!starts_a_path("src/wo\u{72}k/main.rs", concat!("/wo", "rk/")));
    for (name, manifest, target, dir, is_dev, is_fault) in [
        ("narrows-load", "crates/load/Cargo.toml", "narrows-model", "crates/model", false, false),
        ("narrows-load", "crates/load/Cargo.toml", "narrows-testkit", "crates/testkit", true, false),
        ("narrows-load", "crates/load/Cargo.toml", "narrows-telemetry", "crates/telemetry", false, true),
        ("narrows-load", "crates/load/Cargo.toml", "narrows-listener", "engines/listener", false, true),
        ("narrows-telemetry", "crates/telemetry/Cargo.toml", "narrows-listener", "engines/listener", false, false),
        ("narrows-telemetry", "crates/telemetry/Cargo.toml", "narrows-serving", "engines/serving", false, true),
        ("narrows-listener", "engines/listener/Cargo.toml", "narrows-model", "crates/model", false, true),
        ("narrows-model", "crates/model/Cargo.toml", "narrows-load", "crates/load", false, true),
        ("narrows-lab", "crates/lab/Cargo.toml", "narrows-load", "crates/load", false, false),
        ("narrows-lab", "crates/lab/Cargo.toml", "narrows", "crates/cli", false, true),
        ("narrows", "crates/cli/Cargo.toml", "narrows-report", "crates/report", false, false),
        ("docstore", "engines/docstore/Cargo.toml", "narrows-model", "crates/model", true, true),
        ("docstore", "engines/docstore/Cargo.toml", "narrows-drones", "systems/drones", false, true),
        ("narrows-drones", "systems/drones/Cargo.toml", "narrows-model", "crates/model", true, true),
        ("narrows-drones", "systems/drones/Cargo.toml", "serving", "engines/serving", false, false),
        ("narrows-drones", "systems/drones/Cargo.toml", "narrows-micron", "systems/micron", false, true),
        ("narrows-drones", "systems/drones/Cargo.toml", "docstore", "engines/docstore", false, true),
        ("narrows-drones", "systems/drones/Cargo.toml", "narrows-durable", "engines/durable", false, false),
        ("narrows-drones", "systems/drones/Cargo.toml", "narrows-listener", "engines/listener", false, false),
        ("narrows", "crates/cli/Cargo.toml", "narrows-drones", "systems/drones", false, false),
    ] {
        assert_eq!(forbidden(name, manifest, target, dir, is_dev).is_some(), is_fault, "{name} → {target}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Scope {
    AllCode,
    NonTestCode,
}

fn find_in(files: &[String], words: &[&str], scope: Scope) -> Vec<String> {
    assert!(!files.is_empty(), "no files to look at");
    let mut faults = Vec::new();
    for file in files {
        let is_test_file = file.contains("/tests/") || file.contains("/benches/");
        if is_test_file && scope == Scope::NonTestCode {
            continue;
        }
        for (line, word) in hits(&read(file), words, scope) {
            faults.push(format!("{file}:{line}: `{word}` has no place here"));
        }
    }
    faults
}

fn hits<'a>(code: &str, words: &[&'a str], scope: Scope) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let line = line.trim_start();
        if scope == Scope::NonTestCode && line == "#[cfg(test)]" {
            break;
        }
        if line.starts_with("//") {
            continue;
        }
        found.extend(words.iter().find(|word| line.contains(**word)).map(|word| (number + 1, *word)));
    }
    found
}

fn starts_a_path(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ']'))
    })
}

fn assert_tidy(faults: &[String]) {
    assert!(faults.is_empty(), "{} places are not tidy:\n{}", faults.len(), faults.join("\n"));
}

fn declares(registry: &str, module: &str) -> bool {
    let ending = format!("mod {module};");
    registry.lines().any(|line| line.trim().strip_suffix(&ending).is_some_and(|head| !head.contains("//")))
}

fn modules_in(dir: &str) -> Vec<String> {
    stems_in(dir, "rs").into_iter().filter(|stem| stem != "mod").collect()
}

/// The folders that hold a `mod.rs`.
fn folders_in(dir: &str) -> Vec<String> {
    let prefix = format!("{dir}/");
    let folder = |file: String| Some(file.strip_prefix(&prefix)?.strip_suffix("/mod.rs")?.to_owned());
    project_files().into_iter().filter_map(folder).filter(|folder| !folder.contains('/')).collect()
}

fn stems_in(dir: &str, extension: &str) -> Vec<String> {
    let prefix = format!("{dir}/");
    let ending = format!(".{extension}");
    project_files()
        .into_iter()
        .filter_map(|file| Some(file.strip_prefix(&prefix)?.strip_suffix(&ending)?.to_owned()))
        .filter(|stem| !stem.contains('/'))
        .collect()
}

fn rust_files() -> Vec<String> {
    project_files().into_iter().filter(|file| file.ends_with(".rs")).collect()
}

/// Every file that git tracks or would track, relative to the root.
fn project_files() -> Vec<String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success());
    let mut files: Vec<String> = match listing {
        Some(output) => String::from_utf8_lossy(&output.stdout).split('\0').map(str::to_owned).collect(),
        None => walk(),
    };
    files.retain(|file| !file.is_empty() && root().join(file).is_file());
    files.sort();
    files.dedup();
    files
}

/// The same without git, as in a source archive.
fn walk() -> Vec<String> {
    let mut open = vec![root()];
    let mut files = Vec::new();
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_skipped = ["target", ".git", "runs", "node_modules", ".venv"].iter().any(|skipped| name == *skipped);
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !is_skipped => open.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(relative(&entry.path())),
                _ => {}
            }
        }
    }
    files
}

fn metadata() -> Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON")
}

fn place_of(manifest: &str, dependency: &str) -> String {
    let line = read(manifest).lines().position(|line| line.starts_with(dependency)).map_or(1, |at| at + 1);
    format!("{manifest}:{line}")
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    crates.parent().expect("the workspace").to_owned()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).to_string_lossy().into_owned()
}

/// A file's text; empty when there is no such file.
fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_default()
}

#[test]
fn each_row_of_the_dependency_table_names_a_crate() {
    let packages: BTreeMap<String, ()> = metadata()["packages"]
        .as_array()
        .expect("packages")
        .iter()
        .map(|package| (text(package, "name"), ()))
        .collect();
    for (joiner, allowed) in JOINERS {
        for name in allowed.iter().chain([&joiner]) {
            assert!(
                packages.contains_key(*name),
                "the dependency table names {name}, which is no crate of the workspace"
            );
        }
    }
}
