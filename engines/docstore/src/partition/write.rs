//! Operations on single documents, and several of them as one transaction.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::patch::Patch;
use super::stamp::etag_of;
use super::state::{State, own_ttl};
use crate::budget::Budget;
use crate::charge::Charge;
use crate::document::Document;
use crate::effective_key::EffectiveKey;
use crate::stored_document::{Entry, StoredDocument};

/// Cosmos DB's limit of a document, system properties aside.
pub(crate) const MAX_DOCUMENT_BYTES: usize = 2 << 20;
/// The text one partition may hold; Cosmos DB's 50 GB would not fit in memory.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// One operation on the document that `key` names.
#[derive(Debug)]
pub(crate) struct Command {
    /// Partition key and id.
    pub(crate) key: Vec<u8>,
    pub(crate) effective: EffectiveKey,
    pub(crate) operation: Operation,
    /// Go on only if the document has this entity tag; `*` for any.
    pub(crate) if_match: Option<String>,
    /// Read only if the document has another entity tag.
    pub(crate) if_none_match: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Operation {
    Read,
    Create(Document),
    Upsert(Document),
    Replace(Document),
    Patch(Box<Patch>),
    Delete,
}

/// Outcome of an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Found(Arc<str>),
    /// The reader has the document as it is.
    NotModified(String),
    Created(Arc<str>),
    Replaced(Arc<str>),
    Deleted,
    /// The document does not exist and had to.
    Missing,
    /// The document exists and was to be created.
    Exists,
    /// Another document has the same unique values.
    NotUnique,
    /// The document has another entity tag than expected, or does not meet the condition of a patch.
    PreconditionFailed,
    /// The partition holds as much text as it may.
    Full,
    /// The document would be larger than a document may be.
    TooLarge,
    /// The operation makes no sense on this document.
    Invalid(String),
}

impl Operation {
    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Self::Read)
    }
}

impl Outcome {
    /// Whether the operation succeeded.
    pub(crate) fn is_done(&self) -> bool {
        use Outcome::{Created, Deleted, Found, NotModified, Replaced};
        matches!(self, Found(_) | NotModified(_) | Created(_) | Replaced(_) | Deleted)
    }
}

/// An outcome with its cost.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) outcome: Outcome,
    pub(crate) charge: Charge,
}

/// Content of a slot before it was changed.
pub(super) type Undo = Vec<(u32, Option<StoredDocument>)>;

impl State {
    /// Runs `commands` in order and stops at the first that fails, which undoes those before it. None, with all undone, if
    /// they cost more than the budget `covers`.
    pub(super) fn transact(
        &mut self,
        commands: &[Command],
        unix_s: u64,
        covers: impl FnOnce(&Budget, Charge) -> bool,
    ) -> Option<Vec<Step>> {
        let (mut steps, mut undo, lsn) = (Vec::with_capacity(commands.len()), Undo::new(), self.lsn);
        for command in commands {
            let step = self.execute(command, unix_s, &mut undo);
            let has_failed = !step.outcome.is_done();
            steps.push(step);
            if has_failed {
                self.roll_back(undo);
                self.lsn = lsn;
                return Some(steps);
            }
        }
        if !covers(&self.budget, steps.iter().map(|step| step.charge).sum()) {
            self.roll_back(undo);
            self.lsn = lsn;
            return None;
        }
        self.keep_slots(undo.iter().map(|(position, _)| *position).collect());
        self.close_up();
        Some(steps)
    }

    fn roll_back(&mut self, undo: Undo) {
        for (position, held) in undo.into_iter().rev() {
            self.vacate(position);
            if let Some(held) = held {
                self.occupy(position, held, None);
            }
        }
    }

    fn execute(&mut self, command: &Command, unix_s: u64, undo: &mut Undo) -> Step {
        let refused = |outcome| Step { outcome, charge: Charge::point_read(0) };
        let position = self.positions.get(command.key.as_slice()).copied();
        let Some(at) = position else {
            return match &command.operation {
                Operation::Create(document) | Operation::Upsert(document) => {
                    self.put(None, document, command, unix_s, undo)
                }
                _ => refused(Outcome::Missing),
            };
        };
        let text = &self.documents[at as usize];
        let etag = etag_of(text).unwrap_or_default();
        if command.if_match.as_ref().is_some_and(|expected| expected != "*" && *expected != etag) {
            return refused(Outcome::PreconditionFailed);
        }
        match &command.operation {
            Operation::Read => {
                let charge = Charge::point_read(text.len());
                let is_known = command.if_none_match.as_ref().is_some_and(|known| known == "*" || *known == etag);
                let outcome = if is_known { Outcome::NotModified(etag) } else { Outcome::Found(Arc::clone(text)) };
                Step { outcome, charge }
            }
            Operation::Create(_) => refused(Outcome::Exists),
            Operation::Upsert(document) | Operation::Replace(document) => {
                self.put(Some(at), document, command, unix_s, undo)
            }
            Operation::Patch(patch) => match patch.applied_to(text, self.definition.key.paths()) {
                Ok(Some(document)) => self.put(Some(at), &document, command, unix_s, undo),
                Ok(None) => refused(Outcome::PreconditionFailed),
                Err(error) => refused(Outcome::Invalid(error)),
            },
            Operation::Delete => {
                let charge = Charge::delete(text.len());
                undo.push((at, self.vacate(at)));
                self.lsn += 1;
                Step { outcome: Outcome::Deleted, charge }
            }
        }
    }

    /// Writes a document into its slot, or into a new one.
    fn put(
        &mut self,
        existing: Option<u32>,
        document: &Document,
        command: &Command,
        unix_s: u64,
        undo: &mut Undo,
    ) -> Step {
        let fields = document.fields();
        let number = existing.map(|position| self.entries[position as usize].number);
        let held = match self.prepared(number, document, &fields, command, unix_s) {
            Ok(held) => held,
            Err(outcome) => return Step { outcome, charge: Charge::point_read(0) },
        };
        if let Some(outcome) = self.objection(&held, &fields, existing) {
            return Step { outcome, charge: Charge::point_read(0) };
        }
        self.lsn = held.entry.lsn;
        let (text, properties) = (Arc::clone(&held.text), document.sent());
        if let Some(position) = existing {
            undo.push((position, self.vacate(position)));
            self.occupy(position, held, Some(&fields));
            let charge = Charge::replace(text.len(), properties);
            return Step { outcome: Outcome::Replaced(text), charge };
        }
        let position = self.push(held, Some(&fields));
        undo.push((position, None));
        let charge = Charge::create(text.len(), properties);
        Step { outcome: Outcome::Created(text), charge }
    }

    fn prepared(
        &self,
        number: Option<u64>,
        document: &Document,
        fields: &Map<String, Value>,
        command: &Command,
        unix_s: u64,
    ) -> Result<StoredDocument, Outcome> {
        let ttl = own_ttl(fields).map_err(Outcome::Invalid)?;
        let (number, lsn) = (number.unwrap_or_else(|| self.stamp.number()), self.lsn + 1);
        let system = self.stamp.text(number, lsn, unix_s);
        let text = document.text_with(&system);
        // System properties follow after a comma.
        if text.len() > MAX_DOCUMENT_BYTES + 1 + system.len() {
            return Err(Outcome::TooLarge);
        }
        let (key, effective) = (command.key.as_slice().into(), command.effective.clone());
        Ok(StoredDocument { entry: Entry { number, key, effective, lsn, unix_s, ttl }, text: text.into() })
    }

    fn objection(&self, held: &StoredDocument, fields: &Map<String, Value>, existing: Option<u32>) -> Option<Outcome> {
        let replaced_bytes = existing.map_or(0, |position| self.documents[position as usize].len());
        if self.text_bytes - replaced_bytes + held.text.len() > MAX_TEXT_BYTES {
            return Some(Outcome::Full);
        }
        self.is_taken(&held.entry, fields, existing).then_some(Outcome::NotUnique)
    }
}
