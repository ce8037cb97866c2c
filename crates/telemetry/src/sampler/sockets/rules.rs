//! Whether a request is outstanding on a connection. Pure.
//!
//! What the kernel says of a connection's data settles most cases: unread bytes are a response that the caller has not
//! read yet; data sent after the last data received is a request without a response. The kernel's times go in steps of
//! its clock tick, 1 to 10 ms. If the last data sent and received fall into one step, data that is not acknowledged, or
//! an acknowledgement after that step, says that a request came last.
//!
//! What is still undecided is settled by counting segments. Connections of one caller to one peer exchange messages of
//! the same shape, so that segments received per segment sent are a small fraction, *n* ÷ *d*. Then *d* × received −
//! *n* × sent has one value whenever a connection is idle and lower ones while a request is outstanding. Both the
//! fraction and the values are learned from what is settled, and what they say of samples that are settled anyway
//! decides whether they are used: where requests and responses vary in size, samples stay undecided.

/// Data of one end of a connection at an instant. Times are milliseconds before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::sampler) struct Snapshot {
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
    /// Smoothed, microseconds; 0 if it is not known.
    pub(super) round_trip_us: u32,
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
    /// What the times say; `None` if they are equal and nothing else settles it.
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

/// What is remembered of a connection from sample to sample.
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
