//! What is needed to believe the run or to repeat it. Validity under the lead, caveats under the findings; at the foot of
//! the page parameters, machine, the experiment file.

use std::collections::{BTreeMap, BTreeSet};

use narrows_model::comparison::Outcome;
use narrows_model::run::{TrialState, Verdict};
use narrows_model::units;

use super::escape::{Esc, cut};
use crate::caveats::Caveat;
use crate::figures::{instant, known, plural};
use crate::unfinished::until_then;

/// Characters of the experiment file shown.
const SOURCE_CHARS_MAX: usize = 60_000;

/// Reasons to distrust a number, right under the lead; empty when there are none.
pub(super) fn warnings(outcome: &Outcome) -> String {
    let mut items = Vec::new();
    for evidence in &outcome.evidence.trials {
        let trial = &evidence.trial;
        let label = Esc(trial.label()).to_string();
        let not_done = match trial.state {
            TrialState::Done => None,
            TrialState::Planned => Some("was not begun"),
            TrialState::Running => Some("is still running"),
            TrialState::Interrupted => Some("was cut short; its numbers are partial"),
            TrialState::Failed => Some("failed"),
        };
        if let Some(text) = not_done {
            let error = trial.error.as_deref().map_or(String::new(), |error| format!(": {}", Esc(error)));
            let measured = until_then(evidence).map_or(String::new(), |text| format!("; {}", Esc(text)));
            items.push(format!("<b>{label}</b> {text}{error}{measured}"));
        }
        let reasons = Esc(trial.validity.reasons.join(" "));
        match trial.validity.verdict {
            Verdict::Valid => {}
            Verdict::Doubtful => items.push(format!("<b>{label}</b> is doubtful. {reasons}")),
            Verdict::Invalid => items.push(format!("<b>{label}</b> is <b>invalid</b>. {reasons}")),
        }
    }
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|item| format!("<li>{item}</li>")).collect();
    format!("<aside class=\"warning\"><ul>{items}</ul></aside>\n")
}

/// Caveats of the trials, which limit what findings and their absence mean; empty when there are none.
pub(super) fn caveats(outcome: &Outcome) -> String {
    let item = |one: Caveat| format!("<li><b>{}</b> {}</li>", Esc(&one.labels), Esc(one.describe()));
    let items: String = crate::caveats::caveats(outcome).into_iter().map(item).collect();
    if items.is_empty() {
        items
    } else {
        format!("<section id=\"caveats\"><h2>Caveats</h2><ul>{items}</ul></section>\n")
    }
}

/// Parameters, validity, machine and source.
pub(super) fn section(outcome: &Outcome) -> String {
    format!(
        "<section id=\"background\"><h2>Background</h2><h3>Parameters</h3>{}<h3>Measured</h3>{}<h3>Machine and run</h3>{}\
         <details class=\"source\"><summary>The experiment file</summary><pre>{}</pre></details></section>\n",
        parameters(outcome),
        measured(outcome),
        machine(outcome),
        Esc(cut(&outcome.evidence.run.experiment_source, SOURCE_CHARS_MAX))
    )
}

/// One row for each parameter, one column for each variant; what differs stands out.
fn parameters(outcome: &Outcome) -> String {
    let mut variants: Vec<(&str, &BTreeMap<String, String>)> = Vec::new();
    for trial in outcome.evidence.trials.iter().map(|evidence| &evidence.trial) {
        if !variants.iter().any(|(name, _)| *name == trial.variant) {
            variants.push((&trial.variant, &trial.parameters));
        }
    }
    let names: BTreeSet<&String> = variants.iter().flat_map(|(_, parameters)| parameters.keys()).collect();
    if names.is_empty() {
        return "<p class=\"note\">none</p>".to_owned();
    }
    let head: String = variants.iter().map(|(name, _)| format!("<th>{}</th>", Esc(name))).collect();
    let mut rows = String::new();
    for name in names {
        let values: Vec<&str> =
            variants.iter().map(|(_, parameters)| parameters.get(name).map_or("–", String::as_str)).collect();
        let differs = if values.windows(2).any(|pair| pair[0] != pair[1]) { " class=\"differs\"" } else { "" };
        let cells: String = values.iter().map(|value| format!("<td>{}</td>", Esc(cut(value, 200)))).collect();
        rows += &format!("<tr{differs}><th scope=\"row\">{}</th>{cells}</tr>", Esc(name));
    }
    format!("<div class=\"scroll\"><table><thead><tr><th></th>{head}</tr></thead><tbody>{rows}</tbody></table></div>")
}

/// Amount of data behind each trial.
fn measured(outcome: &Outcome) -> String {
    let mut rows = String::new();
    for evidence in &outcome.evidence.trials {
        let load = evidence.counted_load();
        let verdict = match evidence.trial.validity.verdict {
            Verdict::Valid => "valid",
            Verdict::Doubtful => "doubtful",
            Verdict::Invalid => "invalid",
        };
        rows += &format!(
            "<tr><th scope=\"row\">{}</th><td>{verdict}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Esc(evidence.trial.label()),
            known((load.seconds > 0.0).then_some(load.seconds * 1e9), units::duration),
            units::count(load.succeeded),
            known((load.lateness.count() > 0).then(|| load.lateness.quantile_ns(0.99) as f64), units::duration),
            units::count(evidence.spans_total)
        );
    }
    format!(
        "<div class=\"scroll\"><table><thead><tr><th>trial</th><th>generator</th><th class=\"n\">counted</th>\
         <th class=\"n\">responses</th><th class=\"n\">send lateness p99</th><th class=\"n\">spans</th></tr></thead>\
         <tbody>{rows}</tbody></table></div>"
    )
}

fn machine(outcome: &Outcome) -> String {
    let run = &outcome.evidence.run;
    let machine = &run.environment;
    let rows = [
        ("processor", format!("{}, {}", machine.cpu_model, plural(machine.cores as usize, "core", "cores"))),
        ("memory", units::bytes(machine.memory_bytes as f64)),
        ("kernel", machine.kernel.clone()),
        ("begun", instant(run.started_ns)),
        ("run", run.id.clone()),
        ("seed", run.seed.to_string()),
        ("time scale", run.time_scale.to_string()),
        ("repetitions", run.repetitions.to_string()),
        ("narrows", run.narrows_version.clone()),
    ];
    let rows: String = rows
        .iter()
        .map(|(name, value)| format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>", Esc(value)))
        .collect();
    format!("<div class=\"scroll\"><table><tbody>{rows}</tbody></table></div>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn only_parameters_that_differ_stand_out() {
        let html = parameters(&fixture::outcome());
        assert_eq!(html.matches("class=\"differs\"").count(), 1);
        assert!(html.contains("<tr class=\"differs\"><th scope=\"row\">joined</th><td>false</td><td>true</td></tr>"));
    }

    #[test]
    fn doubts_and_unfinished_trials_are_warned_of() {
        let mut outcome = fixture::outcome();
        outcome.evidence.trials[0].trial.state = TrialState::Failed;
        outcome.evidence.trials[0].trial.error = Some("port <taken>".to_owned());
        let html = warnings(&outcome);
        assert!(html.contains("<b>as-is</b> failed: port &lt;taken&gt;; until then 1"), "{html}");
        assert!(html.contains("<b>fixed</b> is doubtful. The generator sent"), "{html}");
    }
}
