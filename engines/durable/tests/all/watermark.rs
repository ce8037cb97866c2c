//! The protocol between two partitions and their disks as a small model, of which every state that can be reached is
//! looked at.
//!
//! Partition A takes steps; each sends a message to B and has an effect outside. B takes messages. Each has a log with a
//! durable beginning and a volatile rest, and forgets the rest when it crashes. A step shows outside (its effect, its
//! message, the word that a message has arrived) only once it is durable; B takes each number once and in order; A keeps
//! what it sent until it durably knows that it has arrived, and after a crash sends it again.
//!
//! Each of these rules is left out in turn, and the search must find what then goes wrong: else it would prove nothing.

use std::collections::{HashMap, VecDeque};

/// Steps that A takes in all.
const STEPS: u8 = 3;
/// Crashes there may be.
const CRASHES: u8 = 2;

/// Which rule is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Without {
    Nothing,
    /// Effects of A show before they are durable.
    TheWatermark,
    /// B says that a message has arrived before it has durably taken it.
    TheWatermarkOfArrivals,
    /// B takes whatever comes.
    Numbers,
    /// After a crash A does not send again what is not known to have arrived.
    SendingAgain,
}

/// State that must never be reached.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Violation {
    /// An effect was seen, or a message taken, of a step that a crash has undone.
    ShownAndUndone,
    /// A message was taken more than once.
    TakenTwice,
    /// Nothing is left to do, and a durable step's message was not taken.
    NeverTaken,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Entry {
    /// A took the step of this number, which no other step ever has.
    Step(u8),
    /// A knows that B took this many messages.
    Arrived(u8),
    /// B took the message of this step.
    Took(u8),
}

/// A partition: its log, how much of it is durable, and how much of it has shown outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Side {
    log: Vec<Entry>,
    durable: usize,
    shown: usize,
}

/// A message: its place among those A sent, and the step that sent it.
type Message = (u8, u8);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct State {
    a: Side,
    b: Side,
    /// On their way to B; sorted, for their order does not matter.
    messages: Vec<Message>,
    /// On their way to A: how many B took.
    arrivals: Vec<u8>,
    steps: u8,
    crashes: u8,
    /// Steps whose effects were seen outside, as bits.
    seen: u8,
    /// Steps that a crash undid.
    undone: u8,
}

impl State {
    fn sent(&self) -> Vec<u8> {
        self.a.log.iter().filter_map(|entry| if let Entry::Step(step) = entry { Some(*step) } else { None }).collect()
    }

    fn taken(side: &[Entry]) -> Vec<u8> {
        side.iter().filter_map(|entry| if let Entry::Took(step) = entry { Some(*step) } else { None }).collect()
    }

    fn arrived(&self) -> u8 {
        let arrived =
            self.a.log.iter().filter_map(|entry| if let Entry::Arrived(up_to) = entry { Some(*up_to) } else { None });
        arrived.max().unwrap_or(0)
    }

    /// All that can happen next without a crash or a new step.
    fn goes_on(&self, without: Without) -> Vec<State> {
        let mut next = Vec::new();
        for side in [0, 1] {
            next.extend(self.commit(side));
        }
        next.extend(self.show_a(without));
        next.extend(self.show_b(without));
        next.extend((0..self.messages.len()).map(|at| self.deliver(at, without)));
        next.extend((0..self.arrivals.len()).map(|at| self.hear(at)));
        next
    }

    fn next(&self, without: Without) -> Vec<State> {
        let mut next = self.goes_on(without);
        if self.steps < STEPS {
            let mut state = self.clone();
            state.a.log.push(Entry::Step(self.steps));
            state.steps += 1;
            next.push(state);
        }
        if self.crashes < CRASHES {
            next.push(self.crash(Crash::A, without));
            next.push(self.crash(Crash::Both, without));
        }
        next
    }

    /// One more entry is durable. That several become so at once is several of these.
    fn commit(&self, side: usize) -> Option<State> {
        let mut state = self.clone();
        let side = if side == 0 { &mut state.a } else { &mut state.b };
        (side.durable < side.log.len()).then(|| side.durable += 1)?;
        Some(state)
    }

    fn show_a(&self, without: Without) -> Option<State> {
        let may_show = if without == Without::TheWatermark { self.a.log.len() } else { self.a.durable };
        if self.a.shown >= may_show {
            return None;
        }
        let mut state = self.clone();
        if let Entry::Step(step) = self.a.log[self.a.shown] {
            state.seen |= 1 << step;
            let place = self.sent().iter().position(|sent| *sent == step).unwrap() as u8 + 1;
            state.send((place, step));
        }
        state.a.shown += 1;
        Some(state)
    }

    fn show_b(&self, without: Without) -> Option<State> {
        let may_show = if without == Without::TheWatermarkOfArrivals { self.b.log.len() } else { self.b.durable };
        if self.b.shown >= may_show {
            return None;
        }
        let mut state = self.clone();
        state.b.shown += 1;
        let up_to = state.b.shown as u8;
        state.say_arrived(up_to);
        Some(state)
    }

    fn send(&mut self, message: Message) {
        self.messages.push(message);
        self.messages.sort_unstable();
    }

    fn say_arrived(&mut self, up_to: u8) {
        self.arrivals.push(up_to);
        self.arrivals.sort_unstable();
        self.arrivals.dedup();
    }

    fn deliver(&self, at: usize, without: Without) -> State {
        let mut state = self.clone();
        let (place, step) = state.messages.remove(at);
        let taken = state.b.log.len() as u8;
        if place == taken + 1 || without == Without::Numbers {
            state.b.log.push(Entry::Took(step));
        } else if place <= taken && state.b.shown > 0 {
            // It was taken before: A is notified once more, of what is durable.
            let up_to = state.b.shown as u8;
            state.say_arrived(up_to);
        } else if place > taken + 1 {
            // A message overtook another; a hub does not let that happen. It waits.
            state.send((place, step));
        }
        state
    }

    fn hear(&self, at: usize) -> State {
        let mut state = self.clone();
        let up_to = state.arrivals.remove(at);
        if up_to > self.arrived() {
            state.a.log.push(Entry::Arrived(up_to));
        }
        state
    }

    /// Loses everything that is not durable. If both crash, as a process does, so is all that is under way; if only A
    /// does, which is worse than what a hub can meet, B may be sent what it was sent before.
    fn crash(&self, crash: Crash, without: Without) -> State {
        let mut state = self.clone();
        state.crashes += 1;
        for entry in state.a.log.split_off(state.a.durable) {
            if let Entry::Step(step) = entry {
                state.undone |= 1 << step;
            }
        }
        state.a.shown = state.a.durable;
        if crash == Crash::Both {
            state.b.log.truncate(state.b.durable);
            state.b.shown = state.b.durable;
            state.messages.clear();
            state.arrivals.clear();
        }
        state.recover(without);
        state
    }

    /// A runs again what its log leaves open, and sends again what is not known to have arrived.
    fn recover(&mut self, without: Without) {
        let arrived = self.arrived();
        for (place, step) in (1..).zip(self.sent()) {
            self.seen |= 1 << step;
            if place > arrived && without != Without::SendingAgain {
                self.send((place, step));
            }
        }
        if self.b.shown > 0 {
            let up_to = self.b.shown as u8;
            self.say_arrived(up_to);
        }
    }

    fn violation(&self, without: Without) -> Option<Violation> {
        let taken = Self::taken(&self.b.log);
        if self.seen & self.undone != 0 || taken.iter().any(|step| self.undone & (1 << step) != 0) {
            return Some(Violation::ShownAndUndone);
        }
        if (1..taken.len()).any(|at| taken[..at].contains(&taken[at])) {
            return Some(Violation::TakenTwice);
        }
        let is_still = self.goes_on(without).iter().all(|next| next == self);
        (is_still && taken != self.sent()).then_some(Violation::NeverTaken)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Crash {
    A,
    Both,
}

/// Looks at every state that can be reached, in the order of the number of steps to it; how many there are, or the
/// shortest way to a violation.
fn search(without: Without) -> Result<usize, (Violation, Vec<State>)> {
    let mut found: HashMap<State, Option<State>> = HashMap::new();
    let mut open = VecDeque::from([State::default()]);
    found.insert(State::default(), None);
    while let Some(state) = open.pop_front() {
        if let Some(violation) = state.violation(without) {
            return Err((violation, way(&found, state)));
        }
        for next in state.next(without) {
            if !found.contains_key(&next) {
                found.insert(next.clone(), Some(state.clone()));
                open.push_back(next);
            }
        }
    }
    Ok(found.len())
}

fn way(found: &HashMap<State, Option<State>>, end: State) -> Vec<State> {
    let mut way = vec![end];
    while let Some(Some(before)) = found.get(way.last().unwrap()) {
        way.push(before.clone());
    }
    way.reverse();
    way
}

#[test]
fn no_state_breaks_a_promise() {
    match search(Without::Nothing) {
        Ok(states) => {
            println!("{states} states");
            assert!(states > 10_000, "only {states} states were found");
        }
        Err((violation, way)) => panic!("{violation:?} by {way:#?}"),
    }
}

#[test]
fn every_rule_is_needed() {
    let needed = [
        (Without::TheWatermark, Violation::ShownAndUndone),
        (Without::TheWatermarkOfArrivals, Violation::NeverTaken),
        (Without::Numbers, Violation::TakenTwice),
        (Without::SendingAgain, Violation::NeverTaken),
    ];
    for (without, expected) in needed {
        let (violation, way) = search(without).expect_err("the rule is superfluous");
        println!("without {without:?}: {violation:?} after {} steps", way.len() - 1);
        assert_eq!(violation, expected, "without {without:?}: {way:#?}");
    }
}
