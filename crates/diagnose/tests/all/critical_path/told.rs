//! Traces in a line per span, and their critical paths in the same words.

use std::collections::BTreeMap;

use narrows_diagnose::critical_path::{CriticalPath, PathPosition, critical_path};
use narrows_model::trace::{Span, SpanKind, Trace};
use narrows_testkit::spans::internal;

/// A span: its name, start and end in microseconds, and the name of its parent, empty for none.
pub(crate) type Line<'a> = (&'a str, i64, i64, &'a str);

/// Name of a case, its trace, and the expected value of each of these spans.
pub(crate) type Case<'a, T> = (&'a str, &'a [Line<'a>], &'a [T]);

/// A trace and its critical path.
pub(crate) struct Told {
    trace: Trace,
    path: CriticalPath,
}

/// A name with two points in time, microseconds.
pub(crate) type Interval = (String, i64, i64);

impl Told {
    /// The path of the trace with these spans.
    pub(crate) fn of(lines: &[Line<'_>]) -> Self {
        Self::of_kinds(&lines.iter().map(|line| (*line, SpanKind::Internal)).collect::<Vec<_>>())
    }

    /// The same, with each span's kind.
    pub(crate) fn of_kinds(lines: &[(Line<'_>, SpanKind)]) -> Self {
        let mut trace = internal("template").service("any").trace(0);
        let template = trace.spans.remove(0);
        for ((name, start_us, end_us, parent), kind) in lines {
            let mut span: Span = template.clone();
            (span.span_id, span.parent_id) = (id(name), (!parent.is_empty()).then(|| id(parent)));
            (span.name, span.service, span.kind) = ((*name).to_owned(), (*name).to_owned(), *kind);
            (span.start_ns, span.end_ns) = (start_us * 1_000, end_us * 1_000);
            trace.spans.push(span);
        }
        trace.spans.sort_by_key(|span| span.start_ns);
        let path = critical_path(&trace, None).expect("a trace with spans has a root");
        Self { trace, path }
    }

    fn name(&self, span: usize) -> &str {
        &self.trace.spans[span].name
    }

    /// The sections, last first.
    pub(crate) fn sections(&self) -> Vec<Interval> {
        let sections = self.path.sections.iter();
        sections.map(|s| (self.name(s.span).to_owned(), s.start_ns / 1_000, s.end_ns / 1_000)).collect()
    }

    /// Microseconds on the path in each span and none of its children; spans without any are left out.
    pub(crate) fn own(&self) -> BTreeMap<&str, i64> {
        let mut own = BTreeMap::new();
        for section in &self.path.sections {
            *own.entry(self.name(section.span)).or_default() += (section.end_ns - section.start_ns) / 1_000;
        }
        own
    }

    /// Drag of the spans on the path, microseconds.
    pub(crate) fn drag(&self) -> BTreeMap<&str, i64> {
        let drag = |place| if let PathPosition::OnPath { drag_ns } = place { Some(drag_ns / 1_000) } else { None };
        self.path.standings.iter().filter_map(|s| Some((self.name(s.span), drag(s.place)?))).collect()
    }

    /// Slack of the spans beside it, microseconds.
    pub(crate) fn slack(&self) -> BTreeMap<&str, i64> {
        let slack =
            |place| if let PathPosition::Beside { slack_ns, .. } = place { Some(slack_ns / 1_000) } else { None };
        self.path.standings.iter().filter_map(|s| Some((self.name(s.span), slack(s.place)?))).collect()
    }
}

/// An id of a name: names of more than eight letters that begin alike must not meet in one trace.
fn id(name: &str) -> [u8; 8] {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    hash.to_be_bytes()
}
