//! Sessions of a database server, sampled between two readings of its gauges: how many there are in each state, which
//! statements they execute and what these wait for.
//!
//! A wait for a lock is told with its holder: the session at the end of the chain of blocking sessions, which waits for
//! no other. Texts of statements lose their values before anything is kept. For each server a bounded number of texts is
//! told; further ones are left out of the series by text, never of the counts.

use std::collections::{BTreeMap, BTreeSet};

use narrows_diagnose::statement_shape;
use narrows_model::series::servers::{
    COLLECTION, HOLDER_AGE, HOLDER_QUERY_TEXT, HOLDER_STATE, LOCK_TYPE, LOCK_WAITS, QUERY_TEXT, SESSION_STATE,
    SESSIONS, STATEMENT_SESSIONS, SessionState, WAIT_EVENT,
};

use crate::components::gauges::Gauge;

/// Characters of a statement that a server is asked for.
pub(super) const STATEMENT_CHARS_MAX: i32 = 1000;
/// Sessions of a sample at most.
pub(super) const SESSIONS_MAX: i64 = 500;
/// Waits whose blocking sessions are looked up in a sample, at most. The others count like these.
pub(super) const WAITS_EXPLAINED_MAX: i64 = 16;
/// Sets of labels that are told of a server, of each series by text.
const LABELS_MAX: usize = 20;
/// Characters of a statement that a label keeps.
const LABEL_CHARS_MAX: usize = 200;

/// A session that is not idle, at the instant of a sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Session {
    pub(super) id: i64,
    /// Whether it executes a statement; else a transaction is open and idle.
    pub(super) is_active: bool,
    /// Its statement, or the last one, with its values; empty if the server does not show it.
    pub(super) statement: String,
    /// The server's name of what it waits for; empty if it waits for nothing.
    pub(super) wait_event: String,
    /// The lock that it waits for.
    pub(super) lock: Option<Lock>,
    /// Sessions that it waits for.
    pub(super) blockers: Vec<i64>,
    /// Since it is in this state, in seconds.
    pub(super) age_seconds: f64,
}

/// A lock that a session waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Lock {
    /// `row`, or the server's name of the type.
    pub(super) lock_type: String,
    /// The table; empty if the server does not name it.
    pub(super) table: String,
}

impl Session {
    fn state(&self) -> SessionState {
        match (&self.lock, self.is_active) {
            (Some(_), _) => SessionState::WaitingForLock,
            (None, true) => SessionState::Active,
            (None, false) => SessionState::IdleInTransaction,
        }
    }
}

/// A wait for a lock, without what tells one such wait from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    statement: String,
    lock: Lock,
    holder_state: Option<SessionState>,
    holder_statement: String,
}

/// Sums over samples. The divisor is the number of samples.
#[derive(Debug, Default)]
struct WaitSums {
    sessions: f64,
    /// Holder's age × sessions.
    age: f64,
}

/// Sums over the samples since the last reading.
#[derive(Debug, Default)]
pub(super) struct SessionSamples {
    samples: f64,
    states: BTreeMap<SessionState, f64>,
    statements: BTreeMap<(String, String), f64>,
    waits: BTreeMap<Wait, WaitSums>,
    told_statements: BTreeSet<(String, String)>,
    told_waits: BTreeSet<Wait>,
}

impl SessionSamples {
    /// Adds a sample.
    pub(super) fn add(&mut self, sessions: &[Session]) {
        self.samples += 1.0;
        let by_id: BTreeMap<i64, &Session> = sessions.iter().map(|session| (session.id, session)).collect();
        let waiting = || sessions.iter().filter(|session| session.lock.is_some());
        let explained = waiting().filter(|session| !session.blockers.is_empty()).count();
        let weight = if explained == 0 { 1.0 } else { waiting().count() as f64 / explained as f64 };
        for session in sessions {
            *self.states.entry(session.state()).or_default() += 1.0;
            if session.is_active {
                let key = (label_text(&session.statement), session.wait_event.clone());
                *self.statements.entry(key).or_default() += 1.0;
            }
            let Some(lock) = &session.lock else { continue };
            if explained > 0 && session.blockers.is_empty() {
                continue;
            }
            let holder = holder(session, &by_id);
            let wait = Wait {
                statement: label_text(&session.statement),
                lock: lock.clone(),
                holder_state: holder.map(Session::state),
                holder_statement: holder.map(|holder| label_text(&holder.statement)).unwrap_or_default(),
            };
            let sums = self.waits.entry(wait).or_default();
            sums.sessions += weight;
            sums.age += weight * holder.map_or(0.0, |holder| holder.age_seconds);
        }
    }

    /// Means over the samples since the last call; empty without samples.
    pub(super) fn gauges(&mut self) -> Vec<Gauge> {
        let samples = std::mem::take(&mut self.samples);
        let states = std::mem::take(&mut self.states);
        let statements = std::mem::take(&mut self.statements);
        let waits = std::mem::take(&mut self.waits);
        if samples == 0.0 {
            return Vec::new();
        }
        tell(&mut self.told_statements, statements.iter().map(|(key, sum)| (key, *sum)));
        tell(&mut self.told_waits, waits.iter().map(|(wait, sums)| (wait, sums.sessions)));
        let states = SessionState::ALL.into_iter().map(|state| {
            let sessions = states.get(&state).copied().unwrap_or_default();
            Gauge::new(SESSIONS, "{session}", sessions / samples).with(SESSION_STATE, state.as_str())
        });
        let statements = self.told_statements.iter().map(|key| {
            let sessions = statements.get(key).copied().unwrap_or_default() / samples;
            Gauge::new(STATEMENT_SESSIONS, "{session}", sessions).with(QUERY_TEXT, &key.0).with(WAIT_EVENT, &key.1)
        });
        let waits = self.told_waits.iter().flat_map(|wait| {
            let sums = waits.get(wait);
            let sessions = sums.map_or(0.0, |sums| sums.sessions / samples);
            let age = sums.filter(|_| wait.holder_state.is_some()).map(|sums| sums.age / sums.sessions);
            let waits = Gauge::new(LOCK_WAITS, "{session}", sessions);
            let age = age.map(|age| Gauge::new(HOLDER_AGE, "s", age));
            std::iter::once(waits).chain(age).map(|gauge| wait.label(gauge))
        });
        states.chain(statements).chain(waits).collect()
    }
}

impl Wait {
    fn label(&self, gauge: Gauge) -> Gauge {
        let state = self.holder_state.map_or("", SessionState::as_str);
        let labels = [
            (QUERY_TEXT, self.statement.as_str()),
            (LOCK_TYPE, &self.lock.lock_type),
            (COLLECTION, &self.lock.table),
            (HOLDER_STATE, state),
            (HOLDER_QUERY_TEXT, &self.holder_statement),
        ];
        labels
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .fold(gauge, |gauge, (name, value)| gauge.with(name, value))
    }
}

/// Adds the largest of what is new, as far as there are places.
fn tell<'a, K: Ord + Clone + 'a>(told: &mut BTreeSet<K>, sums: impl Iterator<Item = (&'a K, f64)>) {
    let mut new: Vec<(&K, f64)> = sums.filter(|(key, _)| !told.contains(*key)).collect();
    new.sort_by(|a, b| b.1.total_cmp(&a.1));
    let places = LABELS_MAX.saturating_sub(told.len());
    told.extend(new.into_iter().take(places).map(|(key, _)| key.clone()));
}

/// The session that a wait ends with: it waits for no other, or for one that the sample does not have.
fn holder<'a>(session: &Session, by_id: &BTreeMap<i64, &'a Session>) -> Option<&'a Session> {
    let mut holder = None;
    let mut seen = BTreeSet::from([session.id]);
    let mut next = session.blockers.iter().find_map(|id| by_id.get(id));
    while let Some(found) = next.filter(|found| seen.insert(found.id)) {
        holder = Some(*found);
        next = found.blockers.iter().find_map(|id| by_id.get(id));
    }
    holder
}

fn label_text(statement: &str) -> String {
    statement_shape(statement).chars().take(LABEL_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active(id: i64, statement: &str) -> Session {
        Session { id, is_active: true, statement: statement.to_owned(), ..Session::default() }
    }

    fn waiting(id: i64, statement: &str, blockers: &[i64]) -> Session {
        let lock = Some(Lock { lock_type: "row".to_owned(), table: String::new() });
        let wait_event = "Lock:transactionid".to_owned();
        Session { lock, wait_event, blockers: blockers.to_vec(), ..active(id, statement) }
    }

    fn shown(gauges: &[Gauge], name: &str) -> Vec<String> {
        let of_name = gauges.iter().filter(|gauge| gauge.name == name);
        let text = |gauge: &Gauge| {
            let labels: Vec<&str> = gauge.labels.values().map(String::as_str).collect();
            format!("{} {}", labels.join(", "), gauge.value)
        };
        of_name.map(text).collect()
    }

    #[test]
    fn a_chain_of_waits_is_told_with_the_session_at_its_end() {
        let update = "UPDATE counters SET n = n + 1 WHERE id = 7";
        let holder = Session { is_active: false, age_seconds: 0.006, ..active(1, update) };
        let mut samples = SessionSamples::default();
        samples.add(&[holder.clone(), waiting(2, update, &[1]), waiting(3, update, &[2])]);
        samples.add(&[Session { age_seconds: 0.004, ..holder }, waiting(3, update, &[1]), active(4, "SELECT 1")]);
        let gauges = samples.gauges();
        assert_eq!(shown(&gauges, SESSIONS), ["active 0.5", "waiting for a lock 1.5", "idle in transaction 1"]);
        let shape = "UPDATE counters SET n = n + ? WHERE id = ?";
        assert_eq!(shown(&gauges, LOCK_WAITS), [format!("{shape}, idle in transaction, row, {shape} 1.5")]);
        let age = gauges.iter().find(|gauge| gauge.name == HOLDER_AGE).unwrap();
        assert!((age.value - 0.016 / 3.0).abs() < 1e-12, "{}", age.value);
        samples.add(&[]);
        assert_eq!(shown(&samples.gauges(), LOCK_WAITS), [format!("{shape}, idle in transaction, row, {shape} 0")]);
        assert_eq!(samples.gauges(), [], "no sample since");
    }

    #[test]
    fn waits_that_were_not_looked_up_count_like_those_that_were() {
        let sessions: Vec<Session> =
            (0..40).map(|id| waiting(id, "UPDATE a SET b = 1", if id < 10 { &[99] } else { &[] })).collect();
        let mut samples = SessionSamples::default();
        samples.add(&sessions);
        assert_eq!(shown(&samples.gauges(), LOCK_WAITS), ["row, UPDATE a SET b = ? 40"], "the holder has gone");
    }

    #[test]
    fn sessions_that_wait_for_each_other_end_the_search() {
        let mut samples = SessionSamples::default();
        samples.add(&[waiting(1, "a", &[2]), waiting(2, "b", &[1])]);
        assert_eq!(shown(&samples.gauges(), LOCK_WAITS).len(), 2);
    }

    #[test]
    fn texts_are_bounded_and_counts_are_not() {
        let mut samples = SessionSamples::default();
        let many: Vec<Session> = (0..100).map(|id| active(id, &format!("SELECT a{id} FROM t"))).collect();
        samples.add(&many);
        let gauges = samples.gauges();
        assert_eq!(shown(&gauges, STATEMENT_SESSIONS).len(), LABELS_MAX);
        assert_eq!(shown(&gauges, SESSIONS)[0], "active 100");
    }
}
