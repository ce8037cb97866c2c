//! The model of `narrows predict` reproduces the recorded faulty runs of the zoo's programs.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::common::Bench;

/// Programs that are reproduced within a tenth at each level of the load, as throughput and mean latency, at least.
const REPRODUCED_MIN: usize = 50;
/// Programs that are reproduced within a tenth or the noise of as many requests as a level has, at least.
const TRUSTED_MIN: usize = 55;

#[test]
fn the_faulty_runs_of_the_zoo_are_reproduced_at_every_level_of_load() {
    let bench = Bench::new("");
    let (mut reproduced, mut trusted, mut missed) = (0, 0, Vec::new());
    for program in programs() {
        let Some(misses) = misses(&bench, &program) else { continue };
        reproduced += usize::from(misses.iter().all(|miss| miss.share <= 0.1));
        let is_trusted = misses.iter().all(|miss| miss.share <= miss.noise.max(0.1));
        trusted += usize::from(is_trusted);
        if !is_trusted {
            missed.push(program.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    assert!(reproduced >= REPRODUCED_MIN && trusted >= TRUSTED_MIN, "{reproduced}, {trusted}: {missed:?}");
}

/// How far the model is off at a level.
struct Miss {
    /// The larger one of throughput and mean latency, as a share of the measured value.
    share: f64,
    /// Two standard errors of the mean of so many requests, as a share.
    noise: f64,
}

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/zoo/recorded");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "gz")).collect()
}

/// The misses of each level of a program's faulty run; `None` if it has no model, as under an invalid load.
fn misses(bench: &Bench, program: &Path) -> Option<Vec<Miss>> {
    let json = bench.run(&["predict", &program.to_string_lossy(), "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).ok()?;
    let faulty = json["trials"].as_array()?.iter().find(|trial| trial["trial"] == "faulty")?;
    let miss = |level: &Value| {
        let off = |model: &str, measured: &str| {
            (level[model].as_f64().unwrap() / level["measured"][measured].as_f64().unwrap() - 1.0).abs()
        };
        Miss {
            share: off("model_rate", "rate").max(off("model_mean_ns", "mean_ns")),
            noise: 2.0 / level["requests"].as_f64().unwrap().sqrt(),
        }
    };
    Some(faulty["baseline"].as_array()?.iter().map(miss).collect())
}
