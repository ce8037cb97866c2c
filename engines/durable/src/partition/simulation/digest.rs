//! All that a partition holds and must hold again after a crash, in words that can be compared.

use std::fmt::Write;

use crate::partition::Partition;
use crate::partition::table::{Instance, Kind};

/// Text of the state. Left out are the messages handed over and arrived (a sender may know less after a crash) and caches.
pub(super) fn digest(partition: &mut Partition) -> String {
    let mut text = String::new();
    for (handle, instance) in partition.table.from(0) {
        put_instance(&mut text, handle, instance);
    }
    for what in partition.timers.order.keys() {
        let _ = writeln!(text, "due {what:?}");
    }
    let mut messages: Vec<String> = partition.timers.messages().map(|message| format!("{message:?}")).collect();
    messages.sort_unstable();
    let mut pending: Vec<_> = partition.timers.starts().collect();
    pending.sort_unstable();
    let next = (partition.table.next(), partition.generations.next());
    let _ = writeln!(text, "deferred {messages:?}\npending {pending:?}\nnext {next:?}");
    for to in 0..partition.settings.count {
        let to = crate::ids::PartitionId(to);
        let (sent, taken) = (partition.outbox.sent(to), partition.outbox.taken(to));
        let _ = writeln!(text, "lane {to}: {sent} sent, {taken} taken");
    }
    text
}

fn put_instance(text: &mut String, handle: u64, instance: &Instance) {
    let Instance { id, created, updated, kind } = instance;
    let _ = write!(text, "{handle} {id} from {} to {} ", created.0, updated.0);
    let _ = match kind {
        Kind::Orchestration(execution) => {
            let marks = (
                &execution.parked,
                execution.has_locks,
                execution.has_status,
                execution.has_blobs,
                execution.is_continuing,
            );
            let history = &execution.history;
            writeln!(
                text,
                "{} v{} generation {} {:?} {marks:?} of {:?}: {} bytes, {:08x}",
                execution.name,
                execution.version,
                execution.generation,
                execution.status,
                execution.parent,
                history.len(),
                crc32fast::hash(history)
            )
        }
        Kind::Entity(entity) => {
            let queue: Vec<_> = entity.queue.iter().collect();
            writeln!(text, "{:?} locked by {:?}, waiting {queue:?}", entity.state, entity.lock)
        }
    };
}
