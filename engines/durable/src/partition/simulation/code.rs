//! The user code that is simulated: one orchestration that does what its script says, and ledgers that note everything.
//!
//! Every request carries its own token, and every response is compared with the token of its request. What must
//! never be is a failure that begins with [`BROKEN`].

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::ids::{EntityId, InstanceId};
use crate::model::{
    Activity, ActivityContext, Ctx, Either, EntityContext, EntityOp, EntityType, ExternalEvent, Orchestration,
    Registry, RetryPolicy,
};

/// Repeated part.
type SaidEvent = (Token, String);

/// How failures begin that no schedule may bring about.
pub(super) const BROKEN: &str = "broken: ";
/// Ledgers there are.
pub(super) const LEDGERS: u8 = 4;

pub(super) const PLAY: Orchestration<Script, u32> = Orchestration::new("Play");
pub(super) const WORK: Activity<(Token, String), Token> = Activity::new("Work");
pub(super) const COMPUTE: Activity<Token, Token> = Activity::new("Compute");
const FLAKY: Activity<Token, Token> = Activity::new("Flaky");
pub(super) const LEDGER: EntityType<Ledger> = EntityType::new("Ledger");
pub(super) const NOTE: EntityOp<Ledger, Note, (Token, u64)> = EntityOp::new("Note");
const HEAR: EntityOp<Ledger, Token, ()> = EntityOp::new("Hear");
const REFUSE: EntityOp<Ledger, Token, ()> = EntityOp::new("Refuse");
const ECHO: EntityType<u32> = EntityType::new("Echo");
const REPEAT: EntityOp<u32, SaidEvent, (SaidEvent, u32)> = EntityOp::new("Repeat");
pub(super) const SAY: ExternalEvent<Token> = ExternalEvent::new("Say");

/// Who sends a request, and which of its requests it is. No two requests have the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Token {
    pub(super) sender: String,
    pub(super) number: u32,
    /// Its order is not promised: it is to take effect later, or under a lock, which goes its own way.
    pub(super) is_loose: bool,
}

/// An entry of a ledger, and the ledger's reaction to it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) token: Token,
    pub(super) then: Reaction,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Reaction {
    Nothing,
    /// Signal another ledger.
    Tell(u8),
    /// Start an orchestration that does nothing, under the token's words.
    Launch,
}

/// All that was noted, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) noted: Vec<Note>,
    pub(super) heard: Vec<Token>,
}

/// Script of an orchestration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Script {
    /// Different for each orchestration that is started.
    pub(super) name: String,
    /// How often it has continued as new.
    pub(super) turn: u32,
    /// Tokens given so far.
    pub(super) tokens: u32,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    Work { bytes: usize },
    Compute,
    Flaky,
    Fan { width: u32, bytes: usize },
    Echo { width: u32, bytes: usize },
    Occupy { width: u32, bytes: usize, ms: u64 },
    Sleep { ms: u64 },
    Await { ms: u64 },
    Raise { to: String },
    Signal { ledger: u8, then: Reaction },
    SignalLater { ledger: u8, ms: u64 },
    Call { ledger: u8 },
    Refused { ledger: u8 },
    Critical { ledgers: Vec<u8> },
    Sub { steps: Vec<Step> },
    Detached { steps: Vec<Step> },
    Race { ms: u64 },
    Status,
    Again,
    Fail,
}

impl Script {
    pub(super) fn new(name: String, steps: Vec<Step>) -> Self {
        Self { name, turn: 0, tokens: 0, steps }
    }

    /// Which beginning it is: no two executions have the same.
    pub(super) fn beginning(&self) -> String {
        format!("{}~{}", self.name, self.turn)
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token { sender: self.name.clone(), number: self.tokens, is_loose: false }
    }

    fn child(&mut self, steps: Vec<Step>) -> Self {
        self.tokens += 1;
        Self::new(format!("{}.{}", self.name, self.tokens), steps)
    }
}

pub(super) fn ledger(number: u8) -> EntityId {
    LEDGER.id(number.to_string()).expect("an entity")
}

/// Identifier of the script that a note launches.
pub(super) fn launched(token: &Token) -> String {
    format!("{}!{}", token.sender, token.number)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, wanted: &T) -> Result<(), Failure> {
    if found == wanted {
        return Ok(());
    }
    Err(Failure::application(format!("{BROKEN}{what} is {found:?}, expected {wanted:?}")))
}

pub(super) fn code() -> Registry {
    let mut code = without_orchestrations();
    code.orchestration(PLAY, play);
    code
}

/// The code as it is after a bad deployment.
pub(super) fn without_orchestrations() -> Registry {
    let mut code = Registry::new();
    code.activity(WORK, |_: ActivityContext, (token, _): (Token, String)| async move { Ok(token) });
    code.idempotent_activity(COMPUTE, |_: ActivityContext, token: Token| async move { Ok(token) });
    code.activity(FLAKY, |context: ActivityContext, token: Token| async move {
        // By its key, so that it does the same whenever it is run again.
        let sum: u32 = context.key().bytes().map(u32::from).sum();
        if sum.is_multiple_of(2) { Err(Failure::application("flaky")) } else { Ok(token) }
    });
    code.entity(LEDGER)
        .operation(NOTE, |ledger: &mut Ledger, note: Note, context: &mut EntityContext| {
            match note.then {
                Reaction::Nothing => {}
                Reaction::Tell(other) => context.signal(&self::ledger(other), HEAR, &note.token)?,
                Reaction::Launch => {
                    let script = Script::new(launched(&note.token), Vec::new());
                    let id = InstanceId::new(&script.name).map_err(|error| Failure::application(error.to_string()))?;
                    context.start_as(PLAY, &id, &script)?;
                }
            }
            ledger.noted.push(note.clone());
            Ok((note.token, ledger.noted.len() as u64))
        })
        .operation(HEAR, |ledger: &mut Ledger, token, _: &mut EntityContext| {
            ledger.heard.push(token);
            Ok(())
        })
        .operation(REFUSE, |ledger: &mut Ledger, token, _: &mut EntityContext| {
            ledger.heard.push(token);
            Err(Failure::application("refused"))
        });
    code.entity(ECHO).operation(REPEAT, |calls: &mut u32, input, _: &mut EntityContext| {
        *calls += 1;
        Ok((input, *calls))
    });
    code
}

async fn play(ctx: Ctx, mut script: Script) -> Result<u32, Failure> {
    let mut steps = VecDeque::from(std::mem::take(&mut script.steps));
    while let Some(step) = steps.pop_front() {
        if matches!(step, Step::Again) {
            script.turn += 1;
            script.steps = steps.into();
            return ctx.continue_as_new(&script);
        }
        take(&ctx, &mut script, step).await?;
    }
    Ok(script.tokens)
}

async fn take(ctx: &Ctx, script: &mut Script, step: Step) -> Result<(), Failure> {
    match step {
        Step::Work { bytes } => work(ctx, script, bytes).await,
        Step::Compute => {
            let token = script.token();
            same("a result", &ctx.call(COMPUTE, &token).await?, &token)
        }
        Step::Flaky => flaky(ctx, script).await,
        Step::Fan { width, bytes } => fan(ctx, script, width, bytes).await,
        Step::Echo { width, bytes } => echo(ctx, script, width, bytes).await.map(drop),
        Step::Occupy { width, bytes, ms } => occupy(ctx, script, width, bytes, ms).await,
        Step::Sleep { ms } => sleep(ctx, ms).await,
        Step::Await { ms } => hear(ctx, ms).await,
        Step::Raise { to } => {
            let to = InstanceId::new(to).map_err(|error| Failure::application(error.to_string()))?;
            ctx.raise(&to, SAY, &script.token())
        }
        Step::Signal { ledger, then } => {
            ctx.entity_signal(&self::ledger(ledger), NOTE, &Note { token: script.token(), then })
        }
        Step::SignalLater { ledger, ms } => {
            let token = Token { is_loose: true, ..script.token() };
            let at = ctx.now().plus(Duration::from_millis(ms));
            ctx.entity_signal_at(&self::ledger(ledger), NOTE, &Note { token, then: Reaction::Nothing }, at)
        }
        Step::Call { ledger } => call(ctx, script.token(), ledger).await.map(drop),
        Step::Refused { ledger } => match ctx.entity_call(&self::ledger(ledger), REFUSE, &script.token()).await {
            Err(failure) if failure.message == "refused" => Ok(()),
            other => Err(Failure::application(format!("{BROKEN}a refusal is {other:?}"))),
        },
        Step::Critical { ledgers } => critical(ctx, script, &ledgers).await,
        Step::Sub { steps } => {
            // However it ends: it may be terminated, or meet one of its name.
            let _ = ctx.sub(PLAY, &script.child(steps)).await;
            Ok(())
        }
        Step::Detached { steps } => ctx.start_detached(PLAY, &script.child(steps)).map(drop),
        Step::Race { ms } => race(ctx, script, ms).await,
        Step::Status => ctx.set_status(&script.tokens),
        Step::Again => Ok(()),
        Step::Fail => Err(Failure::application("as the script says")),
    }
}

async fn work(ctx: &Ctx, script: &mut Script, bytes: usize) -> Result<(), Failure> {
    let token = script.token();
    same("a result", &ctx.call(WORK, &(token.clone(), "x".repeat(bytes))).await?, &token)
}

async fn flaky(ctx: &Ctx, script: &mut Script) -> Result<(), Failure> {
    let token = script.token();
    let policy = RetryPolicy::new(3, Duration::from_millis(40));
    match ctx.call(FLAKY, &token).retry(policy).await {
        Ok(result) => same("a result", &result, &token),
        Err(failure) => same("a failure", &failure.message.as_str(), &"flaky"),
    }
}

/// Many activities at once, each with an input of so many bytes.
async fn fan(ctx: &Ctx, script: &mut Script, width: u32, bytes: usize) -> Result<(), Failure> {
    let tokens: Vec<Token> = (0..width).map(|_| script.token()).collect();
    let calls = tokens.iter().map(|token| ctx.call(WORK, &(token.clone(), "x".repeat(bytes)))).collect();
    let results = ctx.join_all(calls).await.into_iter().collect::<Result<Vec<Token>, _>>()?;
    same("results", &results, &tokens)
}

fn echo_id() -> EntityId {
    ECHO.id("0").expect("an entity")
}

/// Many calls of one entity at once, whose responses have so many bytes. Gives which calls of the entity they were.
async fn echo(ctx: &Ctx, script: &mut Script, width: u32, bytes: usize) -> Result<Vec<u32>, Failure> {
    let entity = echo_id();
    let inputs: Vec<(Token, String)> = (0..width).map(|_| (script.token(), "x".repeat(bytes))).collect();
    let calls = inputs.iter().map(|input| ctx.entity_call(&entity, REPEAT, input)).collect();
    let results = ctx.join_all(calls).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (results, numbers): (Vec<_>, Vec<u32>) = results.into_iter().unzip();
    same("results", &results, &inputs)?;
    Ok(numbers)
}

/// The same under a lock, while calls of others wait, some of them until it is freed.
async fn occupy(ctx: &Ctx, script: &mut Script, width: u32, bytes: usize, ms: u64) -> Result<(), Failure> {
    let guard = ctx.lock(&[echo_id()]).await?;
    let first = echo(ctx, script, width, bytes).await?;
    sleep(ctx, ms).await?;
    let numbers = [first, echo(ctx, script, width, bytes).await?].concat();
    let begin = numbers.first().copied().unwrap_or(0);
    let expected: Vec<u32> = (begin..).take(numbers.len()).collect();
    same("the calls under a lock", &numbers, &expected)?;
    drop(guard);
    Ok(())
}

async fn sleep(ctx: &Ctx, ms: u64) -> Result<(), Failure> {
    let until = ctx.now().plus(Duration::from_millis(ms));
    ctx.timer(Duration::from_millis(ms)).await;
    // Unless the clock was set back since.
    same("whether it is late enough", &until.followed_by(ctx.now()), &ctx.now())
}

async fn hear(ctx: &Ctx, ms: u64) -> Result<(), Failure> {
    match ctx.event(SAY).timeout(Duration::from_millis(ms)).await {
        Err(failure) if failure.kind != FailureKind::Timeout => Err(failure),
        _ => Ok(()),
    }
}

async fn call(ctx: &Ctx, token: Token, ledger: u8) -> Result<u64, Failure> {
    let note = Note { token: token.clone(), then: Reaction::Nothing };
    let (result, length) = ctx.entity_call(&self::ledger(ledger), NOTE, &note).await?;
    same("a result", &result, &token)?;
    Ok(length)
}

/// Under a lock, only its owner takes notes.
async fn critical(ctx: &Ctx, script: &mut Script, ledgers: &[u8]) -> Result<(), Failure> {
    let ids: Vec<EntityId> = ledgers.iter().map(|number| ledger(*number)).collect();
    let guard = ctx.lock(&ids).await?;
    let mut before = vec![None; ledgers.len()];
    for _ in 0..2 {
        for (at, ledger) in ledgers.iter().enumerate() {
            let token = Token { is_loose: true, ..script.token() };
            let length = call(ctx, token, *ledger).await?;
            if let Some(before) = before[at].replace(length) {
                same("the length under a lock", &length, &(before + 1))?;
            }
        }
    }
    drop(guard);
    Ok(())
}

async fn race(ctx: &Ctx, script: &mut Script, ms: u64) -> Result<(), Failure> {
    let token = script.token();
    let call = ctx.call(WORK, &(token.clone(), String::new()));
    match ctx.select2(call, ctx.timer(Duration::from_millis(ms))).await {
        Either::Left(result) => same("a result", &result?, &token),
        Either::Right(()) => Ok(()),
    }
}
