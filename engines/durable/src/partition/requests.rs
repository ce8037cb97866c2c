//! Requests of clients.
//!
//! Every response waits at the gate, reads too: a client never learns of a step that a crash could take back.

use std::collections::VecDeque;

use crate::error::Error;
use crate::failure::{Failure, FailureKind};
use crate::ids::InstanceId;
use crate::message::{Message, MessageKind};
use crate::partition::Partition;
use crate::partition::input::{Reply, Request, RequestKind, Response, Values};
use crate::partition::purge::PurgeReply;
use crate::partition::work::InputRest;

impl Partition {
    pub(super) fn request(&mut self, Request { kind, reply }: Request) {
        match kind {
            RequestKind::Deliver(message) => {
                let response = self.tell_checked(message).map(|()| Response::Done);
                self.output.respond(reply, response);
            }
            RequestKind::DeliverEach(messages) => self.deliver_each(messages.into(), Vec::new(), reply),
            RequestKind::Wait(id) => self.wait(&id, reply),
            RequestKind::Forget(id) => {
                if let Some(handle) = self.table.handle(&id) {
                    self.waits.forget_closed(handle);
                }
                self.output.respond(reply, Ok(Response::Done));
            }
            RequestKind::Purge(id) => self.purge_for(&id, PurgeReply { reply, before: 0, next: None }),
            RequestKind::PurgeAll(filter, from) => self.purge_all(&filter, from, reply),
            kind => {
                let response = self.look(&kind);
                self.output.respond(reply, response);
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
            self.output.respond(reply, Ok(Response::Each(results)));
        } else {
            self.work.inputs.push_back(InputRest::Each { messages, results, reply });
        }
    }

    /// Responds to a query. A request that would change something is not a query, and is left undone.
    pub(crate) fn look(&self, kind: &RequestKind) -> Result<Response, Error> {
        self.reader().respond(kind)
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
            && self.code.would_park(name.as_str())
        {
            // Nothing is under way that code to come could save.
            let text = format!("there is no orchestration {:?}", name.as_str());
            return Err(Error::Failed(Failure::new(FailureKind::Unregistered, text)));
        }
        self.tell(message)
    }

    fn wait(&mut self, id: &InstanceId, reply: Reply) {
        let Some(handle) = self.table.handle(id) else {
            return self.output.respond(reply, Err(Error::NotFound(id.clone())));
        };
        if self.table.known(handle).status().is_ended() {
            let view = self.reader().view(handle, Values::With);
            return self.output.respond(reply, view.map(|view| Response::View(Some(Box::new(view)))));
        }
        if let Err((reply, error)) = self.waits.add(handle, reply) {
            self.output.respond(reply, Err(error));
        }
    }
}
