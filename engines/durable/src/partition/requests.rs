//! Requests of clients.
//!
//! Every response waits at the gate, reads too: a client never learns of a step that a crash could take back.

use std::collections::VecDeque;

use crate::error::Error;
use crate::failure::{Failure, FailureKind};
use crate::ids::InstanceId;
use crate::message::{Message, MessageKind};
use crate::options::Mismatch;
use crate::partition::Partition;
use crate::partition::input::{Held, Reply, Request, RequestKind, Response, Values};
use crate::partition::purge::PurgeReply;

impl Partition {
    pub(super) fn request(&mut self, Request { kind, reply }: Request) {
        match kind {
            RequestKind::Deliver(message) => {
                let response = self.tell_checked(message).map(|()| Response::Done);
                self.respond(reply, response);
            }
            RequestKind::DeliverEach(messages) => self.deliver_each(messages.into(), Vec::new(), reply),
            RequestKind::Wait(id) => self.wait(&id, reply),
            RequestKind::Forget(id) => {
                self.forget_waiters(&id);
                self.respond(reply, Ok(Response::Done));
            }
            RequestKind::Purge(id) => self.purge_for(&id, PurgeReply { reply, before: 0, next: None }),
            RequestKind::PurgeAll(filter, from) => self.purge_all(&filter, from, reply),
            kind => {
                let response = self.look(&kind);
                self.respond(reply, response);
            }
        }
    }

    /// Delivers messages as far as there is room in the frame, and the rest in the next turn.
    pub(super) fn deliver_each(
        &mut self,
        mut messages: VecDeque<Message>,
        mut results: Vec<Result<(), Error>>,
        reply: Reply,
    ) {
        while !self.is_full()
            && let Some(message) = messages.pop_front()
        {
            results.push(self.tell_checked(message));
        }
        if messages.is_empty() {
            self.respond(reply, Ok(Response::Each(results)));
        } else {
            self.held.push_back(Held::Each { messages, results, reply });
        }
    }

    /// Responds to a query. A request that would change something is not a query, and is left undone.
    pub(crate) fn look(&self, kind: &RequestKind) -> Result<Response, Error> {
        match kind {
            RequestKind::Get(id) => {
                let view = self.table.handle(id).map(|handle| self.view(handle, Values::With)).transpose()?;
                Ok(Response::View(view.map(Box::new)))
            }
            RequestKind::History(id) => {
                self.table.handle(id).map_or(Ok(None), |handle| self.events(handle)).map(Response::Events)
            }
            RequestKind::State(id) => {
                let instance = self.table.handle(id.instance()).map(|handle| self.table.known(handle));
                Ok(Response::State(instance.and_then(|instance| instance.entity()?.state.clone())))
            }
            RequestKind::Query { filter, limit, values, from } => {
                self.query(filter, *limit, *values, *from).map(|(views, next)| Response::Page(views, next))
            }
            RequestKind::Count(filter, from) => {
                let (count, next) = self.count(filter, *from);
                Ok(Response::Count(count, next))
            }
            _ => Ok(Response::Done),
        }
    }

    /// Delivers a message of a client, unless it would add to a partition that is full.
    fn tell_checked(&mut self, message: Message) -> Result<(), Error> {
        let adds = match message.kind {
            MessageKind::Raise { .. } | MessageKind::Operate { .. } => true,
            MessageKind::Start { .. } => self.table.handle(&message.to).is_none(),
            _ => false,
        };
        if adds {
            self.admit()?;
        }
        if let MessageKind::Start { name, version: None, at: None, .. } = &message.kind
            && self.on_mismatch == Mismatch::Park
            && self.program.newest(name.as_str()).is_none()
        {
            // Nothing is under way that code to come could save.
            let text = format!("there is no orchestration {:?}", name.as_str());
            return Err(Error::Failed(Failure::new(FailureKind::Unregistered, text)));
        }
        self.tell(message)
    }

    fn wait(&mut self, id: &InstanceId, reply: Reply) {
        let Some(handle) = self.table.handle(id) else {
            return self.respond(reply, Err(Error::NotFound(id.clone())));
        };
        if self.table.known(handle).status().is_ended() {
            let view = self.view(handle, Values::With);
            return self.respond(reply, view.map(|view| Response::View(Some(Box::new(view)))));
        }
        if let Some(error) = self.stopped_elsewhere.clone() {
            return self.respond(reply, Err(error));
        }
        self.waiters.entry(handle).or_default().push(reply);
    }

    fn forget_waiters(&mut self, id: &InstanceId) {
        // It may have been purged, which has ended the wait.
        let Some(handle) = self.table.handle(id) else { return };
        if let Some(replies) = self.waiters.get_mut(&handle) {
            replies.retain(|reply| !reply.is_closed());
            if replies.is_empty() {
                self.waiters.remove(&handle);
            }
        }
    }
}
