//! Texts of `slow-query` findings.

use narrows_model::finding::evidence::slow_query::{QuerySource, SlowQuery};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level, operation};
use crate::exemplars::clipped;

/// Maximum characters of the query in a title.
const TITLE_CHARS_MAX: usize = 60;
/// Maximum characters of a query in the name of a figure.
const FIGURE_CHARS_MAX: usize = 40;

impl Words for SlowQuery {
    fn title(&self, finding: &Finding) -> String {
        if !self.others.is_empty() {
            return format!(
                "{} slow queries of {} take {}, {} of {}",
                self.others.len() + 1,
                finding.resource,
                units::duration(self.all_ns()),
                units::percent(finding.cost_share),
                operation(finding)
            );
        }
        format!(
            "a query of {} takes {}, {} of {}: {}",
            finding.resource,
            units::duration(self.query_ns),
            units::percent(finding.cost_share),
            operation(finding),
            clipped(&self.shape, TITLE_CHARS_MAX)
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the latency of {}", operation(finding))
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let load = self.load.as_ref().map_or_else(String::new, |load| format!(" at {}", level(load)));
        let lightest = if self.is_lightest_load { ", the lightest load" } else { "" };
        let rows = self.rows.map_or_else(String::new, |rows| format!(", for {} rows", units::number(rows)));
        let (subject, object) = if self.others.is_empty() { ("It", "it") } else { ("The first", "them") };
        let mut reasons = vec![format!(
            "{subject} takes {} ({}){load}{lightest}{rows}.",
            units::duration(self.query_ns),
            average(self.source)
        )];
        if !self.others.is_empty() {
            let each: Vec<String> = self.others.iter().map(|other| units::duration(other.query_ns)).collect();
            reasons.push(format!("The others take {}.", each.join(", ")));
        }
        reasons.push(format!(
            "{} spends {} of the time of {} waiting for {object}.",
            self.service,
            units::percent(finding.cost_share),
            operation(finding)
        ));
        reasons
    }

    fn figures(&self, finding: &Finding) -> Vec<Figure> {
        let average = average(self.source);
        let mut figures = vec![
            Figure::new(format!("one query, {average}"), self.query_ns, "ns"),
            Figure::new(format!("queries of this shape in each request, {average}"), self.queries_per_request, ""),
        ];
        for other in &self.others {
            let shape = clipped(&other.shape, FIGURE_CHARS_MAX);
            figures.push(Figure::new(format!("one query, median: {shape}"), other.query_ns, "ns"));
        }
        figures.push(Figure::new("share of the latency", finding.cost_share * 100.0, "%"));
        figures
    }

    fn source_text(&self) -> Option<String> {
        let others = self.others.iter().map(|other| other.shape.as_str());
        Some([self.query.as_str()].into_iter().chain(others).collect::<Vec<_>>().join("\n\n"))
    }

    fn ruled_out(&self, finding: &Finding) -> Vec<String> {
        let mut ruled_out = vec![
            match self.others.len() {
                0 => format!(
                    "Repetition: a request sends it {} ({}).",
                    times(self.queries_per_request),
                    average(self.source)
                ),
                _ => "Repetition: a request sends each of them three times at most (median).".to_owned(),
            },
            match self.source {
                QuerySource::Spans => "A wait for a connection: it happens before the query's span begins.".to_owned(),
                QuerySource::Counts | QuerySource::Samples => {
                    "A wait for a connection: it happens before the server executes the statement.".to_owned()
                }
            },
        ];
        ruled_out.extend(self.database_cpu_share.map(|share| {
            format!(
                "A saturated database: under this load the CPU of {} stood at {}.",
                finding.resource,
                units::percent(share)
            )
        }));
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        let queries = if self.others.is_empty() { "The query takes" } else { "The queries take" };
        format!("{queries} a tenth of the time, and {} takes as long as before.", operation(finding))
    }

    fn advice(&self, _finding: &Finding) -> String {
        "Look at the query plan (EXPLAIN ANALYZE). Add an index for the columns that the query filters, joins or sorts \
         by, return fewer rows and columns, or cache data that seldom changes. If the query reads little, it waits: for \
         a lock, a disk, or another server."
            .into()
    }
}

/// Word for what the figures of a query are.
fn average(source: QuerySource) -> &'static str {
    match source {
        QuerySource::Spans => "median",
        QuerySource::Counts => "mean, as the server counts",
        QuerySource::Samples => "at least, by samples of its sessions",
    }
}

fn times(times: f64) -> String {
    if times <= 1.0 { "once".to_owned() } else { format!("{} times", units::number(times)) }
}
