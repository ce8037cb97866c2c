//! `narrows orchestrations nodes URL`: which node of a shared hub has which partitions, how much each has to do, and how
//! many nodes there should be.

use std::time::{Duration, Instant};

use narrows_durable::{Advice, AdviceReason, Error, NodeView, NodeWatch, OwnedPartition, PartitionId, advise};
use narrows_durable_servers::open_shared;
use narrows_model::table::{Cell, Column, ColumnType, Table};
use narrows_model::units;
use narrows_report::table;
use serde_json::{Value, json};

use super::list::{stopped_json, stopped_line};
use super::table_style;
use crate::Outcome;
use crate::commands::{plural, print_json, print_painted};
use crate::exit::{Failure, with_causes};
use crate::stderr;

/// The interval between two looks at the nodes.
const LOOK: Duration = Duration::from_millis(200);
/// If watching takes longer, a line on standard error says so first.
const UNSAID: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The store that the nodes share, as their program names it: postgres://… or nats://…
    #[arg(value_name = "URL")]
    url: String,
    /// One row for each partition instead of each node
    #[arg(long)]
    partitions: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome {
    let watch = watched(&arguments.url).map_err(|error| {
        let failure = Failure::new(with_causes(&error));
        failure
            .hint("URL names the server and the hub: postgres://user@host/database?hub=NAME or nats://host:4222/NAME")
    })?;
    let nodes = watch.nodes();
    let alive: Vec<NodeView> = nodes.iter().filter(|node| is_alive(node)).cloned().collect();
    let advice = advise(&alive, watch.partitions().max(1));
    if arguments.json {
        return print_json(as_json(&watch, &nodes, &advice));
    }
    let rows = if arguments.partitions { by_partition(&nodes, &watch.free()) } else { by_node(&nodes) };
    print_painted(&format!("{}{}\n", table::text(&rows, table_style()), summary(&watch, &nodes, &advice)))
}

/// Looks for long enough to tell nodes that are alive from others.
fn watched(url: &str) -> Result<NodeWatch, Error> {
    let mut watch = NodeWatch::open(open_shared(url)?)?;
    let (begun, enough) = (Instant::now(), watch.enough());
    if enough > UNSAID {
        stderr::say(&format!("watching the nodes for {:.1} s", enough.as_secs_f64()));
    }
    while begun.elapsed() < enough {
        std::thread::sleep(LOOK.min(enough));
        watch.look()?;
    }
    Ok(watch)
}

/// Whether a node has said nothing for as long as it was watched.
fn is_silent(node: &NodeView) -> bool {
    node.silent > node.lease * 3 / 10
}

fn is_alive(node: &NodeView) -> bool {
    !is_silent(node) && !node.is_replaced
}

fn state(node: &NodeView) -> &'static str {
    match (node.is_replaced, is_silent(node), node.is_leaving) {
        (true, _, _) => "replaced",
        (_, true, _) => "silent",
        (_, _, true) => "leaving",
        (false, false, false) => "alive",
    }
}

fn sum(node: &NodeView, of: impl Fn(&OwnedPartition) -> Option<u64>) -> u64 {
    node.partitions.iter().filter_map(of).sum()
}

fn integer(value: u64) -> Cell {
    Cell::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A length of time in words: a clock's `00:00:00.086` would hide how short it is.
fn time(time: Duration) -> Cell {
    Cell::Text(units::duration(time.as_nanos() as f64))
}

fn longest_wait(owned: &[OwnedPartition]) -> Cell {
    let waited_ms = owned.iter().filter_map(|owned| owned.load).map(|load| load.waited_ms).max();
    match waited_ms {
        None => Cell::Null,
        Some(0) => Cell::Text("< 1 ms".to_owned()),
        Some(waited_ms) => time(Duration::from_millis(waited_ms)),
    }
}

fn numbers(partitions: impl Iterator<Item = PartitionId>) -> String {
    partitions.map(|partition| partition.to_string()).collect::<Vec<_>>().join(" ")
}

fn columns(columns: &[(&str, ColumnType)]) -> Vec<Column> {
    columns.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}

fn node_row(node: &NodeView) -> Vec<Cell> {
    let events: f64 = node.partitions.iter().filter_map(|owned| owned.load).map(|load| load.events_per_s).sum();
    vec![
        Cell::Text(node.name.clone()),
        Cell::Text(node.version.clone()),
        Cell::Text(state(node).to_owned()),
        time(node.silent),
        Cell::Text(numbers(node.partitions.iter().map(|owned| owned.partition))),
        integer(sum(node, |owned| owned.load.map(|load| load.instances))),
        integer(sum(node, |owned| owned.load.map(|load| load.pending))),
        Cell::Integer(events.round() as i64),
        longest_wait(&node.partitions),
    ]
}

fn by_node(nodes: &[NodeView]) -> Table {
    Table {
        columns: columns(&[
            ("node", ColumnType::Text),
            ("version", ColumnType::Text),
            ("state", ColumnType::Text),
            ("last beat", ColumnType::Text),
            ("partitions", ColumnType::Text),
            ("instances", ColumnType::Integer),
            ("pending", ColumnType::Integer),
            ("events/s", ColumnType::Integer),
            ("longest wait", ColumnType::Text),
        ]),
        rows: nodes.iter().map(node_row).collect(),
        is_cut: false,
        chart: None,
    }
}

fn partition_row(node: &NodeView, owned: &OwnedPartition) -> Vec<Cell> {
    let load = owned.load.unwrap_or_default();
    vec![
        integer(u64::from(owned.partition.0)),
        Cell::Text(if is_silent(node) { format!("{} (silent)", node.name) } else { node.name.clone() }),
        integer(owned.epoch.0),
        integer(load.instances),
        integer(load.pending),
        Cell::Integer(load.events_per_s.round() as i64),
        longest_wait(std::slice::from_ref(owned)),
    ]
}

/// The row of a partition that no node owns.
fn free_row(partition: PartitionId) -> Vec<Cell> {
    let mut cells = vec![integer(u64::from(partition.0))];
    cells.resize(7, Cell::Null);
    cells
}

fn by_partition(nodes: &[NodeView], free: &[PartitionId]) -> Table {
    let owned = nodes.iter().flat_map(|node| node.partitions.iter().map(move |owned| (node, owned)));
    let owned = owned.map(|(node, owned)| (owned.partition, partition_row(node, owned)));
    let mut rows: Vec<_> = owned.chain(free.iter().map(|partition| (*partition, free_row(*partition)))).collect();
    rows.sort_by_key(|(partition, _)| *partition);
    Table {
        columns: columns(&[
            ("partition", ColumnType::Integer),
            ("node", ColumnType::Text),
            ("epoch", ColumnType::Integer),
            ("instances", ColumnType::Integer),
            ("pending", ColumnType::Integer),
            ("events/s", ColumnType::Integer),
            ("longest wait", ColumnType::Text),
        ]),
        rows: rows.into_iter().map(|(_, cells)| cells).collect(),
        is_cut: false,
        chart: None,
    }
}

fn summary(watch: &NodeWatch, nodes: &[NodeView], advice: &Advice) -> String {
    let alive = nodes.iter().filter(|node| is_alive(node)).count();
    let mut said = format!("{} on {}", plural(watch.partitions(), "partition"), plural(alive, "node"));
    let replaced = nodes.iter().filter(|node| node.is_replaced).count();
    for (count, state) in [(nodes.len() - alive - replaced, "silent"), (replaced, "replaced")] {
        if count > 0 {
            said += &format!(", {count} {state}");
        }
    }
    let free = watch.free();
    if !free.is_empty() {
        said += &format!(", {} without a node", numbers(free.into_iter()));
    }
    let stopped: String = watch.stopped().iter().map(|stopped| format!("\n{}", stopped_line(stopped))).collect();
    if alive == 0 {
        return said + &stopped;
    }
    format!("{said}{stopped}\nadvised: {}: {}", plural(advice.nodes, "node"), reason(&advice.reason))
}

/// Why so many nodes are advised.
fn reason(reason: &AdviceReason) -> String {
    match reason {
        AdviceReason::Slow { partitions, waited } => format!(
            "work waited up to {} ms for {}, and with so many nodes the largest share of partitions is smaller",
            waited.as_millis(),
            named(partitions)
        ),
        AdviceReason::SlowAlone { partitions, waited } => format!(
            "work waited up to {} ms for {}, which more nodes do not relieve: each node has one partition, or those have a \
             node to themselves",
            waited.as_millis(),
            named(partitions)
        ),
        AdviceReason::Idle => "nothing happens".to_owned(),
        AdviceReason::Quick => "hardly any work waits for its partition".to_owned(),
        _ => "the load fits".to_owned(),
    }
}

fn named(partitions: &[PartitionId]) -> String {
    let noun = if partitions.len() == 1 { "partition" } else { "partitions" };
    format!("{noun} {}", numbers(partitions.iter().copied()))
}

fn partition_json(owned: &OwnedPartition) -> Value {
    let load = owned.load;
    json!({
        "partition": owned.partition.0,
        "epoch": owned.epoch.0,
        "instances": load.map(|load| load.instances),
        "pending": load.map(|load| load.pending),
        "events_per_s": load.map(|load| load.events_per_s),
        "waited_ms": load.map(|load| load.waited_ms),
    })
}

fn node_json(node: &NodeView) -> Value {
    json!({
        "name": node.name,
        "incarnation": node.incarnation,
        "version": node.version,
        "address": node.address,
        "state": state(node),
        "lease_ms": u64::try_from(node.lease.as_millis()).unwrap_or(u64::MAX),
        "partitions": node.partitions.iter().map(partition_json).collect::<Vec<_>>(),
    })
}

fn as_json(watch: &NodeWatch, nodes: &[NodeView], advice: &Advice) -> Value {
    json!({
        "nodes": nodes.iter().map(node_json).collect::<Vec<_>>(),
        "free": watch.free().iter().map(|partition| partition.0).collect::<Vec<_>>(),
        "stopped": watch.stopped().iter().map(stopped_json).collect::<Vec<_>>(),
        "advised": { "nodes": advice.nodes, "reason": reason(&advice.reason) },
    })
}
