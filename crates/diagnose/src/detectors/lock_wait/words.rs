//! Texts of `lock-wait` findings.

use narrows_model::finding::evidence::lock_wait::{HolderState, LockHolder, LockWait, WaitingStatement};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, level};
use crate::exemplars::clipped;

/// Characters of a statement in a title, and in a sentence.
const TITLE_CHARS_MAX: usize = 40;
const REASON_CHARS_MAX: usize = 120;

impl Words for LockWait {
    fn title(&self, finding: &Finding) -> String {
        let database = &finding.resource;
        let Some(waiting) = self.statements.first() else {
            return format!("{database}: {} sessions wait for locks", units::number(self.waiting));
        };
        let statement = brief(&waiting.statement);
        let lock = lock_of(&waiting.lock_type);
        match waiting.holders.first() {
            Some(holder) if holder.state == HolderState::IdleInTransaction => {
                let time = holder.state_ns().map_or(String::new(), |ns| format!(" for {}", units::duration(ns)));
                format!("{database}: {statement} waits for {lock} of transactions that are idle{time}")
            }
            Some(LockHolder { state: HolderState::Active, statement: Some(held_by), .. }) => {
                format!("{database}: {statement} waits for {lock}, held during {}", brief(held_by))
            }
            _ => format!("{database}: {statement} waits for {lock} of another session"),
        }
    }

    fn cost_of(&self, _finding: &Finding) -> String {
        "of the time that users wait".to_owned()
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let mut reasons = vec![format!(
            "At {}, {} sessions of {} wait for a lock at any time, and {} requests are under way (means).",
            level(&self.load),
            units::number(self.waiting),
            finding.resource,
            units::number(self.under_way)
        )];
        for waiting in &self.statements {
            reasons.push(format!(
                "`{}` waits for {} in {} sessions.",
                clipped(&waiting.statement, REASON_CHARS_MAX),
                lock(waiting),
                units::number(waiting.sessions)
            ));
            reasons.extend(waiting.holders.iter().map(|holder| held(holder, waiting.sessions)));
        }
        match &self.clients[..] {
            [] => {}
            [client] => reasons.push(format!("Only {client} connects to {}.", finding.resource)),
            clients => reasons.push(format!("{} connect to {}.", clients.join(", "), finding.resource)),
        }
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("sessions that wait for a lock, mean", self.waiting, ""),
            Figure::new("requests under way", self.under_way, ""),
        ];
        figures.extend(self.request_wait_ns().map(|ns| Figure::new("wait for locks in each request, mean", ns, "ns")));
        figures.extend(self.active.map(|sessions| Figure::new("sessions at work, mean", sessions, "")));
        figures.extend(
            self.idle_in_transaction.map(|sessions| Figure::new("sessions idle in a transaction, mean", sessions, "")),
        );
        figures.extend(
            self.database_cpu_share
                .map(|share| Figure::new("CPU of the database, share of what it can use", share * 100.0, "%")),
        );
        figures
    }

    fn source_text(&self) -> Option<String> {
        self.statements.first().map(|waiting| waiting.statement.clone())
    }

    fn ruled_out(&self, finding: &Finding) -> Vec<String> {
        let share = self.database_cpu_share.map(|share| {
            format!("A saturated database: the CPU of {} stood at {}.", finding.resource, units::percent(share))
        });
        share.into_iter().collect()
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("With requests that touch other rows, as many sessions of {} wait for locks.", finding.resource)
    }

    fn advice(&self, _finding: &Finding) -> String {
        let holder = self.statements.first().and_then(|waiting| waiting.holders.first());
        match holder.map(|holder| holder.state) {
            Some(HolderState::IdleInTransaction) => {
                "Keep the transaction short: call other services, compute and sleep before it begins or after it commits, \
                 and change the contended row last. A counter that every request changes can be several rows that are \
                 added up when read."
            }
            _ => {
                "Make the transactions that hold the lock shorter: change the contended row last, commit at once, and add \
                 an index if the statement locks more rows than it changes. A row that every request changes can be \
                 several rows that are added up when read. Schema changes belong into a time without load."
            }
        }
        .to_owned()
    }
}

/// `a row lock on counters`.
fn lock(waiting: &WaitingStatement) -> String {
    let on = waiting.table.as_ref().map_or(String::new(), |table| format!(" on {table}"));
    lock_of(&waiting.lock_type) + &on
}

/// `a row lock`.
fn lock_of(lock_type: &str) -> String {
    if lock_type.is_empty() { "a lock".to_owned() } else { format!("a {lock_type} lock") }
}

/// The sentence about sessions that hold a lock.
fn held(holder: &LockHolder, of: f64) -> String {
    let share = units::percent(if of > 0.0 { holder.sessions / of } else { 0.0 });
    let after = |what: &str| {
        let statement = holder.statement.as_ref();
        statement.map_or(String::new(), |text| format!(" {what} `{}`", clipped(text, REASON_CHARS_MAX)))
    };
    match (holder.state, holder.state_ns()) {
        (HolderState::IdleInTransaction, Some(ns)) => {
            format!(
                "For {share} of them, the holder is idle in its transaction{}, for about {}.",
                after("after"),
                units::duration(ns)
            )
        }
        (HolderState::IdleInTransaction, None) => {
            format!("For {share} of them, the holder is idle in its transaction{}.", after("after"))
        }
        (HolderState::Active, _) => format!("For {share} of them, the holder is at work{}.", after("on")),
        (HolderState::Waiting | HolderState::Unknown, _) => {
            format!("For {share} of them, the holder had released the lock when it was looked for.")
        }
    }
}

/// A statement by what it does to what: `UPDATE counters`, `SELECT … FROM series FOR UPDATE`.
fn brief(statement: &str) -> String {
    if statement.is_empty() {
        return "a statement".to_owned();
    }
    let words: Vec<&str> = statement.split_whitespace().collect();
    let is = |at: usize, word: &str| words.get(at).is_some_and(|found| found.eq_ignore_ascii_case(word));
    let length = match () {
        () if is(0, "UPDATE") => 2,
        () if is(1, "INTO") || is(0, "DELETE") && is(1, "FROM") => 3,
        () if is(0, "SELECT") => return brief_select(&words).unwrap_or_else(|| clipped(statement, TITLE_CHARS_MAX)),
        () => words.len(),
    };
    clipped(&words[..length.min(words.len())].join(" "), TITLE_CHARS_MAX)
}

/// `None` if it reads no table, or nothing is left out.
fn brief_select(words: &[&str]) -> Option<String> {
    let from = words.iter().position(|word| word.eq_ignore_ascii_case("FROM"))?;
    let table = words.get(from + 1)?;
    let lock = words.iter().position(|word| word.eq_ignore_ascii_case("FOR")).map(|at| words[at..].join(" "));
    let lock = lock.map_or(String::new(), |lock| format!(" {lock}"));
    Some(clipped(&format!("SELECT … FROM {table}{lock}"), TITLE_CHARS_MAX))
}
