//! Messages sent to partitions that are not known to have arrived, and the numbers of those taken from them.
//!
//! Per pair of partitions, messages are numbered from 1 without gaps. The sender keeps them until the receiver has
//! durably taken them; the receiver remembers the last number it took. So each is taken once, in order, through any
//! crash of either.
//!
//! On its way to another process a message may be lost. The receiver keeps messages behind a gap in memory, and
//! reports the gap once, when it first sees it. Only the missing messages are then sent again. If the report is lost, or
//! nothing comes behind the gap, the sender hears nothing for a while and probes the receiver.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::PartitionId;
use crate::message::Message;
use crate::partition::size::room;

/// Messages that may be on their way to one partition without a word that they have arrived.
const WINDOW: u64 = 65_536;
/// Bytes of messages that may be kept because an earlier one has not come; others are dropped, and sent again later.
const EARLY_BYTES_MAX: usize = 16 << 20;
/// Gaps that are reported in response to one probe.
const GAPS_MAX: usize = 64;

/// Both ends of the ways to all partitions, this one included.
#[derive(Debug)]
pub(super) struct Outbox {
    lanes: Vec<Lane>,
    /// [`WINDOW`], unless a simulation makes it smaller.
    pub(super) window: u64,
    /// About how many bytes the messages that are open take.
    bytes: u64,
    /// [`EARLY_BYTES_MAX`], unless a simulation makes it smaller.
    pub(super) early_bytes_max: usize,
    early_bytes: usize,
}

/// Numbers of messages in a row that have not come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Gap {
    pub(super) first: u64,
    /// The number behind the last.
    pub(super) before: u64,
}

impl Gap {
    /// All messages.
    pub(super) const ALL: Self = Self { first: 0, before: u64::MAX };
}

/// How far the ways to and from one partition have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaneProgress {
    /// The last number given to a message for it.
    pub(crate) sent: u64,
    /// The last number that it is known to have taken.
    pub(crate) arrived: u64,
    /// The last number taken from it.
    pub(crate) taken: u64,
}

#[derive(Debug, Default)]
struct Lane {
    /// The last number given to a message.
    sent: u64,
    /// The last number that the gate knows of.
    announced: u64,
    /// The last number that is durable here.
    allowed: u64,
    /// The last number handed to the receiver.
    handed: u64,
    /// Messages not known to have arrived; the last has the number `sent`.
    open: VecDeque<Message>,
    /// The last number known to have arrived.
    arrived: u64,
    /// As far as the log knows.
    arrived_logged: u64,
    /// The last number known to have arrived at the last look for stuck messages.
    arrived_seen: u64,
    /// The last number taken from there.
    taken: u64,
    /// As far as the log, or the frame being written, knows.
    taken_logged: u64,
    /// Messages from there that have come before an earlier one, by number.
    early: BTreeMap<u64, Message>,
}

impl Lane {
    /// The last number that has come.
    fn heard(&self) -> u64 {
        self.early.last_key_value().map_or(self.taken, |(last, _)| self.taken.max(*last))
    }
}

impl Outbox {
    pub(super) fn new(partitions: u16) -> Self {
        let lanes = (0..partitions).map(|_| Lane::default()).collect();
        Self { lanes, window: WINDOW, bytes: 0, early_bytes_max: EARLY_BYTES_MAX, early_bytes: 0 }
    }

    fn lane(&mut self, partition: PartitionId) -> &mut Lane {
        &mut self.lanes[usize::from(partition.0)]
    }

    /// Whether there is such a partition.
    pub(super) fn knows(&self, partition: PartitionId) -> bool {
        usize::from(partition.0) < self.lanes.len()
    }

    /// Numbers a message and keeps it.
    pub(super) fn send(&mut self, to: PartitionId, message: Message) -> u64 {
        self.bytes += room(&message) as u64;
        let lane = self.lane(to);
        lane.sent += 1;
        lane.open.push_back(message);
        lane.sent
    }

    /// Keeps a message that the log says was sent.
    pub(super) fn restore(&mut self, to: PartitionId, sequence: u64, message: Message) {
        self.bytes += room(&message) as u64;
        let lane = self.lane(to);
        lane.sent = sequence;
        lane.open.push_back(message);
    }

    /// Messages up to this number are durable here and may be handed over.
    pub(super) fn allow(&mut self, to: PartitionId, up_to: u64) {
        let lane = self.lane(to);
        lane.allowed = lane.allowed.max(up_to);
    }

    /// The next messages that may be handed over and have not been, at most `most`, and the number of the first. None
    /// while [`WINDOW`] messages are on their way.
    pub(super) fn hand_over(&mut self, to: PartitionId, most: usize) -> (u64, Vec<Message>) {
        let window = self.window;
        let lane = self.lane(to);
        let up_to = lane.allowed.min(lane.sent).min(lane.arrived + window);
        let first_open = lane.sent + 1 - lane.open.len() as u64;
        let first = (lane.handed + 1).max(first_open);
        let skip = usize::try_from(first - first_open).unwrap_or(usize::MAX);
        let count = usize::try_from((up_to + 1).saturating_sub(first)).unwrap_or(0).min(most);
        let messages: Vec<Message> = lane.open.range(skip.min(lane.open.len())..).take(count).cloned().collect();
        lane.handed = lane.handed.max(first - 1 + messages.len() as u64);
        (first, messages)
    }

    /// Messages of a gap that were handed over and are not known to have arrived, at most `most`; and the number of the
    /// first.
    pub(super) fn again(&mut self, to: PartitionId, gap: Gap, most: usize) -> (u64, Vec<Message>) {
        let lane = self.lane(to);
        let first_open = lane.sent + 1 - lane.open.len() as u64;
        let (first, before) = (gap.first.max(first_open), gap.before.min(lane.handed + 1));
        let count = usize::try_from(before.saturating_sub(first)).unwrap_or(0).min(most);
        let skip = usize::try_from(first - first_open).unwrap_or(usize::MAX).min(lane.open.len());
        (first, lane.open.range(skip..).take(count).cloned().collect())
    }

    /// The last number that was handed over, if it is not known to have arrived.
    pub(super) fn unconfirmed(&mut self, to: PartitionId) -> Option<u64> {
        let lane = self.lane(to);
        (lane.handed > lane.arrived).then_some(lane.handed)
    }

    /// Partitions that have been handed messages and have acknowledged nothing since this was last called.
    pub(super) fn stuck(&mut self) -> impl Iterator<Item = PartitionId> + '_ {
        self.lanes.iter_mut().enumerate().filter_map(|(at, lane)| {
            let is_stuck = lane.handed > lane.arrived && lane.arrived == lane.arrived_seen;
            lane.arrived_seen = lane.arrived;
            is_stuck.then(|| partition(at))
        })
    }

    /// The last number given to a message for a partition.
    pub(super) fn sent(&mut self, to: PartitionId) -> u64 {
        self.lane(to).sent
    }

    /// The last number given, if it has grown since this was last called.
    pub(super) fn newly_sent(&mut self, to: PartitionId) -> Option<u64> {
        let lane = self.lane(to);
        (lane.sent > lane.announced).then(|| {
            lane.announced = lane.sent;
            lane.sent
        })
    }

    /// Forgets messages that have arrived.
    pub(super) fn arrived(&mut self, by: PartitionId, up_to: u64) {
        let lane = self.lane(by);
        let up_to = up_to.min(lane.sent);
        let mut bytes = 0;
        while lane.sent - (lane.open.len() as u64) < up_to
            && let Some(message) = lane.open.pop_front()
        {
            bytes += room(&message) as u64;
        }
        lane.arrived = lane.arrived.max(up_to);
        lane.handed = lane.handed.max(up_to);
        self.bytes -= bytes;
    }

    /// Whether a message of this number is the next one from there; if so it counts as taken.
    pub(super) fn take(&mut self, from: PartitionId, sequence: u64) -> bool {
        let lane = self.lane(from);
        let is_next = sequence == lane.taken + 1;
        if is_next {
            lane.taken = sequence;
        }
        is_next
    }

    /// Keeps a message that has come before an earlier one, if there is room.
    pub(super) fn keep_early(&mut self, from: PartitionId, sequence: u64, message: Message) {
        let (has_room, bytes) = (self.has_room_for_early(), room(&message));
        let lane = self.lane(from);
        if has_room && sequence > lane.taken && !lane.early.contains_key(&sequence) {
            lane.early.insert(sequence, message);
            self.early_bytes += bytes;
        }
    }

    fn has_room_for_early(&self) -> bool {
        self.early_bytes < self.early_bytes_max
    }

    /// Takes out the early messages from there that are next now.
    pub(super) fn early_run(&mut self, from: PartitionId) -> VecDeque<Message> {
        let lane = self.lane(from);
        let (mut run, mut bytes) = (VecDeque::new(), 0);
        while let Some(first) = lane.early.first_entry()
            && *first.key() <= lane.taken + 1 + run.len() as u64
        {
            let (sequence, message) = first.remove_entry();
            bytes += room(&message);
            // One that came again in the meantime has been taken.
            if sequence > lane.taken {
                run.push_back(message);
            }
        }
        self.early_bytes -= bytes;
        run
    }

    /// The gap before a message that has just come, if it was not there before. `None` if messages behind the gap are not
    /// kept.
    pub(super) fn new_gap(&mut self, from: PartitionId, sequence: u64) -> Option<Gap> {
        let has_room = self.has_room_for_early();
        let first = self.lane(from).heard() + 1;
        (has_room && first < sequence).then_some(Gap { first, before: sequence })
    }

    /// Gaps in the messages that have come from there, up to the number `up_to`.
    pub(super) fn gaps(&mut self, from: PartitionId, up_to: u64) -> Vec<Gap> {
        let lane = self.lane(from);
        let came = lane.early.keys().copied().chain([up_to.saturating_add(1)]);
        let gaps = came.scan(lane.taken + 1, |next, came| {
            let gap = Gap { first: *next, before: came };
            *next = came.saturating_add(1);
            Some(gap)
        });
        gaps.filter(|gap| gap.first < gap.before).take(GAPS_MAX).collect()
    }

    /// The last number taken from a partition.
    pub(super) fn taken(&mut self, from: PartitionId) -> u64 {
        self.lane(from).taken
    }

    /// Whether all that was sent to this very partition has been taken.
    pub(super) fn is_drained(&mut self, own: PartitionId) -> bool {
        let lane = self.lane(own);
        lane.sent == lane.taken
    }

    /// Restores the last number taken, from the log.
    pub(super) fn restore_taken(&mut self, from: PartitionId, up_to: u64) {
        let lane = self.lane(from);
        lane.taken = up_to;
        lane.taken_logged = up_to;
    }

    /// Restores the last number that arrived, from the log or a snapshot.
    pub(super) fn restore_arrived(&mut self, by: PartitionId, up_to: u64) {
        let lane = self.lane(by);
        lane.sent = lane.sent.max(up_to);
        lane.arrived_logged = up_to;
        lane.handed = lane.handed.max(up_to);
        lane.allowed = lane.allowed.max(up_to);
        self.arrived(by, up_to);
    }

    /// Messages taken since the last call: sender and last number.
    pub(super) fn newly_taken(&mut self) -> impl Iterator<Item = (PartitionId, u64)> + '_ {
        self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.taken > lane.taken_logged).map(|(at, lane)| {
            lane.taken_logged = lane.taken;
            (partition(at), lane.taken)
        })
    }

    /// Messages that arrived since the last call: receiver and last number.
    pub(super) fn newly_arrived(&mut self) -> impl Iterator<Item = (PartitionId, u64)> + '_ {
        self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.arrived > lane.arrived_logged).map(|(at, lane)| {
            lane.arrived_logged = lane.arrived;
            (partition(at), lane.arrived)
        })
    }

    /// State for a snapshot: per partition the last number taken, the last that arrived, and the open messages.
    pub(super) fn lanes(&self) -> impl Iterator<Item = (PartitionId, u64, u64, &VecDeque<Message>)> {
        self.lanes
            .iter()
            .enumerate()
            .map(|(at, lane)| (partition(at), lane.taken, lane.sent - lane.open.len() as u64, &lane.open))
    }

    /// How far the ways to and from each partition have come, as far as this side knows.
    pub(super) fn progress(&self) -> Vec<LaneProgress> {
        let of = |lane: &Lane| LaneProgress { sent: lane.sent, arrived: lane.arrived, taken: lane.taken };
        self.lanes.iter().map(of).collect()
    }

    /// About how many bytes the messages that are open take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many messages are open.
    pub(super) fn open(&self) -> usize {
        self.lanes.iter().map(|lane| lane.open.len()).sum()
    }
}

fn partition(at: usize) -> PartitionId {
    PartitionId(u16::try_from(at).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::InstanceId;
    use crate::message::MessageKind;

    fn message(reason: &str) -> Message {
        let to = InstanceId::new("x").expect("an identifier");
        Message { to, kind: MessageKind::Resume { reason: reason.into() } }
    }

    fn gap(first: u64, before: u64) -> Gap {
        Gap { first, before }
    }

    #[test]
    fn messages_are_handed_over_once_and_kept_until_they_arrive() {
        let (mut outbox, to) = (Outbox::new(2), PartitionId(1));
        assert_eq!([outbox.send(to, message("a")), outbox.send(to, message("b"))], [1, 2]);
        outbox.allow(to, 1);
        assert_eq!(outbox.hand_over(to, 9), (1, vec![message("a")]));
        outbox.allow(to, 2);
        assert_eq!(outbox.hand_over(to, 9), (2, vec![message("b")]));
        assert_eq!(outbox.open(), 2);
        outbox.arrived(to, 1);
        assert_eq!(outbox.open(), 1);
        assert_eq!(outbox.newly_arrived().collect::<Vec<_>>(), [(to, 1)]);
        outbox.send(to, message("c"));
        outbox.allow(to, 3);
        assert_eq!(outbox.hand_over(to, 9), (3, vec![message("c")]));
    }

    #[test]
    fn after_a_crash_all_that_is_open_is_handed_over_again() {
        let (mut outbox, to) = (Outbox::new(2), PartitionId(1));
        outbox.restore(to, 1, message("a"));
        outbox.restore(to, 2, message("b"));
        outbox.restore_arrived(to, 1);
        outbox.allow(to, 2);
        assert_eq!(outbox.hand_over(to, 9), (2, vec![message("b")]));
        assert_eq!(outbox.send(to, message("c")), 3);
    }

    #[test]
    fn what_a_silent_receiver_was_handed_is_handed_over_again() {
        let (mut outbox, to) = (Outbox::new(2), PartitionId(1));
        for reason in ["a", "b", "c"] {
            outbox.send(to, message(reason));
        }
        outbox.allow(to, 2);
        assert_eq!(outbox.stuck().count(), 0, "nothing was handed over");
        assert_eq!(outbox.hand_over(to, 9).1.len(), 2);
        outbox.arrived(to, 1);
        assert_eq!(outbox.stuck().count(), 0, "it has just acknowledged one");
        assert_eq!(outbox.stuck().collect::<Vec<_>>(), [to]);
        assert_eq!(outbox.unconfirmed(to), Some(2));
        outbox.allow(to, 3);
        assert_eq!(outbox.again(to, Gap::ALL, 9), (2, vec![message("b")]), "what was not handed over is not repeated");
        assert_eq!(outbox.hand_over(to, 9), (3, vec![message("c")]));
        assert_eq!(outbox.again(to, Gap { first: 3, before: 4 }, 9), (3, vec![message("c")]));
        assert_eq!(outbox.again(to, Gap::ALL, 1), (2, vec![message("b")]));
        outbox.arrived(to, 3);
        assert!(outbox.again(to, Gap::ALL, 9).1.is_empty());
        assert_eq!(outbox.unconfirmed(to), None);
        assert_eq!(outbox.stuck().count(), 0);
    }

    #[test]
    fn what_comes_early_is_kept_until_the_gap_before_it_is_filled() {
        let (mut outbox, from) = (Outbox::new(2), PartitionId(1));
        assert!(outbox.take(from, 1));
        assert_eq!(outbox.new_gap(from, 2), None);
        assert_eq!(outbox.new_gap(from, 4), Some(gap(2, 4)));
        for sequence in [4, 5, 8, 4] {
            outbox.keep_early(from, sequence, message(&sequence.to_string()));
        }
        assert_eq!(outbox.new_gap(from, 9), None, "it is known");
        assert_eq!(outbox.gaps(from, 10), [gap(2, 4), gap(6, 8), gap(9, 11)]);
        assert_eq!(outbox.gaps(from, 1), [gap(2, 4), gap(6, 8)]);
        assert!(outbox.early_run(from).is_empty());
        assert!(outbox.take(from, 2) && outbox.take(from, 3));
        assert_eq!(outbox.early_run(from), [message("4"), message("5")]);
        assert!((4..=6).all(|sequence| outbox.take(from, sequence)));
        assert!(outbox.early_run(from).is_empty());
        assert!(outbox.take(from, 7) && outbox.take(from, 8), "it came again");
        assert!(outbox.early_run(from).is_empty());
        assert_eq!((outbox.gaps(from, 8), outbox.early_bytes), (Vec::new(), 0));
    }

    #[test]
    fn what_comes_early_and_has_no_room_is_dropped_and_not_missed_at_once() {
        let (mut outbox, from) = (Outbox::new(2), PartitionId(1));
        outbox.early_bytes_max = 1;
        outbox.keep_early(from, 2, message("2"));
        outbox.keep_early(from, 3, message("3"));
        assert_eq!(outbox.new_gap(from, 9), None);
        assert_eq!(outbox.gaps(from, 9), [gap(1, 2), gap(3, 10)]);
        assert!(outbox.take(from, 1));
        assert_eq!(outbox.early_run(from), [message("2")]);
    }

    #[test]
    fn a_receiver_that_says_nothing_is_given_no_more_than_the_window() {
        let (mut outbox, to) = (Outbox::new(2), PartitionId(1));
        for _ in 0..WINDOW + 5 {
            outbox.send(to, message("a"));
        }
        outbox.allow(to, WINDOW + 5);
        assert_eq!(outbox.hand_over(to, usize::MAX).1.len() as u64, WINDOW);
        assert!(outbox.hand_over(to, usize::MAX).1.is_empty());
        outbox.arrived(to, 3);
        assert_eq!(outbox.hand_over(to, usize::MAX), (WINDOW + 1, vec![message("a"); 3]));
    }

    #[test]
    fn a_number_is_taken_once_and_in_order() {
        let (mut outbox, from) = (Outbox::new(2), PartitionId(1));
        assert!(!outbox.take(from, 2));
        assert!(outbox.take(from, 1));
        assert!(!outbox.take(from, 1));
        assert!(outbox.take(from, 2));
        assert_eq!(outbox.newly_taken().collect::<Vec<_>>(), [(from, 2)]);
        assert_eq!(outbox.newly_taken().count(), 0);
    }
}
