//! Agents that sent the load, and what was lost with one.

use narrows_model::caveat::TrialCaveat;
use narrows_model::load::{LostShare, PartSummary};
use narrows_model::run::Verdict;
use narrows_model::units;

use super::Context;
use crate::section::{Block, Column, Figure, Phrase, Row, Section, Table, Tone};

/// Meaning of some columns.
const NOTE: &str = "Clock: that of the agent's machine less this one's, which all times are corrected by, and how far off that may \
                    be. CPU: of its load threads, each a core at most.";

/// The table; without blocks if no agent sent anything.
pub(super) fn section(context: &Context<'_>) -> Section {
    let trials = context.outcome.evidence.trials.iter().map(|evidence| &evidence.trial);
    let rows: Vec<Row> = trials
        .flat_map(|trial| {
            let label = trial.label();
            trial.caveats.iter().filter_map(move |caveat| match caveat {
                TrialCaveat::SentByAgent { part } => Some(row(&label, part)),
                _ => None,
            })
        })
        .collect();
    if rows.is_empty() {
        return Section::default();
    }
    let columns = vec![
        Column::left("variant").short("agents"),
        Column::left("agent"),
        Column::left("labels"),
        Column::right("threads"),
        Column::right("requests"),
        Column::right("CPU"),
        Column::right("clock"),
        Column::left("state"),
    ];
    let blocks = vec![Block::Table(Table::new(columns, rows)), Block::Note(Phrase::from(NOTE))];
    Section::new("agents", "Agents", blocks)
}

fn row(label: &str, part: &PartSummary) -> Row {
    let offset = units::duration(part.clock.offset_ns.unsigned_abs() as f64);
    let sign = if part.clock.offset_ns < 0 { "−" } else { "+" };
    let cells = [
        label,
        &part.agent,
        &part.labels.join(", "),
        &format!("{} of {}", part.threads, part.of),
        &units::count(part.sent),
        &if part.lost.is_some() { "–".to_owned() } else { units::percent(part.cpu) },
        &format!("{sign}{offset} ± {}", units::duration(part.clock.uncertainty_ns as f64)),
    ];
    Row::new(cells.map(Figure::new).into_iter().chain([state(part)]))
}

fn state(part: &PartSummary) -> Figure {
    match (&part.lost, part.verdict) {
        (Some(LostShare { from_s, until_s: None, .. }), _) => {
            Figure::new(format!("lost at {from_s:.0} s")).tone(Tone::Bad)
        }
        (Some(LostShare { from_s, until_s: Some(until_s), .. }), _) => {
            Figure::new(format!("lost at {from_s:.0} s, taken over at {until_s:.0} s")).tone(Tone::Bad)
        }
        (None, Verdict::Valid) => Figure::new("valid").tone(Tone::Good),
        (None, Verdict::Doubtful) => Figure::new("doubtful"),
        (None, Verdict::Invalid) => Figure::new("invalid").tone(Tone::Bad),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::ClockOffset;

    fn part(lost: Option<LostShare>) -> PartSummary {
        let clock = ClockOffset { offset_ns: -1_250_000, uncertainty_ns: 40_000 };
        PartSummary {
            agent: "one".into(),
            labels: vec!["zone=a".into()],
            cores: 2,
            first: 0,
            threads: 2,
            of: 4,
            clock,
            sent: 12_345,
            cpu: 0.25,
            verdict: Verdict::Valid,
            lost,
        }
    }

    #[test]
    fn an_agent_is_told_with_its_clock_and_a_lost_one_with_its_loss() {
        let text = |part: &PartSummary| format!("{:?}", row("plain", part));
        let valid = text(&part(None));
        for expected in ["one", "zone=a", "2 of 4", "12,345", "25 %", "−1.25 ms ± 40.0 µs", "valid"] {
            assert!(valid.contains(expected), "{expected} in {valid}");
        }
        let lost = LostShare { share: 0.5, from_s: 12.0, until_s: Some(14.0), reason: "was silent".into() };
        assert!(text(&part(Some(lost))).contains("lost at 12 s, taken over at 14 s"));
    }
}
