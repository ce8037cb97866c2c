//! Clients that wait for the end of an instance.

use std::collections::HashMap;

use crate::error::Error;
use crate::partition::input::Reply;

/// The replies of waiting clients, by the handle of the instance.
#[derive(Debug, Default)]
pub(super) struct Waits {
    replies: HashMap<u64, Vec<Reply>>,
    /// The error with which another partition has stopped: waits that may need it fail.
    stopped_elsewhere: Option<Error>,
}

impl Waits {
    /// Adds a client. Gives it back with an error if another partition has stopped.
    pub(super) fn add(&mut self, handle: u64, reply: Reply) -> Result<(), (Reply, Error)> {
        if let Some(error) = self.stopped_elsewhere.clone() {
            return Err((reply, error));
        }
        self.replies.entry(handle).or_default().push(reply);
        Ok(())
    }

    /// Removes the clients of an instance that have gone away.
    pub(super) fn forget_closed(&mut self, handle: u64) {
        if let Some(replies) = self.replies.get_mut(&handle) {
            replies.retain(|reply| !reply.is_closed());
            if replies.is_empty() {
                self.replies.remove(&handle);
            }
        }
    }

    /// Removes all clients of an instance; `None` if nobody waits for it.
    pub(super) fn take(&mut self, handle: u64) -> Option<Vec<Reply>> {
        self.replies.remove(&handle)
    }

    /// Removes all clients.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Reply> + '_ {
        self.replies.drain().flat_map(|(_, replies)| replies)
    }

    /// Refuses clients from now on with the error of a partition that has stopped.
    pub(super) fn refuse(&mut self, error: Error) {
        self.stopped_elsewhere = Some(error);
    }

    /// Number of instances that clients wait for.
    pub(super) fn len(&self) -> usize {
        self.replies.len()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn clients_that_have_gone_away_are_forgotten_and_new_ones_refused_after_a_stop() {
        let mut waits = Waits::default();
        let (gone, _) = oneshot::channel();
        let (here, _response) = oneshot::channel();
        waits.add(1, gone).expect("no partition has stopped");
        waits.add(2, here).expect("no partition has stopped");
        waits.forget_closed(1);
        waits.forget_closed(2);
        assert_eq!((waits.len(), waits.take(1).is_none()), (1, true));
        waits.refuse(Error::Closed);
        assert!(matches!(waits.add(3, oneshot::channel().0), Err((_, Error::Closed))));
        assert_eq!(waits.drain().count(), 1);
    }
}
