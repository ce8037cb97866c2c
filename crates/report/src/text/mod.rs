//! The text at the end of a run, and of a one-shot load.
//!
//! One column of plain text, built for 80 to 120 columns, in the order a reader needs it: what ran, what was measured,
//! what may be doubted, what was found, and the sentence last, where the eye rests when the terminal stops scrolling.

mod blocks;
mod check;
mod diff;
mod finding;
pub(crate) mod grid;
mod load_summary;
pub(crate) mod paint;
mod prediction;
mod proof;
mod thresholds;
mod tried;

use narrows_model::comparison::Outcome;

pub use check::check;
pub use diff::diff;
pub use load_summary::{ArrivalsSummary, LoadSummary, load_summary};
pub use prediction::predictions;
pub use proof::proof;
pub use thresholds::thresholds;
pub use tried::{made, tried};

pub(crate) use blocks::sections;
pub use paint::SEQUENCES;
use paint::{Paint, clean, wrap};

use crate::section::{Block, Phrase, Section, Tone};
use crate::sections::{self as of_run, Context};

/// Narrower than this nothing is laid out; the text is then wider than requested.
const WIDTH_MIN: usize = 40;

/// Layout of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns to fill, at least 40; meant for 80 to 120. Tables break cells rather than exceed it.
    pub width: usize,
    /// Whether ANSI colours are used.
    pub color: Color,
}

/// Whether ANSI colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Always, whatever it is written to.
    Always,
    /// Never.
    Never,
}

/// A sentence as a paragraph. Ends with a line feed.
pub fn paragraph(sentence: &str, style: Style) -> String {
    let block = Block::Paragraph(Phrase::from(sentence), Tone::Strong);
    sections(&[Section::untitled(vec![block])], Paint(style.color), style.width.max(WIDTH_MIN))
}

/// The text a run ends with. Ends with a line feed.
pub fn outcome(outcome: &Outcome, style: Style) -> String {
    let last = Block::Paragraph(Phrase::from(outcome.sentence.as_str()), Tone::Strong);
    framed(outcome, of_run::all(&Context::for_terminal(outcome)), last, style)
}

/// A run on two screens: the story of its variants, and published figures beside the measured ones. Ends with a line feed.
pub fn brief(outcome: &Outcome, style: Style) -> String {
    let headline = of_run::head(outcome).headline;
    let text = if headline.is_empty() { outcome.sentence.clone() } else { headline };
    let last = Block::Paragraph(Phrase::from(text), Tone::Strong);
    framed(outcome, of_run::brief(&Context::for_terminal(outcome)), last, style)
}

/// Sections below the head of a run, and a last block, where the eye rests when the terminal stops scrolling.
fn framed(outcome: &Outcome, mut all: Vec<Section>, last: Block, style: Style) -> String {
    let (paint, width) = (Paint(style.color), style.width.max(WIDTH_MIN));
    all.push(Section::untitled(vec![last]));
    format!("{}\n{}", header(outcome, paint, width), sections(&all, paint, width))
}

/// Each objective of each variant; empty if the experiment has none.
pub fn objectives(outcome: &Outcome, style: Style) -> String {
    let section = of_run::objectives(&Context::for_terminal(outcome));
    sections(&[section], Paint(style.color), style.width.max(WIDTH_MIN))
}

fn header(outcome: &Outcome, paint: Paint, width: usize) -> String {
    let head = of_run::head(outcome);
    let (state, tone) = head.state;
    let mut out = format!("{} · {}\n", paint.bold(&clean(&head.title)), paint.tone(tone, state));
    for line in [head.facts, head.machine] {
        wrap(&clean(&line), width).iter().for_each(|line| out += &format!("{}\n", paint.dim(line)));
    }
    out
}

/// A section without colours.
#[cfg(test)]
pub(crate) fn plain(section: &Section, width: usize) -> String {
    sections(std::slice::from_ref(section), Paint(Color::Never), width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use narrows_model::finding::Evidence;
    use narrows_model::run::{RunState, TrialState};

    fn at(width: usize) -> Style {
        Style { width, color: Color::Never }
    }

    #[test]
    fn a_run_in_brief_fits_on_two_screens_and_names_every_bottleneck() {
        let outcome = fixture::drones::outcome();
        let text = brief(&outcome, at(100));
        assert!(text.lines().count() <= 80, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for name in outcome.comparison.variants.iter().map(|variant| &variant.variant) {
            assert!(text.matches(name.as_str()).count() >= 2, "{text}");
        }
        assert!(!text.contains("remark ") && text.contains("published → measured"), "{text}");
    }

    #[test]
    fn the_end_of_a_run() {
        insta::assert_snapshot!(outcome(&fixture::outcome(), at(100)), @r"
        orders · complete
        2 trials · time scale 0.1 · 2025-11-21 12:30 UTC · run 00112233aabbccdd
        AMD EPYC 7B13 · 2 cores · 8.00 GiB · Linux 6.1.0

        doubtful    fixed: The generator sent 3.1 % of the requests more than 1 ms late.

        variant                throughput        mean              bottleneck
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        as-is                    245/s █▉        32.1 ms ████████  GET /orders fetches rows one at a time:
                                                                   24 similar queries in each request
        fixed                  1,020/s ████████  7.89 ms ██        –
          joined false → true

        variant     rate     mean      p50      p95      p99  errors  CPU/req
        ─────────────────────────────────────────────────────────────────────
        as-is      245/s  32.1 ms  31.0 ms  54.2 ms  88.0 ms       8  7.43 ms
        fixed    1,020/s  7.89 ms  7.60 ms  13.9 ms  21.6 ms       0  1.49 ms

        variant  rate vs as-is            mean vs as-is
        ──────────────────────────────────────────────────────
        fixed    +316 % (+298 to +334 %)  −75 % (−77 to −74 %)
        measured once: every variant. Intervals assume a spread between trials; --repeat 3 measures it.

        errors      as-is: 8 status

        variant  objective        measured  kept
        ────────────────────────────────────────
        as-is    p95 < 20ms       54.2 ms   ✗
        as-is    error_rate == 0  0.1 %     ✗
        fixed    p95 < 20ms       13.9 ms   ✓
        fixed    error_rate == 0  0 %       ✓

        as-is: 2 findings

        1  GET /orders fetches rows one at a time: 24 similar queries in each request
           ▶ the narrow place
           costs       67 % of the latency of GET /orders
           confidence  high. 100 % of the traces of GET /orders that query a database show it (120 traces):
                       24 queries of one shape follow under one parent. Their number differs from request to
                       request, from 3 to 40, as it does when it depends on the rows of the request. They
                       are 90 % of all queries in the traces of this trial.
           measured    queries in each request, median: 24
                       queries in each request, smallest: 3
                       queries in each request, largest: 40
                       time of these queries, median: 19.2 ms
                       time of these queries and of short gaps between them, median: 20.8 ms
                       traces of the operation with queries that show it: 100 %
                       share of all queries: 90 %
           │ SELECT name, tier FROM customers WHERE id = ?
           │ 
           │ as sent: SELECT name, tier FROM customers WHERE id = $1
           traces      014b4b4b4b4b4b4b4b4b4b4b4b4b4b00
           ruled out   Double instrumentation: each query has one span.
                       Connections, pools and transactions: 0 such spans in these traces, none counted as a
                       query.
                       Pages and batches: the statement has no offset, no cursor and no list of several
                       values.
           wrong if    The rows are fetched together and GET /orders is as slow as before, or its traces
                       still contain about 24 of these queries.
           caveat      The spans do not show how many rows were returned, so a query may have had more work
                       to do.
           effects     ↳ postgres is saturated: the same queries take 3.20 times as long at 8 users as at 1
                       user (71 % of the time of its queries at 8 users, spent waiting in the database,
                       medium confidence). It is a likely effect of repeated queries: GET /orders fetches
                       rows one at a time: 24 similar queries in each request. Every call is work for the
                       callee.
           try         In the code behind GET /orders of orders, replace the repeated `SELECT name, tier
                       FROM customers WHERE id = ?` by one query for all rows: a JOIN with the query before
                       it, or one look-up with an IN list of the keys. With an object-relational mapper, use
                       eager loading: SQLAlchemy selectinload, JPA @EntityGraph or JOIN FETCH, Rails
                       includes, Django prefetch_related; with GraphQL a dataloader.

        2  orders uses up its CPU limit: 92 % of 1 core
           costs       12 % of the CPU limit of orders (1 core)
           seen in     “8 users”, 1 min 0 s from 10.0 s on
           confidence  medium. Half of the time or more in “8 users” it stood at 92 % or above. It is not
                       shown whether more CPU would carry more load: no lighter steady load was measured.
           measured    share of the limit, median: 92 %
                       users at that time: 8
                       throughput at that time: 120/s
                       mean latency at that time: 66.0 ms
                       CPU, all replicas, median: 0.92 cores
                       CPU for each request: 7.67 ms
           ruled out   A peak or a start: this is the median over an interval of counted load, not the
                       largest value.
                       Idle CPU at the same load: no other interval carried as much load with clearly less
                       CPU.
                       The load generator: it used 0.06 cores.
           wrong if    A higher CPU limit for orders does not raise throughput.
           try         Take work out of the request in orders first; then raise its limit of 1 core or add a
                       replica.

        fixed: no finding

        caveat      as-is: orders runs without its CPU and memory caps: cgroups are not delegated.

        One joined query instead of 25 makes fixed handle 4.2 times as many requests as as-is, at a quarter
        of the latency.
        ");
    }

    #[test]
    fn four_variants_with_operations_and_published_figures() {
        insta::assert_snapshot!(outcome(&fixture::drones::outcome(), at(100)), @r"
        drone-deliveries · complete
        4 trials · time scale 0.1 · 2025-11-21 12:30 UTC · run 00112233aabbccdd
        AMD EPYC 7B13 · 2 cores · 8.00 GiB · Linux 6.1.0

        variant                  throughput       mean              bottleneck
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        baseline                 26.0/s ██▏        672 ms ████████  azure.cosmosdb rejects 15 % of the calls
                                                                    of GET /api/dronedeliveries/utilization,
                                                                    which then wait and retry
        more-throughput          45.0/s ███▋       572 ms ██████▊   –
          throughput 900 → 2500
        parallel                 74.0/s ██████     218 ms ██▋       –
        partition-key            99.0/s ████████  40.0 ms ▌         drone-scheduler uses up its CPU limit:
                                                                    92 % of 1 core

        variant            rate     mean      p50      p95     p99  errors  CPU/req
        ───────────────────────────────────────────────────────────────────────────
        baseline         26.0/s   672 ms   268 ms   1.47 s  2.74 s       0  34.6 ms
        more-throughput  45.0/s   572 ms   228 ms   1.25 s  2.33 s       0  26.7 ms
        parallel         74.0/s   218 ms  86.0 ms   473 ms  882 ms       0  22.2 ms
        partition-key    99.0/s  40.0 ms  14.8 ms  81.4 ms  152 ms       0  19.6 ms

        variant          rate vs baseline         mean vs baseline
        ──────────────────────────────────────────────────────────────
        more-throughput  +73 % (+71 to +75 %)     −15 % (−17 to −13 %)
        parallel         +185 % (+183 to +187 %)  −68 % (−70 to −66 %)
        partition-key    +281 % (+279 to +283 %)  −94 % (−96 to −92 %)
        measured once: every variant. Intervals assume a spread between trials; --repeat 3 measures it.

        parameter   value  reason
        ────────────────────────────────────────────────────────────────────────────────────────────────────
        throughput  900    What the article provisions for test 1; nine partitions share it, 100 each.
        cpu_limit   1      A node of the cluster has 2 vCPU; here all services share two cores.
        documents   20000  In place of 14 million: a query finds one document either way, and what an empty
                           page costs does not depend on how many there are.

        drone-scheduler GET /api/dronedeliveries/utilization, calls to azure.cosmosdb
        variant          completed     mean      p50      p95     p99  calls/op  attempts/op    429  RU/op
        ──────────────────────────────────────────────────────────────────────────────────────────────────
        baseline             2,860   669 ms   268 ms   1.47 s  2.74 s         9         10.6  4,661     29
        more-throughput      4,950   569 ms   228 ms   1.25 s  2.33 s         9            9      0     29
        parallel             8,140   215 ms  86.0 ms   473 ms  882 ms         9            9      0     29
        partition-key       10,890  37.0 ms  14.8 ms  81.4 ms  152 ms         1            1      0   3.40

        CPU/req (cores)        baseline  more-throughput        parallel   partition-key
        ────────────────────────────────────────────────────────────────────────────────
        gateway          7.69 ms (0.20)   4.44 ms (0.20)  2.70 ms (0.20)  2.02 ms (0.20)
        delivery         4.23 ms (0.11)   2.44 ms (0.11)  1.49 ms (0.11)  1.11 ms (0.11)
        package          1.54 ms (0.04)    889 µs (0.04)   541 µs (0.04)   404 µs (0.04)
        docstore         5.38 ms (0.14)   3.11 ms (0.14)  1.89 ms (0.14)  1.41 ms (0.14)
        drone-scheduler  17.3 ms (0.45)   13.3 ms (0.60)  11.1 ms (0.82)  9.80 ms (0.97)
        all together     36.2 ms (0.94)   24.2 ms (1.09)  17.7 ms (1.31)  14.7 ms (1.46)

        memory           baseline  more-throughput  parallel  partition-key
        ───────────────────────────────────────────────────────────────────
        gateway          46.0 MiB         46.0 MiB  46.0 MiB       46.0 MiB
        delivery         55.0 MiB         55.0 MiB  55.0 MiB       55.0 MiB
        package          64.0 MiB         64.0 MiB  64.0 MiB       64.0 MiB
        docstore         73.0 MiB         73.0 MiB  73.0 MiB       73.0 MiB
        drone-scheduler  82.0 MiB         82.0 MiB  82.0 MiB       82.0 MiB
        all together      320 MiB          320 MiB   320 MiB        320 MiB

        Published: Performance tuning: multiple backend services, Azure Architecture Center. Measured: this
        run. Durations and calls are those of drone-scheduler GET /api/dronedeliveries/utilization.
        published → measured         baseline  more-throughput         parallel     partition-key
        ─────────────────────────────────────────────────────────────────────────────────────────
        throughput            19.0/s → 26.0/s  23.0/s → 45.0/s  42.0/s → 74.0/s   59.0/s → 99.0/s
          vs baseline                            ×1.21 → ×1.73    ×2.21 → ×2.85     ×3.11 → ×3.81
        mean duration         669 ms → 669 ms  569 ms → 569 ms  215 ms → 215 ms  176 ms → 37.0 ms
          vs baseline                            ×0.85 → ×0.85    ×0.32 → ×0.32     ×0.26 → ×0.06
        completed               9,800 → 2,860   11,000 → 4,950   20,000 → 8,140   29,000 → 10,890
        throttled              16,071 → 4,661            0 → 0            0 → 0             0 → 0
        calls per operation            11 → 9            9 → 9           10 → 9             1 → 1
        RU per operation              29 → 29          29 → 29           – → 29       3.40 → 3.40
        remark      throughput: The article counts four minutes of one user too.
        remark      throttled: The article says 2.72 K, the data behind it 16,071.

        baseline: 1 finding
        1  azure.cosmosdb rejects 15 % of the calls of GET /api/dronedeliveries/utilization, which then wait
           and retry
           ▶ the narrow place
           costs       71 % of the time of the slower half of these requests (medium confidence)
           measured    rejected attempts: 150; share of all attempts: 15 %; seconds with rejections: 0;
                       seconds with attempts: 0; wait after a rejection, median: 0 ns
           try         Provision more throughput for azure.cosmosdb; or spend fewer units in each GET
                       /api/dronedeliveries/utilization, by a query that goes only to the partition that has
                       the rows, an index, or fewer rows; or spread the requests over time, because only
                       single seconds exceed the limit.

        more-throughput: no finding

        parallel: no finding

        partition-key: 1 finding
        1  drone-scheduler uses up its CPU limit: 92 % of 1 core
           ▶ the narrow place
           costs       12 % of the CPU limit of drone-scheduler (1 core) (medium confidence)
           measured    share of the limit, median: 92 %; users at that time: 8; throughput at that time:
                       120/s; mean latency at that time: 66.0 ms; CPU, all replicas, median: 0.92 cores; CPU
                       for each request: 7.67 ms
           try         Take work out of the request in drone-scheduler first; then raise its limit of 1 core
                       or add a replica.
        Reasons, what was ruled out, what would prove a finding wrong: in the page and the JSON.

        A query that names its partition lets partition-key handle 3.2 times as many requests as baseline,
        at a twentieth of the latency.
        ");
    }

    #[test]
    fn an_interrupted_run_says_what_is_done() {
        let mut run = fixture::outcome();
        run.evidence.run.state = RunState::Interrupted;
        run.evidence.trials[1].trial.state = TrialState::Planned;
        run.comparison.variants.truncate(1);
        run.findings[0].truncate(1);
        insta::assert_snapshot!(outcome(&run, at(80)), @r"
        orders · interrupted
        2 trials · time scale 0.1 · 2025-11-21 12:30 UTC · run 00112233aabbccdd
        AMD EPYC 7B13 · 2 cores · 8.00 GiB · Linux 6.1.0

        done        as-is
        not begun   fixed
        doubtful    fixed: The generator sent 3.1 % of the requests more than 1 ms late.

        variant   rate     mean      p50      p95      p99  errors  CPU/req
        ───────────────────────────────────────────────────────────────────
        as-is    245/s  32.1 ms  31.0 ms  54.2 ms  88.0 ms       8  7.43 ms

        errors      as-is: 8 status

        variant  objective        measured  kept
        ────────────────────────────────────────
        as-is    p95 < 20ms       54.2 ms   ✗
        as-is    error_rate == 0  0.1 %     ✗
        fixed    p95 < 20ms       13.9 ms   ✓
        fixed    error_rate == 0  0 %       ✓

        as-is: 1 finding

        1  GET /orders fetches rows one at a time: 24 similar queries in each request
           ▶ the narrow place
           costs       67 % of the latency of GET /orders
           confidence  high. 100 % of the traces of GET /orders that query a database
                       show it (120 traces): 24 queries of one shape follow under one
                       parent. Their number differs from request to request, from 3 to
                       40, as it does when it depends on the rows of the request. They
                       are 90 % of all queries in the traces of this trial.
           measured    queries in each request, median: 24
                       queries in each request, smallest: 3
                       queries in each request, largest: 40
                       time of these queries, median: 19.2 ms
                       time of these queries and of short gaps between them, median:
                       20.8 ms
                       traces of the operation with queries that show it: 100 %
                       share of all queries: 90 %
           │ SELECT name, tier FROM customers WHERE id = ?
           │ 
           │ as sent: SELECT name, tier FROM customers WHERE id = $1
           traces      014b4b4b4b4b4b4b4b4b4b4b4b4b4b00
           ruled out   Double instrumentation: each query has one span.
                       Connections, pools and transactions: 0 such spans in these
                       traces, none counted as a query.
                       Pages and batches: the statement has no offset, no cursor and no
                       list of several values.
           wrong if    The rows are fetched together and GET /orders is as slow as
                       before, or its traces still contain about 24 of these queries.
           caveat      The spans do not show how many rows were returned, so a query may
                       have had more work to do.
           effects     ↳ postgres is saturated: the same queries take 3.20 times as long
                       at 8 users as at 1 user (71 % of the time of its queries at 8
                       users, spent waiting in the database, medium confidence). It is a
                       likely effect of repeated queries: GET /orders fetches rows one
                       at a time: 24 similar queries in each request. Every call is work
                       for the callee.
           try         In the code behind GET /orders of orders, replace the repeated
                       `SELECT name, tier FROM customers WHERE id = ?` by one query for
                       all rows: a JOIN with the query before it, or one look-up with an
                       IN list of the keys. With an object-relational mapper, use eager
                       loading: SQLAlchemy selectinload, JPA @EntityGraph or JOIN FETCH,
                       Rails includes, Django prefetch_related; with GraphQL a
                       dataloader.

        fixed: not measured

        caveat      as-is: orders runs without its CPU and memory caps: cgroups are not
                    delegated.

        One joined query instead of 25 makes fixed handle 4.2 times as many requests as
        as-is, at a quarter of the latency.
        ");
    }

    #[test]
    fn no_line_is_wider_than_asked() {
        let mut repeated = fixture::outcome();
        repeated.evidence.run.repetitions = 3;
        for outcome in [repeated, fixture::drones::outcome()] {
            for width in [80, 100, 120] {
                let text = super::outcome(&outcome, at(width));
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width), "{widest:?} at {width}:\n{text}");
            }
        }
    }

    #[test]
    fn escapes_only_when_colour_is_asked_for_and_never_from_data() {
        let mut outcome = fixture::outcome();
        outcome.evidence.run.experiment = "evil\x1b]0;title\x07".to_owned();
        outcome.findings[0][0].operation = Some("GET \x1b[2J".to_owned());
        if let Evidence::NPlusOne(evidence) = &mut outcome.findings[0][0].evidence {
            evidence.statement.shape = "SELECT \x1b[2J".to_owned();
        }
        outcome.comparison.variants[0].variant = "\x1b[2J".to_owned();
        outcome.evidence.trials[0].trial.variant = "\x1b[2J".to_owned();
        outcome.objectives[0][0].text = "\x1b[2J".to_owned();
        let mut drones = fixture::drones::outcome();
        let operation = &mut drones.comparison.variants[0].operations[1];
        operation.name = "\x1b[2J".to_owned();
        operation.calls[0].target = "\x1b[2J".to_owned();
        drones.comparison.variants[0].services[4].service = "\x1b[2J".to_owned();
        drones.beside[0].cells[1].variant = "\x1b[2J".to_owned();
        drones.beside[0].remark = "\x1b[2J".to_owned();
        drones.notes.parameters[0].value = "\x1b[2J".to_owned();
        drones.notes.parameters[0].reason = "\x1b[2J".to_owned();
        assert!(!super::outcome(&drones, at(100)).contains('\x1b'));
        assert!(!super::outcome(&outcome, at(100)).contains('\x1b'));
        let colored = super::outcome(&outcome, Style { width: 100, color: Color::Always });
        assert!(colored.contains("\x1b[1m") && !colored.contains("\x1b[2J") && !colored.contains("\x1b]"));
    }

    #[test]
    fn an_empty_outcome_is_text_too() {
        let mut outcome = fixture::outcome();
        outcome.evidence.trials.clear();
        outcome.findings.clear();
        outcome.objectives.clear();
        outcome.comparison = Default::default();
        assert!(super::outcome(&outcome, at(0)).contains("0 trials"));
    }
}
