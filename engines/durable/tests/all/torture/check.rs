//! Checks after the last fault.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use narrows_durable::{Client, Filter, Hub, HubStats, InstanceId, InstanceView, Mode, Status, Values};

use super::TIMEOUT;
use super::code::{self, ACCOUNT, ACCOUNTS, Counts, INBOXES, STOP, TALLY, TOKEN};
use super::worker::length;

pub(crate) fn all(folder: &Path, acknowledged: &[String]) {
    let hub = code::open(folder, Mode::Speculative);
    promises(folder, &hub.client(), || hub.stats(), acknowledged);
    eprintln!("{} partitions came from a snapshot", snapshots(folder, &hub));
    hub.close().unwrap();
}

/// Looks at everything there is through a client, once nothing is under way any more.
pub(crate) fn promises(folder: &Path, client: &Client, stats: impl Fn() -> HubStats, acknowledged: &[String]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        stop_inboxes(client).await;
        let ended = everything_ends(client).await;
        quiet(stats);
        let counts = counts(client).await;
        starts_completed_once(&ended, acknowledged);
        operations_took_effect_once(&ended, &counts, acknowledged);
        accounts_balance(client, &ended).await;
        activities_ran_under_one_key(folder, &ended);
        eprintln!("{} orchestrations, {} tokens counted", ended.len(), counts.len());
    });
}

/// All that was raised before stands before this.
async fn stop_inboxes(client: &Client) {
    for number in 0..INBOXES {
        let inbox = InstanceId::new(code::inbox(number)).unwrap();
        if client.get(&inbox).await.unwrap().is_some() {
            client.raise_event(&inbox, TOKEN, &STOP.to_owned()).await.unwrap();
        }
    }
}

/// How many partitions have had a snapshot, whose log is cut.
fn snapshots(folder: &Path, hub: &Hub) -> usize {
    let list = |partition: &usize| folder.join(format!("hub/blobs/p{partition}/snapshot/list"));
    (0..hub.stats().partitions.len()).filter(|partition| list(partition).exists()).count()
}

/// Waits for all instances there are, those that others start meanwhile too.
async fn everything_ends(client: &Client) -> BTreeMap<String, InstanceView> {
    let mut ended = BTreeMap::new();
    loop {
        let all = instances(client, Filter::default()).await;
        let new: Vec<_> = all.into_iter().filter(|view| !ended.contains_key(view.id.as_str())).collect();
        if new.is_empty() {
            return ended;
        }
        for mut view in new {
            if !view.status.is_ended() {
                view = client.wait(&view.id, TIMEOUT).await.unwrap_or_else(|error| panic!("{}: {error}", view.id));
            }
            assert_eq!(view.status, Status::Completed, "{}: {:?}", view.id, view.output);
            ended.insert(view.id.to_string(), view);
        }
    }
}

async fn instances(client: &Client, filter: Filter) -> Vec<InstanceView> {
    let (mut found, mut next) = (Vec::new(), None);
    loop {
        let page = client.query(filter.clone(), 200, Values::With, next).await.unwrap();
        found.extend(page.instances);
        next = page.next;
        if next.is_none() {
            return found;
        }
    }
}

/// Waits until no message is under way.
fn quiet(stats: impl Fn() -> HubStats) {
    let begun = Instant::now();
    while stats().partitions.iter().any(|partition| partition.counts.outbox + partition.counts.gated > 0) {
        assert!(begun.elapsed() < TIMEOUT, "messages are still under way: {:?}", stats());
        std::thread::yield_now();
    }
}

/// Counts of all entities. A token that two of them have counts for both.
async fn counts(client: &Client) -> Counts {
    let mut all = Counts::new();
    let entities = Filter { statuses: vec![Status::Entity], ..Filter::default() };
    for view in instances(client, entities).await.iter().filter(|view| view.name.as_str() == TALLY.name()) {
        let counts = if view.input.is_empty() { Counts::new() } else { view.input.decode().unwrap() };
        for (token, count) in counts {
            *all.entry(token).or_default() += count;
        }
    }
    all
}

fn starts_completed_once(ended: &BTreeMap<String, InstanceView>, acknowledged: &[String]) {
    for id in acknowledged.iter().filter(|text| !is_token(text)) {
        let view = ended.get(id).unwrap_or_else(|| panic!("{id} was acknowledged and is gone"));
        assert_eq!(view.generation, 0, "{id} was started more than once");
        if id.starts_with("work-") {
            let number = id.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap();
            assert_eq!(view.output_as::<usize>(), Some(Ok(length(number))), "{id}");
        }
    }
}

fn operations_took_effect_once(ended: &BTreeMap<String, InstanceView>, counts: &Counts, acknowledged: &[String]) {
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count != 1).collect();
    assert!(twice.is_empty(), "took effect more than once: {twice:?}");
    let signals = acknowledged.iter().filter(|text| is_token(text)).cloned();
    let of_works = works(ended).flat_map(|id| code::counted(id));
    let lost: Vec<_> = signals.chain(of_works).filter(|token| !counts.contains_key(token)).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let taken: u64 = (0..INBOXES).filter_map(|number| ended.get(&code::inbox(number))?.output_as::<u64>()?.ok()).sum();
    let counted = counts.keys().filter(|token| token.starts_with("event-")).count();
    assert_eq!(taken, counted as u64, "events that the inboxes took, and those counted");
}

/// Whether this is a signal or an event, and not an orchestration.
pub(crate) fn is_token(text: &str) -> bool {
    text.starts_with("signal-") || text.starts_with("event-")
}

/// Orchestrations that clients started.
fn works(ended: &BTreeMap<String, InstanceView>) -> impl Iterator<Item = &String> {
    ended.keys().filter(|id| id.starts_with("work-") && !id.contains(':'))
}

/// Checks that the accounts hold the amounts moved in critical sections.
async fn accounts_balance(client: &Client, ended: &BTreeMap<String, InstanceView>) {
    let mut expected: BTreeMap<_, i64> = BTreeMap::new();
    for view in ended.iter().filter(|(id, _)| id.starts_with("move-")).map(|(_, view)| view) {
        let (from, to) = view.input_as::<(u64, u64)>().unwrap();
        *expected.entry(code::account(from)).or_default() -= 1;
        *expected.entry(code::account(to)).or_default() += 1;
    }
    for number in 0..ACCOUNTS {
        let entity = code::account(number);
        let found: i64 = client.state_of(ACCOUNT, &entity).await.unwrap().unwrap_or_default();
        assert_eq!(found, expected.get(&entity).copied().unwrap_or_default(), "{entity}");
    }
}

fn activities_ran_under_one_key(folder: &Path, ended: &BTreeMap<String, InstanceView>) {
    let text = std::fs::read_to_string(folder.join("effects")).unwrap_or_default();
    let mut keys: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut tokens: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, token) in text.lines().filter_map(|line| line.split_once(' ')) {
        keys.entry(token).or_default().insert(key);
        tokens.entry(key).or_default().insert(token);
    }
    let many = |found: &BTreeMap<&str, BTreeSet<&str>>| {
        found.values().find(|with| with.len() > 1).map(|with| format!("{with:?}"))
    };
    assert_eq!((many(&keys), many(&tokens)), (None, None), "one call, one key");
    let expected: BTreeSet<String> = works(ended).flat_map(|id| code::effects_of(id)).collect();
    let ran: BTreeSet<String> = keys.keys().map(|&token| token.to_owned()).collect();
    assert_eq!(ran, expected, "activities ran for what is there, and for nothing else");
}
