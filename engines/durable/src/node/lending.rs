//! Activities that run on other nodes, on which none waits, while too many wait here.
//!
//! Netherite's global scheduler does the same. Who has what to do is known from beats, so it may be one beat old; what a
//! node is given at a time is bounded, so that an error of that kind costs little. The partition stays where it is and
//! takes the result as if the activity had run beside it. If the other node is lost, the activity runs again here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Shared;
use super::directory::Peer;
use crate::codec::{Outcome, Work};
use crate::error::Error;
use crate::hub::Task;
use crate::partition::Response;

/// Activities that one node may have of this one at a time.
const LENT_MAX: usize = 64;

/// How many activities other nodes have of this one, by their runs.
#[derive(Default)]
pub(super) struct Lent {
    under_way: Mutex<HashMap<u64, usize>>,
    so_far: AtomicU64,
}

impl Lent {
    /// How many have been lent so far.
    pub(super) fn so_far(&self) -> u64 {
        self.so_far.load(Ordering::Relaxed)
    }

    fn of(&self, run: u64) -> usize {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).get(&run).copied().unwrap_or(0)
    }

    fn begin(&self, run: u64) {
        *self.under_way.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_default() += 1;
        self.so_far.fetch_add(1, Ordering::Relaxed);
    }

    fn end(&self, run: u64) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = under_way.get_mut(&run) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&run);
            }
        }
    }
}

/// Gives what waits here beyond so many to these nodes, the same number to each.
pub(super) fn lend(shared: &Arc<Shared>, peers: &[Peer], beyond: usize) {
    let surplus = shared.engine.activities_waiting().saturating_sub(beyond);
    let share = surplus.div_ceil(peers.len() + 1);
    for peer in peers {
        let most = share.min(LENT_MAX.saturating_sub(shared.lent.of(peer.run)));
        for task in shared.engine.lend_activities(most) {
            shared.lent.begin(peer.run);
            shared.calls.spawn(run_there(Arc::clone(shared), peer.clone(), task));
        }
    }
}

async fn run_there(shared: Arc<Shared>, peer: Peer, task: Task) {
    let outcome = shared.calls.there(&peer, Work::Activity(task.call().clone())).await;
    shared.lent.end(peer.run);
    match outcome {
        Outcome::Done(Ok(Response::Ran(result))) => task.end(Ok(result)),
        Outcome::Done(Err(Error::Failed(failure))) => task.end(Err(failure)),
        // It may have run there, or not, or in part: it runs again, as after a crash.
        Outcome::Done(_) | Outcome::NotDone | Outcome::Lost => shared.engine.take_activity_back(task),
    }
}
