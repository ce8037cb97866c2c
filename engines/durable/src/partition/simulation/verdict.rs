//! The end of a schedule: all comes to rest, then the state is compared with the promises.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use crate::client::Status;
use crate::ids::{InstanceId, SET_BACK_HIDDEN_MAX};
use crate::partition::Partition;
use crate::partition::simulation::audit::Audit;
use crate::partition::simulation::code::{LEDGER, Ledger, Reaction, Token, launched};
use crate::partition::simulation::digest::digest;
use crate::partition::simulation::workload::Wish;
use crate::partition::simulation::world::World;
use crate::partition::table::Instance;

/// Rounds after which a hub that is not at rest never will be.
const ROUNDS_MAX: usize = 20_000;

/// Events that schedules met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) steps: u64,
    pub(super) crashes: u64,
    pub(super) stops: u64,
    /// Times that a partition went to another node while the others carried on.
    pub(super) moves: u64,
    /// Messages and acknowledgements that were lost on their way.
    pub(super) lost: u64,
    pub(super) damages: u64,
    /// Times that the hub was opened without the code of its orchestrations.
    pub(super) misfits: u64,
    /// Those with which the hub opened, as nothing that counts was hit.
    pub(super) damages_borne: u64,
    pub(super) frames: u64,
    pub(super) snapshots: u64,
    pub(super) replays: u64,
    pub(super) orchestrations: u64,
    pub(super) notes: u64,
    pub(super) events_raised: u64,
    /// Executions that failed because one of their steps did too much.
    pub(super) oversized: u64,
    pub(super) acknowledged: u64,
    pub(super) left_unknown: u64,
}

impl Tally {
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            steps: self.steps + other.steps,
            crashes: self.crashes + other.crashes,
            stops: self.stops + other.stops,
            moves: self.moves + other.moves,
            lost: self.lost + other.lost,
            damages: self.damages + other.damages,
            misfits: self.misfits + other.misfits,
            damages_borne: self.damages_borne + other.damages_borne,
            frames: self.frames + other.frames,
            snapshots: self.snapshots + other.snapshots,
            replays: self.replays + other.replays,
            orchestrations: self.orchestrations + other.orchestrations,
            notes: self.notes + other.notes,
            events_raised: self.events_raised + other.events_raised,
            oversized: self.oversized + other.oversized,
            acknowledged: self.acknowledged + other.acknowledged,
            left_unknown: self.left_unknown + other.left_unknown,
        }
    }

    pub(super) fn has_met_everything(&self) -> bool {
        let Self {
            crashes,
            stops,
            moves,
            lost,
            damages,
            misfits,
            snapshots,
            replays,
            orchestrations,
            notes,
            events_raised,
            oversized,
            left_unknown,
            ..
        } = *self;
        let happened = [crashes, stops, moves, lost, damages, misfits, snapshots, replays];
        let done = [orchestrations, notes, events_raised, oversized, left_unknown];
        happened.iter().chain(&done).all(|count| *count > 0)
    }
}

impl World {
    /// Nothing fails and no more requests come: everything that was begun goes on to its end.
    pub(super) fn rest(&mut self) {
        self.is_calm = true;
        self.wrong_by = 0;
        if self.has_misfit || self.nodes.iter().any(|node| !node.is_up) {
            self.crash();
        }
        self.new_timers_are_not_late();
        for _ in 0..ROUNDS_MAX {
            self.round();
            if self.is_still() && !self.repeat_all() && !self.wake() {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// However wrong the clock was, it is right now, and a timer that begins now ends when it should.
    fn new_timers_are_not_late(&mut self) {
        let (drawn, id) = self.workload.sleeper();
        let at = usize::from(drawn.to.0);
        self.put(drawn);
        let mut rounds = 0..ROUNDS_MAX;
        while !self.nodes[at].inbox.is_empty() || self.nodes[at].partition.is_busy() {
            assert!(rounds.next().is_some(), "{at} does not take its inputs");
            self.turn(at);
        }
        // A partition that is full does not let it begin.
        let partition = &self.nodes[at].partition;
        let due = partition.table.handle(&id).and_then(|handle| partition.timers.due_of(handle));
        let now = self.now.max(self.clock(at, 0));
        let latest = now.plus(SET_BACK_HIDDEN_MAX + Duration::from_secs(2));
        assert!(due.is_none_or(|due| due <= latest), "{due:?} is late, it is {now:?}");
    }

    fn round(&mut self) {
        for at in 0..self.nodes.len() {
            self.turn(at);
            self.begin_commit(at);
            self.end_commit(at);
            self.confirm(at);
        }
        while self.deliver() {}
        while self.run_activity() {}
        while self.chore() {}
    }

    /// Goes to the next moment with a due timer, or resumes suspended orchestrations. Says whether there is
    /// any.
    fn wake(&mut self) -> bool {
        if let Some(due) = self.nodes.iter().filter_map(|node| node.partition.next_due()).min() {
            // Clocks that are a little behind are so by less than this; one that does not believe its clock waits.
            let wait = if due <= self.now { Duration::from_secs(1) } else { Duration::from_millis(10) };
            self.now = self.now.max(due).plus(wait);
            return true;
        }
        let suspended: Vec<InstanceId> = self
            .instances()
            .filter(|instance| instance.status() == Status::Suspended)
            .map(|instance| instance.id.clone())
            .collect();
        for id in &suspended {
            let drawn = self.workload.resume(id);
            self.put(drawn);
        }
        !suspended.is_empty()
    }

    fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.nodes.iter().flat_map(|node| node.partition.table.from(0).map(|(_, instance)| instance))
    }

    /// Panics unless every promise was kept.
    pub(super) fn judge(&mut self) -> Tally {
        let mut verdict = Verdict {
            audit: &self.audit,
            acknowledged: self.acknowledged.iter().map(|(_, wish)| wish).collect(),
            unknown: &self.unknown,
            waiting: self.pending.iter().map(|pending| &pending.wish).collect(),
            partitions: self.nodes.iter_mut().map(|node| &mut node.partition).collect(),
        };
        self.tally.notes = verdict.give();
        self.tally.steps = self.trace.steps();
        self.tally.orchestrations = self.audit.begun.len() as u64;
        self.tally.events_raised = self.audit.raised.len() as u64;
        self.tally.oversized = self.audit.oversized;
        self.tally.acknowledged = self.acknowledged.len() as u64;
        self.tally.left_unknown = self.unknown.len() as u64;
        (0..self.nodes.len()).for_each(|at| self.note_state(at));
        self.crash();
        self.tally
    }
}

/// The final state, and the promises it is checked against.
pub(super) struct Verdict<'a> {
    pub(super) audit: &'a Audit,
    pub(super) acknowledged: Vec<&'a Wish>,
    /// Requests that may be done or not.
    pub(super) unknown: &'a [Wish],
    /// Requests that got no response.
    pub(super) waiting: Vec<&'a Wish>,
    /// All partitions, as they are.
    pub(super) partitions: Vec<&'a mut Partition>,
}

impl Verdict<'_> {
    /// Panics unless every promise was kept. Gives how many notes there are.
    pub(super) fn give(&mut self) -> u64 {
        self.nothing_is_left_open();
        let ledgers = self.ledgers();
        self.every_start_began();
        self.every_note_is_there_once(&ledgers);
        self.every_message_of_ledgers_arrived(&ledgers);
        ledgers.values().map(|ledger| ledger.noted.len() as u64).sum()
    }

    fn instances(&self) -> impl Iterator<Item = &Instance> {
        self.partitions.iter().flat_map(|partition| partition.table.from(0).map(|(_, instance)| instance))
    }

    fn nothing_is_left_open(&mut self) {
        let open = self.audit.open();
        let held = |verdict: &mut Self| {
            let all = verdict.partitions.iter_mut().map(|partition| {
                let id = partition.settings.id;
                format!("{id}:\n{}", digest(partition))
            });
            all.collect::<Vec<String>>().join("\n")
        };
        assert!(open.is_empty(), "these have not ended: {open:#?}, and this is held:\n{}", held(self));
        for instance in self.instances() {
            let (id, status) = (&instance.id, instance.status());
            match instance.entity() {
                Some(entity) => {
                    let is_free = entity.lock.is_none() && entity.queue.is_empty() && entity.arrived.is_empty();
                    assert!(is_free, "{id} is still locked: {entity:?}");
                }
                None => assert!(status.is_ended(), "{id} is still {status:?}"),
            }
        }
        for partition in &self.partitions {
            let counts = partition.counts();
            let open = (counts.outbox, counts.activities_open, counts.timers, counts.gated);
            assert_eq!(open, (0, 0, 0, 0), "{}: messages, activities, timers, effects are left", partition.settings.id);
        }
        assert!(self.waiting.is_empty(), "these got no response: {:?}", self.waiting);
    }

    fn ledgers(&self) -> BTreeMap<InstanceId, Ledger> {
        let is_ledger = |instance: &&Instance| instance.id.as_str().contains(LEDGER.name());
        let states = self.instances().filter(is_ledger).filter_map(|instance| {
            let state = instance.entity()?.state.as_ref()?;
            Some((instance.id.clone(), state.decode().expect("a ledger")))
        });
        states.collect()
    }

    fn every_start_began(&self) {
        for wish in &self.acknowledged {
            if let Wish::Start { beginning } = wish {
                assert!(self.audit.begun.contains_key(beginning), "{beginning} was acknowledged and lost");
            }
        }
        for (beginning, id) in &self.audit.promised {
            let is_taken = self.audit.beginnings.contains(id);
            assert!(is_taken || self.audit.begun.contains_key(beginning), "{beginning}, to be {id}, was lost");
        }
    }

    fn every_note_is_there_once(&self, ledgers: &BTreeMap<InstanceId, Ledger>) {
        let mut places: BTreeMap<&Token, &InstanceId> = BTreeMap::new();
        for (id, ledger) in ledgers {
            let mut last: HashMap<&str, u32> = HashMap::new();
            for note in &ledger.noted {
                let before = places.insert(&note.token, id);
                assert!(before.is_none(), "{:?} is noted twice, in {before:?} and {id}", note.token);
                if !note.token.is_loose {
                    let before = last.insert(&note.token.sender, note.token.number);
                    assert!(before < Some(note.token.number), "{:?} of {id} came after {before:?}", note.token);
                }
            }
        }
        for (token, ledger) in &self.audit.sent_notes {
            assert_eq!(places.remove(token), Some(ledger), "{token:?} was sent and lost");
        }
        let note = |wish: &Wish| if let Wish::Note { token } = wish { Some(token.clone()) } else { None };
        for token in self.acknowledged.iter().filter_map(|wish| note(wish)) {
            assert!(places.remove(&token).is_some(), "{token:?} was acknowledged and lost");
        }
        let unknown: BTreeSet<Token> = self.unknown.iter().filter_map(note).collect();
        let ghosts: Vec<&Token> = places.into_keys().filter(|token| !unknown.contains(token)).collect();
        assert!(ghosts.is_empty(), "these were noted and never durably sent: {ghosts:?}");
    }

    fn every_message_of_ledgers_arrived(&self, ledgers: &BTreeMap<InstanceId, Ledger>) {
        let mut heard: Vec<(InstanceId, Token)> = Vec::new();
        let mut sent: Vec<(InstanceId, Token)> = Vec::new();
        for (id, ledger) in ledgers {
            heard.extend(ledger.heard.iter().map(|token| (id.clone(), token.clone())));
            for note in &ledger.noted {
                match note.then {
                    Reaction::Nothing => {}
                    Reaction::Tell(other) => {
                        sent.push((super::code::ledger(other).instance().clone(), note.token.clone()))
                    }
                    Reaction::Launch => {
                        let beginning = format!("{}~0", launched(&note.token));
                        assert!(self.audit.begun.contains_key(&beginning), "{beginning} was launched and lost");
                    }
                }
            }
        }
        heard.sort_unstable();
        sent.sort_unstable();
        assert_eq!(heard, sent, "ledgers heard other tokens than were sent to them");
    }
}
