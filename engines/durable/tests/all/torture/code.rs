//! The program under test: orchestrations that leave a trace of everything they do.
//!
//! Traces are tokens. An entity counts how often each token was given to it; an activity writes its key and its token
//! into a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use narrows_durable::store::{FileStore, FileStoreOptions};
use narrows_durable::{
    Activity, ActivityContext, Ctx, EntityId, EntityOp, EntityType, ExternalEvent, Failure, Hub, HubOptions, Mode,
    Orchestration, Registry,
};

pub(crate) type Counts = BTreeMap<String, u32>;

pub(crate) const TALLY: EntityType<Counts> = EntityType::new("Tally");
pub(crate) const COUNT: EntityOp<Counts, String, u32> = EntityOp::new("Count");
pub(crate) const ACCOUNT: EntityType<i64> = EntityType::new("Account");
const GET: EntityOp<i64, (), i64> = EntityOp::new("Get");
const SET: EntityOp<i64, i64, ()> = EntityOp::new("Set");
const EFFECT: Activity<String, usize> = Activity::new("Effect");

/// Takes a text of any length, gives back how long it is.
pub(crate) const WORK: Orchestration<String, usize> = Orchestration::new("Work");
const PART: Orchestration<String, u32> = Orchestration::new("Part");
/// Takes 1 from one account and gives it to another.
pub(crate) const MOVE: Orchestration<(u64, u64), ()> = Orchestration::new("Move");

/// Counts tokens that come as events, and begins anew after each, until it is stopped. Takes and gives how many.
pub(crate) const INBOX: Orchestration<u64, u64> = Orchestration::new("Inbox");
pub(crate) const TOKEN: ExternalEvent<String> = ExternalEvent::new("Token");
pub(crate) const STOP: &str = "stop";
pub(crate) const INBOXES: u64 = 4;

pub(crate) const ACCOUNTS: u64 = 4;
/// Entities that count at a time, per round.
const TALLIES: u64 = 8;
/// Numbers after which others count, so that none grows large.
const TALLIED_MAX: u64 = 8_192;

pub(crate) fn open(folder: &Path, mode: Mode) -> Hub {
    let store = FileStore::open(folder.join("hub"), FileStoreOptions { segment_bytes: 128 << 10 }).unwrap();
    Hub::open(Arc::new(store), registry(folder), options(4, mode)).unwrap()
}

/// Limits so small that they are met often.
pub(crate) fn options(partitions: u16, mode: Mode) -> HubOptions {
    let mut options = HubOptions::default();
    options.partitions = partitions;
    options.mode = mode;
    options.spill_above_bytes = 1024;
    options.snapshot_after_bytes = 64 << 10;
    options.cursor_cache_bytes = 64 << 10;
    options
}

pub(crate) fn tally(round: u64, number: u64) -> EntityId {
    TALLY.id(format!("{round}-{}-{}", number / TALLIED_MAX, number % TALLIES)).unwrap()
}

pub(crate) fn account(number: u64) -> EntityId {
    ACCOUNT.id((number % ACCOUNTS).to_string()).unwrap()
}

pub(crate) fn inbox(number: u64) -> String {
    format!("inbox-{}", number % INBOXES)
}

/// The tally of an instance or token named `…-ROUND-NUMBER`.
fn tally_of(instance: &str) -> Result<EntityId, Failure> {
    let mut numbers = instance.split([':', '-']).filter_map(|part| part.parse().ok());
    let (round, number) = numbers.next().zip(numbers.next()).ok_or_else(|| Failure::application(instance))?;
    Ok(tally(round, number))
}

pub(crate) fn registry(folder: &Path) -> Registry {
    let effects = folder.join("effects");
    let mut code = Registry::new();
    code.activity(EFFECT, move |ctx: ActivityContext, token: String| {
        let written = write_effect(&effects, &ctx.key(), &token);
        async move { written.map(|()| token.len()).map_err(|error| Failure::application(error.to_string())) }
    });
    code.entity(TALLY).operation(COUNT, |counts, token: String, _| {
        let count = counts.entry(token).or_default();
        *count += 1;
        Ok(*count)
    });
    code.entity(ACCOUNT).operation(GET, |value, (): (), _| Ok(*value)).operation(SET, |value, to: i64, _| {
        *value = to;
        Ok(())
    });
    code.orchestration(WORK, |ctx: Ctx, text: String| async move { work(ctx, text).await });
    code.orchestration(PART, |ctx: Ctx, parent: String| async move {
        ctx.call(EFFECT, &format!("{parent}/part")).await?;
        let tally = tally_of(&parent)?;
        ctx.entity_signal(&tally, COUNT, &format!("{parent}/signal"))?;
        ctx.entity_call(&tally, COUNT, &format!("{parent}/part-call")).await
    });
    code.orchestration(INBOX, |ctx: Ctx, taken: u64| async move {
        let token = ctx.event(TOKEN).await?;
        if token == STOP {
            return Ok(taken);
        }
        ctx.entity_call(&tally_of(&token)?, COUNT, &token).await?;
        ctx.continue_as_new(&(taken + 1))
    });
    code.orchestration(MOVE, |ctx: Ctx, (from, to): (u64, u64)| async move {
        let (from, to) = (account(from), account(to));
        let _locked = ctx.lock(&[from.clone(), to.clone()]).await?;
        let had = ctx.entity_call(&from, GET, &()).await?;
        ctx.entity_call(&from, SET, &(had - 1)).await?;
        let has = ctx.entity_call(&to, GET, &()).await?;
        ctx.entity_call(&to, SET, &(has + 1)).await
    });
    code
}

async fn work(ctx: Ctx, text: String) -> Result<usize, Failure> {
    let me = ctx.instance().to_string();
    ctx.call(EFFECT, &format!("{me}/first")).await?;
    ctx.entity_call(&tally_of(&me)?, COUNT, &format!("{me}/call")).await?;
    ctx.timer(Duration::from_millis(1)).await;
    let (part, effect) = ctx.join2(ctx.sub(PART, &me), ctx.call(EFFECT, &format!("{me}/last"))).await;
    part?;
    effect?;
    Ok(text.len())
}

/// Tokens that must be counted once for an orchestration that has completed.
pub(crate) fn counted(instance: &str) -> [String; 3] {
    ["call", "signal", "part-call"].map(|what| format!("{instance}/{what}"))
}

/// Effects that activities must have written for it.
pub(crate) fn effects_of(instance: &str) -> [String; 3] {
    ["first", "part", "last"].map(|what| format!("{instance}/{what}"))
}

/// One write at the end of the file: it is whole or not there.
fn write_effect(path: &Path, key: &str, token: &str) -> std::io::Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(format!("{key} {token}\n").as_bytes())
}
