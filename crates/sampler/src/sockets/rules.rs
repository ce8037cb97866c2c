//! Whether a request is outstanding on a connection. Pure.
//!
//! The kernel's account of a connection's data settles most cases: unread bytes are a response that the caller has not
//! read yet; data sent after the last data received is a request without a response. The kernel's times go in steps of
//! its clock tick, 1 to 10 ms. If the last data sent and received fall into one step, data that is not acknowledged, or
//! an acknowledgement after that step, says that a request came last.
//!
//! Segments settle the rest. Connections of one caller to one peer exchange messages of
//! the same shape, so that segments received per segment sent are a small fraction, *n* ÷ *d*. Then *d* × received −
//! *n* × sent has one value whenever a connection is idle and lower ones while a request is outstanding. Both the
//! fraction and the values are learned from what is settled, and what they say of samples that are settled anyway
//! decides whether they are used: where requests and responses vary in size, samples stay undecided.

/// Data of one end of a connection at an instant. Times are milliseconds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Snapshot {
    /// True if the peer has not accepted the connection yet.
    pub(super) is_connecting: bool,
    pub(super) unread_bytes: u32,
    /// Segments.
    pub(super) unacknowledged: u32,
    pub(super) sent_ago_ms: u32,
    pub(super) received_ago_ms: u32,
    pub(super) acknowledged_ago_ms: u32,
    /// Segments with data, since the connection was made.
    pub(super) sent: u32,
    pub(super) received: u32,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    /// Time in which data was unacknowledged, microseconds.
    pub(super) busy_us: u64,
}

/// State of a connection as seen from the end that sends requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// No request is outstanding.
    Idle,
    /// A request is outstanding.
    Waiting,
    /// A response is there and unread.
    Unread,
    /// A request may be outstanding.
    Undecided,
}

/// An acknowledgement of a request without a response is delayed by up to 200 ms, and travels. A later one acknowledges
/// a probe that keeps the connection alive; programs send these after a second or more.
const ACKNOWLEDGED_WITHIN_MS: u32 = 500;

impl Snapshot {
    /// State by the times; `None` if they are equal and nothing else settles it.
    fn settled(&self) -> Option<Activity> {
        if self.is_connecting {
            return Some(Activity::Waiting);
        }
        if self.unread_bytes > 0 {
            return Some(Activity::Unread);
        }
        if self.sent_bytes == 0 || self.sent_ago_ms > self.received_ago_ms {
            return Some(Activity::Idle);
        }
        let acknowledged_after_ms = self.sent_ago_ms.saturating_sub(self.acknowledged_ago_ms);
        let is_waiting = self.sent_ago_ms < self.received_ago_ms
            || self.unacknowledged > 0
            || (1..ACKNOWLEDGED_WITHIN_MS).contains(&acknowledged_after_ms)
            || self.received_bytes == 0;
        is_waiting.then_some(Activity::Waiting)
    }

    /// The same from the end that accepted the connection. A request that lies unread is outstanding too.
    fn settled_by_server(&self) -> Option<Activity> {
        if self.unread_bytes > 0 {
            return Some(Activity::Waiting);
        }
        if self.received_bytes == 0 || self.sent_ago_ms < self.received_ago_ms || self.unacknowledged > 0 {
            return Some(Activity::Idle);
        }
        (self.sent_ago_ms > self.received_ago_ms || self.sent_bytes == 0).then_some(Activity::Waiting)
    }
}

/// End of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Sends requests.
    Caller,
    /// Accepted the connection and responds.
    Server,
}

/// Segments since a connection was made, as the caller counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Segments {
    sent: u32,
    received: u32,
}

impl Segments {
    fn of(snapshot: &Snapshot, role: Role) -> Self {
        match role {
            Role::Caller => Self { sent: snapshot.sent, received: snapshot.received },
            Role::Server => Self { sent: snapshot.received, received: snapshot.sent },
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent.saturating_sub(earlier.sent), received: self.received.saturating_sub(earlier.received) }
    }
}

/// Segments received per segment sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio {
    received: u32,
    sent: u32,
}

impl Ratio {
    /// The simplest fraction from `low` to `high`, both above 0; `None` if its parts are beyond [`RATIO_MAX`].
    fn between(low: f64, high: f64) -> Option<Self> {
        // The tree of Stern and Brocot: each step takes the mediant of two neighbours.
        let (mut left, mut right) = ((0_u32, 1_u32), (1_u32, 0_u32));
        loop {
            let middle = (left.0 + right.0, left.1 + right.1);
            if middle.0.max(middle.1) > RATIO_MAX {
                return None;
            }
            let value = f64::from(middle.0) / f64::from(middle.1);
            if value < low {
                left = middle;
            } else if value > high {
                right = middle;
            } else {
                return Some(Self { received: middle.0, sent: middle.1 });
            }
        }
    }

    /// The value that is the same whenever a connection is idle.
    fn offset(self, segments: Segments) -> i64 {
        i64::from(self.sent) * i64::from(segments.received) - i64::from(self.received) * i64::from(segments.sent)
    }
}

/// Segments of a message at most: beyond, sizes differ.
const RATIO_MAX: u32 = 64;
/// Segments sent per connection from which a ratio is learned; older ones fade.
const LEARNED_PER_CONNECTION: f64 = 64.0;
/// Relative tolerance of a ratio at the least: a response is sometimes split.
const RATIO_TOLERANCE: f64 = 0.004;
/// Segments sent before there is a ratio.
const SENT_MIN: f64 = 8.0;
/// Offsets of idle connections that are remembered.
const OFFSETS_MAX: usize = 8;
/// Share of settled samples that a prediction has to meet.
const HITS_MIN: f64 = 0.95;
/// Predictions after which older ones fade.
const TESTS_MAX: f64 = 64.0;
/// Settled samples that must agree before connections learn from each other.
const VOTES_MIN: f64 = 3.0;

/// How often a prediction was right.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    tests: f64,
    hits: f64,
}

impl Score {
    fn add(&mut self, is_hit: bool) {
        if self.tests >= TESTS_MAX {
            (self.tests, self.hits) = (self.tests / 2.0, self.hits / 2.0);
        }
        self.tests += 1.0;
        self.hits += f64::from(u8::from(is_hit));
    }

    fn is_good(self) -> bool {
        self.hits >= HITS_MIN * self.tests
    }
}

/// Shape of the exchanges of one caller with one peer, learned from all its connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    sent: f64,
    received: f64,
    ratio: Option<Ratio>,
    /// Whether an idle connection has the offset of its last idle sample, and likewise of a waiting one.
    idle: Score,
    waiting: Score,
    /// Offsets of idle connections with the votes for each.
    offsets: Vec<(i64, f64)>,
}

impl Exchange {
    /// Learns from segments of one of `connections`.
    fn learn(&mut self, segments: Segments, connections: usize) {
        self.sent += f64::from(segments.sent);
        self.received += f64::from(segments.received);
        let connections = connections.max(1) as f64;
        if self.sent > 2.0 * LEARNED_PER_CONNECTION * connections {
            (self.sent, self.received) = (self.sent / 2.0, self.received / 2.0);
        }
        if self.sent < SENT_MIN || self.received < 1.0 {
            return;
        }
        let ratio = self.received / self.sent;
        // Each connection may have one exchange more or less than it would have had at another instant.
        let tolerance = ratio.max(1.0) * (connections / self.sent).clamp(RATIO_TOLERANCE, 0.25);
        let ratio = Ratio::between((ratio - tolerance).max(1e-3), ratio + tolerance);
        if ratio != self.ratio {
            (self.ratio, self.idle, self.waiting) = (ratio, Score::default(), Score::default());
            self.offsets.clear();
        }
    }

    fn vote(&mut self, offset: i64) {
        if let Some((_, votes)) = self.offsets.iter_mut().find(|(known, _)| *known == offset) {
            *votes += 1.0;
        } else if self.offsets.len() < OFFSETS_MAX {
            self.offsets.push((offset, 1.0));
        } else {
            self.offsets.iter_mut().for_each(|(_, votes)| *votes /= 2.0);
            self.offsets.retain(|(_, votes)| *votes >= 1.0);
        }
    }

    /// The offset that nearly all idle connections have.
    fn agreed_offset(&self) -> Option<i64> {
        let all: f64 = self.offsets.iter().map(|(_, votes)| votes).sum();
        let (offset, votes) = self.offsets.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))?;
        (votes >= VOTES_MIN && votes >= HITS_MIN * all).then_some(offset)
    }
}

/// Memory of a connection from sample to sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct History {
    role: Role,
    segments: Segments,
    activity: Activity,
    /// At the last sample that was settled as idle, and as waiting.
    idle: Option<Segments>,
    waiting: Option<Segments>,
    /// Samples in which only one direction carried data, and those in which it was the other's turn.
    pushes: Pushes,
}

#[derive(Debug, Clone, Copy, Default)]
struct Pushes {
    sent: u32,
    received: u32,
}

/// Samples with data that a connection of one direction has at least, and how many times fewer with data of the other.
const ONE_WAY_MIN: u32 = 10;
const ONE_WAY_RATIO: u32 = 10;
/// Samples with data after which older ones fade.
const PUSHES_MAX: u32 = 512;

impl History {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            segments: Segments::default(),
            activity: Activity::Undecided,
            idle: None,
            waiting: None,
            pushes: Pushes::default(),
        }
    }

    /// The activity at the last sample.
    pub(super) fn activity(&self) -> Activity {
        self.activity
    }

    /// True if nearly all data goes one way, so that nobody waits for a response.
    pub(super) fn is_one_way(&self) -> bool {
        let (less, more) = (self.pushes.sent.min(self.pushes.received), self.pushes.sent.max(self.pushes.received));
        more >= ONE_WAY_MIN && more > less.saturating_mul(ONE_WAY_RATIO)
    }

    /// Takes a sample; `connections` is how many the caller has to this peer.
    pub(super) fn observe(&mut self, now: &Snapshot, exchange: &mut Exchange, connections: usize) -> Activity {
        let segments = Segments::of(now, self.role);
        let before = std::mem::replace(&mut self.segments, segments);
        let moved = segments.since(before);
        let is_first = before == Segments::default();
        let is_unchanged = segments == before && !is_first;
        if !is_first {
            exchange.learn(moved, connections);
        }
        self.count_pushes(moved);
        let settled = match self.role {
            Role::Caller => now.settled(),
            Role::Server => now.settled_by_server(),
        };
        // Without new data the state is the same, unless the response has been read.
        let settled = settled.or(match self.activity {
            Activity::Unread if is_unchanged => Some(Activity::Idle),
            known @ (Activity::Idle | Activity::Waiting) if is_unchanged => Some(known),
            _ => None,
        });
        self.activity = match settled {
            Some(activity) => {
                if !is_unchanged {
                    self.compare(segments, activity, exchange);
                }
                match activity {
                    Activity::Idle => self.idle = Some(segments),
                    Activity::Waiting if !now.is_connecting => self.waiting = Some(segments),
                    _ => {}
                }
                activity
            }
            None => self.by_segments(segments, exchange),
        };
        self.activity
    }

    fn count_pushes(&mut self, moved: Segments) {
        self.pushes.sent += u32::from(moved.sent > 0);
        self.pushes.received += u32::from(moved.received > 0);
        if self.pushes.sent.max(self.pushes.received) > PUSHES_MAX {
            self.pushes = Pushes { sent: self.pushes.sent / 2, received: self.pushes.received / 2 };
        }
    }

    /// Compares what segments would have said with what is settled.
    fn compare(&self, segments: Segments, activity: Activity, exchange: &mut Exchange) {
        let Some(ratio) = exchange.ratio else { return };
        let offset = ratio.offset(segments);
        match activity {
            Activity::Idle => {
                if let Some(idle) = self.idle {
                    exchange.idle.add(ratio.offset(idle) == offset);
                }
                exchange.vote(offset);
            }
            Activity::Waiting => {
                if let Some(waiting) = self.waiting {
                    exchange.waiting.add(ratio.offset(waiting) == offset);
                }
                // One segment sent is the whole request where a segment more or less makes a whole response.
                if ratio.sent == 1 {
                    exchange.vote(offset + i64::from(ratio.received));
                }
            }
            Activity::Unread | Activity::Undecided => {}
        }
    }

    /// The state by the number of segments, if these have been right so far.
    fn by_segments(&self, segments: Segments, exchange: &Exchange) -> Activity {
        let Some(ratio) = exchange.ratio else { return Activity::Undecided };
        let offset = ratio.offset(segments);
        let own = self.idle.filter(|_| exchange.idle.is_good()).map(|idle| ratio.offset(idle));
        match own.or_else(|| exchange.agreed_offset()) {
            Some(idle) if offset == idle => return Activity::Idle,
            Some(idle) if offset < idle => return Activity::Waiting,
            _ => {}
        }
        let waiting = self.waiting.filter(|_| exchange.waiting.is_good() && exchange.waiting.tests >= VOTES_MIN);
        let is_waiting = waiting.is_some_and(|waiting| ratio.offset(waiting) == offset);
        if is_waiting { Activity::Waiting } else { Activity::Undecided }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The kernel's clock tick, milliseconds.
    const TICK_MS: f64 = 4.0;
    /// Delay of an acknowledgement that no data goes with, milliseconds.
    const ACKNOWLEDGEMENT_MS: f64 = 40.0;

    /// Calls over one connection, one after another.
    #[derive(Debug, Clone, Copy)]
    struct Calls {
        /// From a request to its response, milliseconds.
        response_ms: f64,
        /// From a response to the next request, milliseconds.
        think_ms: f64,
        /// Segments of a request and of a response.
        request: u32,
        response: u32,
    }

    impl Calls {
        /// The connection after `at_ms` from its first request, as its caller sees it; and whether it waits.
        fn at(self, at_ms: f64) -> (Snapshot, bool) {
            let cycle_ms = self.response_ms + self.think_ms;
            let number = (at_ms / cycle_ms).floor();
            let sent_ms = number * cycle_ms;
            let since_ms = at_ms - sent_ms;
            let is_waiting = since_ms < self.response_ms;
            let responded_ms = sent_ms + self.response_ms - if is_waiting { cycle_ms } else { 0.0 };
            let is_acknowledged = !is_waiting || since_ms >= ACKNOWLEDGEMENT_MS;
            let acknowledged_ms = match (is_waiting, is_acknowledged) {
                (true, true) => sent_ms + ACKNOWLEDGEMENT_MS,
                (false, _) => sent_ms + self.response_ms.min(ACKNOWLEDGEMENT_MS),
                (true, false) => responded_ms,
            };
            let ago_ms = |then_ms: f64| {
                ((at_ms / TICK_MS).floor() - (then_ms.max(0.0) / TICK_MS).floor()) as u32 * TICK_MS as u32
            };
            let requests = number as u32 + 1;
            let responses = requests - u32::from(is_waiting);
            let snapshot = Snapshot {
                unacknowledged: if is_acknowledged { 0 } else { self.request },
                sent_ago_ms: ago_ms(sent_ms),
                received_ago_ms: ago_ms(responded_ms),
                acknowledged_ago_ms: ago_ms(acknowledged_ms),
                sent: requests * self.request,
                received: responses * self.response,
                sent_bytes: u64::from(requests) * 100,
                received_bytes: u64::from(responses) * 1000,
                ..Snapshot::default()
            };
            (snapshot, is_waiting)
        }
    }

    /// Mean numbers over the samples of some connections: requests outstanding in truth, by the rules, and undecided.
    fn means(calls: Calls) -> [f64; 3] {
        const CONNECTIONS: usize = 8;
        const SAMPLES: usize = 1000;
        const LEARNING: usize = 50;
        let mut exchange = Exchange::default();
        let mut histories = [History::new(Role::Caller); CONNECTIONS];
        let mut sums = [0.0; 3];
        let mut at_ms = 1000.0;
        for sample in 0..SAMPLES {
            at_ms += 47.0 * (0.5 + (sample as f64 * 0.618_034).fract());
            for (number, history) in (0_u32..).zip(&mut histories) {
                let (snapshot, is_waiting) = calls.at(at_ms + f64::from(number) * 7.3);
                let activity = history.observe(&snapshot, &mut exchange, CONNECTIONS);
                if sample >= LEARNING {
                    let counted = [is_waiting, activity == Activity::Waiting, activity == Activity::Undecided];
                    sums.iter_mut().zip(counted).for_each(|(sum, counts)| *sum += f64::from(u8::from(counts)));
                }
            }
        }
        sums.map(|sum| sum / (SAMPLES - LEARNING) as f64)
    }

    #[test]
    fn requests_outstanding_are_counted_whatever_the_calls() {
        let calls = |response_ms, think_ms, request, response| Calls { response_ms, think_ms, request, response };
        let cases = [
            calls(100.0, 100.0, 1, 1),
            calls(39.0, 20.0, 1, 1),
            calls(10.0, 10.0, 1, 14),
            calls(2.0, 2.0, 1, 14),
            calls(1.0, 1.0, 1, 1),
            calls(0.08, 2.0, 1, 1),
            calls(60.0, 0.0, 1, 1),
            calls(5.0, 0.0, 1, 2),
            calls(5.0, 7.0, 3, 1),
        ];
        for case in cases {
            let [truth, waiting, undecided] = means(case);
            assert!(waiting <= truth * 1.08, "{case:?}: {waiting} of {truth}");
            assert!(waiting + undecided >= truth * 0.92, "{case:?}: {waiting} and {undecided} of {truth}");
            let is_open = case.request > 1;
            assert!(is_open || undecided <= 0.08 * truth.max(1.0), "{case:?}: {undecided} undecided of {truth}");
        }
    }

    #[test]
    fn times_settle_most_samples() {
        use Activity::{Idle, Unread, Waiting};
        let used = Snapshot { sent_bytes: 1, received_bytes: 1, ..Snapshot::default() };
        let at = |sent_ago_ms, received_ago_ms, acknowledged_ago_ms| Snapshot {
            sent_ago_ms,
            received_ago_ms,
            acknowledged_ago_ms,
            ..used
        };
        let cases = [
            ("an unread response", Snapshot { unread_bytes: 1, ..used }, Some(Unread)),
            ("not accepted yet", Snapshot { is_connecting: true, ..used }, Some(Waiting)),
            ("nothing sent", Snapshot { sent_bytes: 0, ..used }, Some(Idle)),
            ("sent after it received", at(4, 8, 8), Some(Waiting)),
            ("received after it sent", at(8, 4, 4), Some(Idle)),
            ("one tick, not acknowledged", Snapshot { unacknowledged: 1, ..at(8, 8, 8) }, Some(Waiting)),
            ("one tick, acknowledged later", at(60, 60, 20), Some(Waiting)),
            ("one tick, and a probe much later", at(60_000, 60_000, 20), None),
            ("one tick", at(8, 8, 8), None),
            ("no response so far", Snapshot { received_bytes: 0, ..at(8, 8, 8) }, Some(Waiting)),
        ];
        for (name, snapshot, expected) in cases {
            assert_eq!(snapshot.settled(), expected, "{name}");
        }
        assert_eq!(at(4, 8, 8).settled_by_server(), Some(Idle));
        assert_eq!(at(8, 4, 4).settled_by_server(), Some(Waiting));
    }

    #[test]
    fn a_stream_of_pushes_is_one_way() {
        let (mut history, mut exchange) = (History::new(Role::Caller), Exchange::default());
        for sample in 1..=20 {
            let now = Snapshot { received: sample, received_bytes: sample.into(), ..Snapshot::default() };
            history.observe(&now, &mut exchange, 1);
        }
        assert!(history.is_one_way());
    }

    proptest! {
        #[test]
        fn random_states_never_panic(
            states in prop::collection::vec((any::<[u32; 6]>(), any::<bool>()), 1..40),
            is_server in any::<bool>(),
        ) {
            let role = if is_server { Role::Server } else { Role::Caller };
            let (mut history, mut exchange) = (History::new(role), Exchange::default());
            for ([sent, received, sent_ago_ms, received_ago_ms, unacknowledged, bytes], is_connecting) in states {
                let now = Snapshot {
                    is_connecting,
                    unread_bytes: bytes % 2,
                    unacknowledged: unacknowledged % 2,
                    sent_ago_ms: sent_ago_ms % 16,
                    received_ago_ms: received_ago_ms % 16,
                    sent,
                    received,
                    sent_bytes: bytes.into(),
                    received_bytes: bytes.into(),
                    ..Snapshot::default()
                };
                history.observe(&now, &mut exchange, 3);
                history.is_one_way();
            }
        }
    }
}
