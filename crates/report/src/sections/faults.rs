//! Faults that the experiment specifies, and how the load came through each.

use narrows_model::caveat::{FaultAction, TrialCaveat};
use narrows_model::load::{Recovery, RecoveryEnd};
use narrows_model::units;

use super::Context;
use crate::section::{Block, Column, Figure, Phrase, Row, Section, Table, Tone};

/// Meaning of the last columns.
const NOTE: &str = "Failed: requests from the fault to the recovery, or to the end of the load. Recovered: time until as many \
                    requests succeeded as before, to the second.";

/// The table; without blocks if no fault happened.
pub(super) fn section(context: &Context<'_>) -> Section {
    let rows: Vec<Row> = context
        .outcome
        .evidence
        .trials
        .iter()
        .flat_map(|evidence| {
            let label = evidence.trial.label();
            evidence.trial.caveats.iter().filter_map(move |caveat| row(&label, caveat))
        })
        .collect();
    if rows.is_empty() {
        return Section::default();
    }
    let columns = vec![
        Column::left("variant").short("faults"),
        Column::left("replica"),
        Column::left("fault"),
        Column::right("after"),
        Column::right("failed"),
        Column::right("recovered"),
    ];
    let blocks = vec![Block::Table(Table::new(columns, rows)), Block::Note(Phrase::from(NOTE))];
    Section::new("faults", "Faults", blocks)
}

/// Row of a caveat, if it is about a fault that happened.
fn row(label: &str, caveat: &TrialCaveat) -> Option<Row> {
    let TrialCaveat::Fault { replica, action, after_ns, at_ns, recovery } = caveat else { return None };
    let action = match action {
        FaultAction::Killed => "killed".to_owned(),
        FaultAction::Restarted => "restarted".to_owned(),
        FaultAction::Started => "started again".to_owned(),
        FaultAction::Paused(ns) => format!("paused for {}", units::duration(*ns)),
        FaultAction::NotRunning => "not running".to_owned(),
    };
    let cells = [label, replica, &action, &units::duration(*after_ns), &units::count(recovery.errors.total())];
    Some(Row::new(cells.map(Figure::new).into_iter().chain([recovered(recovery, *at_ns)])))
}

fn recovered(recovery: &Recovery, at_ns: i64) -> Figure {
    match recovery.end {
        _ if recovery.usual.is_none() => Figure::unknown(),
        RecoveryEnd::Unfelt => Figure::new("not affected").tone(Tone::Good),
        RecoveryEnd::Recovered => Figure::new(units::duration(recovery.until_ns.saturating_sub(at_ns).max(0) as f64)),
        RecoveryEnd::LoadEnded => Figure::new("not before the end").tone(Tone::Bad),
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::load::ErrorCounts;

    use super::super::{in_page, in_terminal};
    use super::*;
    use crate::fixture;

    fn fault(replica: &str, action: FaultAction, end: RecoveryEnd) -> TrialCaveat {
        let errors = ErrorCounts { connect: 1_200, ..ErrorCounts::default() };
        let until_ns = 12_500_000_000;
        let recovery = Recovery { usual: Some(100.0), errors, ended: 0, silent_seconds: 1, until_ns, end };
        TrialCaveat::Fault { replica: replica.to_owned(), action, after_ns: 4e9, at_ns: 10_000_000_000, recovery }
    }

    #[test]
    fn each_fault_is_a_row() {
        let mut outcome = fixture::outcome();
        assert_eq!(in_terminal(section, &outcome, 100), "");
        outcome.evidence.trials[0].trial.caveats =
            vec![TrialCaveat::NoSpans, fault("store[2]", FaultAction::Killed, RecoveryEnd::Recovered)];
        outcome.evidence.trials[1].trial.caveats =
            vec![fault("store", FaultAction::Paused(1e9), RecoveryEnd::LoadEnded)];
        insta::assert_snapshot!(in_terminal(section, &outcome, 100), @r"
        faults  replica   fault               after  failed           recovered
        ───────────────────────────────────────────────────────────────────────
        as-is   store[2]  killed             4.00 s   1,200              2.50 s
        fixed   store     paused for 1.00 s  4.00 s   1,200  not before the end
        Failed: requests from the fault to the recovery, or to the end of the load. Recovered: time until as
        many requests succeeded as before, to the second.
        ");
        let page = in_page(section, &outcome);
        assert!(page.contains("id=\"faults\"") && page.contains("not before the end"), "{page}");
    }
}
