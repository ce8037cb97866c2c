//! `narrows predict`: what a change would gain, from a recorded run, and what is refused.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::common::{Bench, text};

/// The recording of the demo drone-delivery.
fn recording() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/corpus/recorded/drone-delivery.json.gz");
    file.to_string_lossy().into_owned()
}

#[test]
fn the_changes_that_findings_suggest_are_predicted() {
    let bench = Bench::new("");
    let run = format!("{}:test-2", recording());
    let predicted = bench.run(&["predict", &run]);
    let said = text(&predicted.stdout);
    assert_eq!(predicted.status.code(), Some(0), "{said}{}", text(&predicted.stderr));
    assert!(said.starts_with("test-2\n") && said.contains("as it is"), "{said}");
    assert!(said.contains("parallelize=") && said.contains("assumes"), "{said}");
    let sentence = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(sentence.contains("In test-2, querying only the partition that is needed in dronescheduler GET"), "{said}");
}

#[test]
fn a_change_that_is_named_is_predicted_at_each_level() {
    let bench = Bench::new("");
    let run = format!("{}:test-2", recording());
    let change = "parallelize=GET /api/dronedeliveries/utilization";
    let predicted = bench.run(&["predict", &run, "--change", change, "--json"]);
    let json: Value = serde_json::from_slice(&predicted.stdout).unwrap();
    assert_eq!(json["format"], "narrows-predictions/1");
    let one = &json["trials"][0]["predictions"][0];
    assert_eq!(one["change"]["kind"], "parallelize");
    assert_eq!(one["because"], Value::Null);
    assert!(one["after"]["rate"]["value"].as_f64() > one["now"]["rate"].as_f64(), "{one:#}");
    assert!(one["levels"].as_array().is_some_and(|levels| levels.len() > 5), "{one:#}");
}

#[test]
fn a_prediction_is_compared_with_what_was_measured() {
    let bench = Bench::new("");
    let run = |variant: &str| format!("{}:{variant}", recording());
    let change = ["--change", "parallelize=GET /api/dronedeliveries/utilization"];
    let compared = |after: &str| bench.run(&[&["predict", &run("test-2")][..], &change, &["--of", after]].concat());
    let said = text(&compared(&run("test-3")).stdout);
    let row = said.lines().find(|line| line.starts_with("test-3")).unwrap_or_else(|| panic!("{said}"));
    assert!(said.contains("then measured in") && row.contains("rate") && row.ends_with(['✓', '✗']), "{said}");
    let several = compared(&recording());
    assert_eq!(several.status.code(), Some(2));
    let why = text(&several.stderr);
    assert!(why.contains("has 7 trials, expected one to compare with") && why.contains("test-1, test-2"), "{why}");
    let alone = bench.run(&["predict", &run("test-2"), "--of", &run("test-3")]);
    assert_eq!(alone.status.code(), Some(2), "without a change there is nothing to compare");
}

/// A recorded program of the zoo.
fn zoo(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/zoo/recorded/{name}.json.gz"));
    file.to_string_lossy().into_owned()
}

/// The faulty variant of go/search alone, changed, as a file of evidence.
fn changed(bench: &Bench, name: &str, change: fn(&mut Value)) -> String {
    let recorded = GzDecoder::new(BufReader::new(File::open(zoo("go-search")).unwrap()));
    let mut evidence: Value = serde_json::from_reader(recorded).unwrap();
    let trials = evidence["trials"].as_array_mut().unwrap();
    trials.retain(|trial| trial["trial"]["variant"] == "faulty");
    change(&mut trials[0]);
    let mut out = GzEncoder::new(File::create(bench.path(name)).unwrap(), Compression::fast());
    out.write_all(evidence.to_string().as_bytes()).unwrap();
    out.finish().unwrap();
    name.to_owned()
}

#[test]
fn runs_that_do_not_show_enough_are_refused_with_one_clause() {
    let bench = Bench::new("");
    let no_traces = changed(&bench, "no-traces.json.gz", |trial| trial["traces"] = json!([]));
    let no_cpu = changed(&bench, "no-cpu.json.gz", |trial| {
        let is_other = |series: &Value| series["key"]["name"] != "process.cpu.cores";
        trial["series"].as_array_mut().unwrap().retain(is_other);
    });
    let invalid = changed(&bench, "invalid.json.gz", |trial| {
        trial["trial"]["validity"]["verdict"] = json!("invalid");
        trial["trial"]["validity"]["reasons"] = json!(["The generator was late."]);
    });
    let one_level = changed(&bench, "one-level.json.gz", |trial| {
        let mut steady = 0;
        trial["windows"].as_array_mut().unwrap().retain(|window| {
            steady += usize::from(window["kind"] == "steady");
            window["kind"] != "steady" || steady == 1
        });
    });
    let parallel = "parallelize=GET /search";
    for (arguments, said) in [
        (vec![no_traces.as_str(), "--change", parallel], "faulty: it has no traces, which `parallelize` is read from"),
        (vec![no_cpu.as_str(), "--change", parallel], "faulty: the CPU of its services was not sampled"),
        (vec![invalid.as_str(), "--change", parallel], "faulty: its figures are invalid: The generator was late"),
        (
            vec![one_level.as_str(), "--change", "more-load=40"],
            "faulty: it has one level of load, and `more-load` needs two",
        ),
        (
            vec![no_traces.as_str(), "--change", "drop-call=redis"],
            "faulty: it has no traces, which `drop-call` is read from",
        ),
    ] {
        let refused = bench.run(&[&["predict"][..], &arguments].concat());
        let why = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {why}");
        assert!(why.starts_with(&format!("error: cannot predict from {said}\n")), "{arguments:?}: {why}");
        assert!(why.lines().all(|line| line.starts_with("error: ") || line.starts_with("hint: ")), "{why}");
    }
    let alone = bench.run(&["predict", "--score", &one_level]);
    assert_eq!(alone.status.code(), Some(2));
    let why = text(&alone.stderr);
    assert!(why.starts_with("error: nothing to score: the run has no variant that made a change"), "{why}");
}

#[test]
fn predictions_are_scored_against_what_variants_measured() {
    let bench = Bench::new("");
    let scored = bench.run(&["predict", "--score", &zoo("go-search"), &zoo("rust-hello")]);
    let said = text(&scored.stdout);
    assert_eq!(scored.status.code(), Some(0), "{said}{}", text(&scored.stderr));
    assert!(said.contains("| go-search faulty → healthy | parallelize |"), "{said}");
    assert!(
        said.contains("\n1 prediction of 1 kind of change, 0 without spans. ✗")
            && said.contains("| – Amdahl's law | 1 |"),
        "{said}"
    );
    let json = bench.run(&["predict", "--score", "--json", &zoo("go-search")]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["format"], &json["predictions"][0]["run"]), (&json!("narrows-score/1"), &json!("go-search")));
    assert!(json["accuracy"]["all"]["mean_error"].as_f64() < Some(0.1), "{json:#}");
    let several = bench.run(&["predict", &zoo("go-search"), &zoo("rust-hello")]);
    assert_eq!(several.status.code(), Some(2), "only --score takes several runs");
    let empty = bench.run(&["predict", "--score"]);
    assert_eq!(empty.status.code(), Some(2), "no runs folder");
}

#[test]
fn recorded_runs_are_predicted_as_well_as_the_docs_say() {
    let bench = Bench::new("");
    let folder = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join(name).to_string_lossy().into_owned();
    let demo = |name: &str| folder(&format!("../diagnose/corpus/recorded/{name}.json.gz"));
    let demos = ["customer-360", "drone-delivery", "hello-cities", "micron"].map(demo);
    let zoo = folder("../../examples/zoo/recorded");
    let runs: Vec<&str> = demos.iter().chain([&zoo]).map(String::as_str).collect();
    let scored = bench.run(&[&["predict", "--score", "--json"][..], &runs].concat());
    let json: Value = serde_json::from_slice(&scored.stdout).unwrap();
    let accuracy = &json["accuracy"];
    let of = |whose: &str, what: &str| accuracy[whose][what].as_f64().unwrap();
    assert!(accuracy["all"]["count"].as_u64() >= Some(20), "{accuracy:#}");
    has_many_kinds_of_programs(json["predictions"].as_array().unwrap());
    assert!(of("all", "rate_error") <= 0.10 && of("all", "mean_error") <= 0.15, "{accuracy:#}");
    // They should hold 0.9.
    assert!((0.80..=0.97).contains(&of("all", "held")), "{accuracy:#}");
    for rule in ["share_removed", "amdahl"] {
        for what in ["rate_error", "mean_error"] {
            assert!(of("comparable", what) < of(rule, what), "{rule} beats the model: {accuracy:#}");
        }
    }
}

#[test]
fn the_table_of_limits_has_the_figures_that_its_command_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks/predictions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| ["));
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split('|').map(str::trim).collect()).collect();
    assert!(rows.len() >= 7, "{rows:#?}");
    let bench = Bench::new("");
    for row in rows {
        let [_, program, _, _, _, change, predicted, measured, ..] = row[..] else { panic!("{row:?}") };
        let recorded = zoo(&program.split(['[', ']']).nth(1).unwrap().replace('/', "-"));
        let [faulty, healthy] = ["faulty", "healthy"].map(|variant| format!("{recorded}:{variant}"));
        let compared =
            bench.run(&["predict", &faulty, "--change", change.trim_matches('`'), "--of", &healthy, "--json"]);
        let json: Value = serde_json::from_slice(&compared.stdout).unwrap_or_else(|_| panic!("{compared:?}"));
        let one = &json["trials"][0]["predictions"][0];
        let levels =
            [&one["levels"], &one["measured"]["levels"]].map(|levels| levels.as_array().unwrap().last().unwrap());
        let printed = [&levels[0]["after"]["rate"]["value"], &levels[1]["rate"]].map(|rate| rate.as_f64().unwrap());
        // The model may become a little better or worse before the page is written anew.
        let is_near = |cell: &str, printed: f64| (rate(cell) / printed - 1.0).abs() < 0.1;
        assert!(is_near(predicted, printed[0]) && is_near(measured, printed[1]), "{row:?} {printed:?}");
    }
}

/// The last rate of a cell of the page, such as `161/s` of `46.0/s → 161/s`.
fn rate(cell: &str) -> f64 {
    let (_, last) = cell.rsplit_once("→ ").unwrap_or(("", cell));
    last.trim_end_matches(" ✗").trim_end_matches("/s").parse().unwrap()
}

/// Checks that the programs of the zoo among these predictions are many, of many kinds of change and of all languages, and half
/// of them without spans.
fn has_many_kinds_of_programs(predictions: &[Value]) {
    let of_program = |one: &&Value| one["before"] == "faulty";
    let programs: Vec<&Value> = predictions.iter().filter(of_program).collect();
    let different = |of: fn(&Value) -> &str| programs.iter().map(|one| of(one)).collect::<BTreeSet<_>>().len();
    let kinds = different(|one| one["prediction"]["change"]["kind"].as_str().unwrap());
    let languages = different(|one| one["run"].as_str().unwrap().split('-').next().unwrap());
    let without_spans = programs.iter().filter(|one| one["has_spans"] == false).count();
    assert!(programs.len() >= 40 && kinds >= 12 && languages == 5, "{} {kinds} {languages}", programs.len());
    assert!(2 * without_spans >= programs.len(), "{without_spans} of {}", programs.len());
}

#[test]
fn findings_carry_what_their_fix_would_gain() {
    let bench = Bench::new("");
    let run = zoo("go-search");
    let said = text(&bench.run(&["diagnose", &run]).stdout).to_owned();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("would gain parallelize: mean "), "{said}");
    let json: Value = serde_json::from_slice(&bench.run(&["diagnose", &run, "--json"]).stdout).unwrap();
    let trials = json["trials"].as_array().unwrap();
    let faulty = trials.iter().find(|trial| trial["label"] == "faulty").unwrap();
    let gain = &faulty["findings"][0]["gain"];
    assert_eq!(gain["change"]["kind"], "parallelize", "{gain:#}");
    assert!(gain["predicted"]["after"]["mean_ns"]["value"].as_f64() < gain["predicted"]["now"]["mean_ns"].as_f64());
}

#[test]
fn predicted_stands_beside_measured_where_a_later_variant_made_the_change() {
    let bench = Bench::new("");
    let said = text(&bench.run(&["diagnose", &recording()]).stdout).to_owned();
    assert!(said.contains("predicted → measured") && said.contains("test-2 → test-3"), "{said}");
}

#[test]
fn what_cannot_be_predicted_is_refused_with_one_clause() {
    let bench = Bench::new("");
    let span = json!({ "traceID": "1", "spanID": "a", "operationName": "GET /", "references": [], "processID": "p1",
        "startTime": 1_700_000_000_000_000_i64, "duration": 1000, "tags": [] });
    let processes = json!({ "p1": { "serviceName": "shop", "tags": [] } });
    let traces = json!({ "data": [{ "traceID": "1", "spans": [span], "processes": processes }] });
    std::fs::write(bench.path("traces.json"), traces.to_string()).unwrap();
    assert!(bench.run(&["import", "traces.json", "--out", "imported.narrows"]).status.success());
    let run = format!("{}:test-2", recording());
    for (arguments, said) in [
        (vec!["imported.narrows"], "error: cannot predict from imported: it has no load that Narrows sent\n"),
        (
            vec![run.as_str(), "--change", "paralelize=x"],
            "error: no change is called `paralelize`\nhint: there are add-cpu, ",
        ),
        (
            vec![run.as_str(), "--change", "add-cpu=shop,0"],
            "error: `add-cpu` has the amount `0`, expected a number above 0\n",
        ),
        (
            vec![run.as_str(), "--change", "add-cpu=shop"],
            "error: cannot predict from test-2: it has no `shop` for `add-cpu`\n",
        ),
        (vec!["missing.narrows"], "error: "),
    ] {
        let refused = bench.run(&[&["predict"][..], &arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused.stderr).starts_with(said), "{arguments:?}: {}", text(&refused.stderr));
    }
}
