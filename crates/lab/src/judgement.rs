//! Objectives over a load: each is judged by the requests it covers, over the time of the whole load.

use narrows_model::comparison::{Kept, ObjectiveResult, Subject};
use narrows_model::counting::{self, Phase};
use narrows_model::evidence::TrialEvidence;
use narrows_model::load::{LoadProgram, LoadSecond, ReportedLoad, Threshold};

use crate::experiment::Objective;

/// Result of an objective over these rows.
pub(crate) fn judged<'a>(
    objective: &Objective,
    rows: impl IntoIterator<Item = (&'a LoadSecond, Phase)>,
) -> ObjectiveResult {
    objective.evaluate(&counting::totals(rows, |row| objective.covers(row)))
}

/// Results of objectives over the counted rows of a trial, followed by the thresholds of the program that sent the
/// load.
pub(crate) fn of_trial(objectives: &[Objective], trial: &TrialEvidence) -> Vec<ObjectiveResult> {
    let mut results = match trial.reported_load() {
        Some(load) => reported(objectives, load),
        None => counted(objectives, trial),
    };
    results.extend(trial.trial.load_program.iter().flat_map(thresholds));
    results
}

fn reported(objectives: &[Objective], load: &ReportedLoad) -> Vec<ObjectiveResult> {
    objectives.iter().map(|objective| objective.evaluate_reported(load)).collect()
}

fn thresholds(program: &LoadProgram) -> impl Iterator<Item = ObjectiveResult> {
    program.thresholds.iter().map(|Threshold { text, is_crossed }| ObjectiveResult {
        text: format!("{}: {text}", program.name),
        subject: Subject::Other,
        measured: if *is_crossed { "crossed" } else { "not crossed" }.to_owned(),
        kept: if *is_crossed { Kept::No } else { Kept::Yes },
    })
}

fn counted(objectives: &[Objective], trial: &TrialEvidence) -> Vec<ObjectiveResult> {
    objectives.iter().map(|objective| judged(objective, trial.counted_rows())).collect()
}

#[cfg(test)]
mod tests {
    use narrows_model::load::LatencyFigures;

    use super::*;

    #[test]
    fn what_the_loads_program_reports_decides() {
        let latency = LatencyFigures { mean_ns: Some(12.5e6), p95_ns: Some(30e6), ..LatencyFigures::default() };
        let load = ReportedLoad { seconds: 2.0, requests: 200, failed: 20, due: 0, dropped: 0, latency };
        let thresholds = [("http_req_failed: rate<0.01", true), ("iterations: count>1", false)];
        let thresholds = thresholds.map(|(text, is_crossed)| Threshold { text: text.into(), is_crossed }).to_vec();
        let program = LoadProgram { name: "k6".into(), thresholds, reported: Some(load) };
        let source =
            "objectives: [error_rate < 1%, p95 < 1s, rate >= 90/s, p99 < 1s, \"shop: p95 < 1s\", dropped_rate < 1%]";
        let mut results = reported(&crate::experiment::RecordedExperiment::read(source).objectives, &load);
        results.extend(super::thresholds(&program));
        let rows: Vec<_> = results.iter().map(|r| (r.text.as_str(), r.measured.as_str(), r.kept)).collect();
        let unknown = "not reported by the load's program";
        assert_eq!(
            rows,
            [
                ("error_rate < 1%", "10 %", Kept::No),
                ("p95 < 1s", "30.0 ms", Kept::Yes),
                ("rate >= 90/s", "90.0/s", Kept::Yes),
                ("p99 < 1s", unknown, Kept::Unknown),
                ("shop: p95 < 1s", unknown, Kept::Unknown),
                ("dropped_rate < 1%", unknown, Kept::Unknown),
                ("k6: http_req_failed: rate<0.01", "crossed", Kept::No),
                ("k6: iterations: count>1", "not crossed", Kept::Yes),
            ]
        );
    }

    #[test]
    fn an_objective_sees_only_what_it_is_about() {
        let row = |request: &str, at: i64, latency_ns| {
            let mut row = LoadSecond {
                scenario: "shop".into(),
                request: request.into(),
                start_ns: at,
                succeeded: 10,
                ..LoadSecond::default()
            };
            row.latency.record_n(latency_ns, 10);
            row
        };
        let rows = [row("login", 0, 1_000_000), row("pay", 0, 9_000_000), row("pay", 1_000_000_000, 9_000_000)];
        let rows = || rows.iter().map(|row| (row, Phase::Sending));
        let of = |request: &str| {
            let source = format!("objectives: [{{ objective: \"max < 5ms\", scenario: shop{request} }}]");
            judged(&crate::experiment::RecordedExperiment::read(&source).objectives[0], rows()).kept
        };
        assert_eq!((of(", request: login"), of(", request: pay"), of("")), (Kept::Yes, Kept::No, Kept::No));
    }
}
