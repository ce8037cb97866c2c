//! Which agents send a load: those that are there, fit and have nothing else to do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use narrows_load::Clock;
use narrows_model::load::ClockOffset;

use super::DividedLoad;
use crate::Error;
use crate::clock_offset::{Exchange, offset};
use crate::link::Link;
use crate::messages::{Introduction, Pong, version};
use crate::selector::{AGENTS_MAX, Selector};
use crate::subjects;

/// How long all agents have to introduce themselves.
const ROUND: Duration = Duration::from_millis(700);
/// How long agents that are missing are waited for.
const WAIT: Duration = Duration::from_secs(15);
/// Messages there and back by which a clock is compared.
const PINGS: usize = 11;
/// How far off a clock may be.
const CLOCK_OFF_MAX: Duration = Duration::from_secs(60);

/// An agent that will send a part.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) cores: usize,
    pub(super) clock: ClockOffset,
    /// Services that it looks at.
    pub(super) watches: Vec<String>,
    /// Whether it receives telemetry.
    pub(super) receives: bool,
}

/// Agents for a load.
pub(super) struct Found {
    /// Those that send it.
    pub(super) senders: Vec<Chosen>,
    /// Those that look at services of the experiment.
    pub(super) eyes: Vec<Chosen>,
}

/// Waits until enough agents are there, then chooses. An agent that still ends a former load is waited for.
pub(super) async fn choose(
    link: &Link,
    selector: &Selector,
    load: &DividedLoad<'_>,
    stop: &AtomicBool,
) -> Result<Found, Error> {
    let since = Instant::now();
    loop {
        let there = introductions(link).await?;
        let eyes = looking(&there, load.services)?;
        let Fitting { chosen, is_busy, hint } = fitting(selector, there, load.run, load.trial)?;
        let waited = since.elapsed();
        let is_enough = match selector.count {
            Some(count) => chosen.len() >= count,
            // Those that still end another load may be done soon.
            None => !chosen.is_empty() && (!is_busy || waited > WAIT),
        };
        if is_enough {
            let senders = chosen.into_iter().take(selector.count.unwrap_or(AGENTS_MAX)).collect();
            return Ok(Found { senders, eyes });
        }
        if waited > WAIT || stop.load(Ordering::Relaxed) {
            let found = chosen.len().to_string();
            return Err(Error::TooFew { found, wanted: selector.to_string(), waited, hint });
        }
    }
}

/// Introductions of all agents that respond within a round.
async fn introductions(link: &Link) -> Result<Vec<Introduction>, Error> {
    let inbox = link.client.new_inbox();
    let failed = "ask for agents";
    let mut responses = link.client.subscribe(inbox.clone()).await.map_err(link.failed(failed))?;
    let asked = link.client.publish_with_reply(subjects::HELLO, inbox, Bytes::new()).await;
    asked.map_err(link.failed(failed))?;
    let mut found: Vec<Introduction> = Vec::new();
    let until = tokio::time::Instant::now() + ROUND;
    while let Ok(Some(message)) = tokio::time::timeout_at(until, responses.next()).await {
        // Without any agent, the server responds with an empty message.
        let Ok(introduction) = serde_json::from_slice::<Introduction>(&message.payload) else { continue };
        if found.iter().any(|known| known.name == introduction.name) {
            return Err(Error::SameName { agent: introduction.name });
        }
        found.push(introduction);
        if found.len() >= AGENTS_MAX {
            break;
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Agents that will do.
struct Fitting {
    chosen: Vec<Chosen>,
    /// Whether another would do as soon as it has ended its work.
    is_busy: bool,
    /// Reasons against those that will not do, for people.
    hint: String,
}

fn fitting(selector: &Selector, there: Vec<Introduction>, run: &str, trial: i64) -> Result<Fitting, Error> {
    let mut chosen = Vec::new();
    let mut is_busy = false;
    let mut others = Vec::new();
    for Introduction { name, version: theirs, labels, cores, work, .. } in there {
        if !selector.fits(&labels) {
            others.push(format!("{name} has other labels"));
        } else if theirs != version() {
            return Err(Error::OtherVersion { agent: name, theirs, ours: version() });
        } else if let Some(work) = work {
            let own = if work.run == run && work.trial == trial { "this" } else { "another" };
            is_busy = true;
            others.push(format!("{name} works for {own} run"));
        } else {
            chosen.push(sender(name, labels, cores));
        }
    }
    Ok(Fitting { chosen, is_busy, hint: others.join(", ") })
}

fn sender(name: String, labels: BTreeMap<String, String>, cores: usize) -> Chosen {
    let clock = ClockOffset::default();
    Chosen { name, labels, cores: cores.max(1), clock, watches: Vec::new(), receives: false }
}

/// Agents that look at one of these services.
fn looking(there: &[Introduction], services: &[String]) -> Result<Vec<Chosen>, Error> {
    let looks = |agent: &&Introduction| agent.watches.iter().any(|service| services.contains(service));
    let eye = |agent: &Introduction| {
        if agent.version != version() {
            let (agent, theirs) = (agent.name.clone(), agent.version.clone());
            return Err(Error::OtherVersion { agent, theirs, ours: version() });
        }
        let chosen = sender(agent.name.clone(), agent.labels.clone(), agent.cores);
        Ok(Chosen { watches: agent.watches.clone(), receives: agent.receives, ..chosen })
    };
    there.iter().filter(looks).map(eye).collect()
}

/// Compares the clocks of agents with this one.
pub(super) async fn measure_clocks(link: &Link, clock: &Clock, agents: Vec<Chosen>) -> Result<Vec<Chosen>, Error> {
    try_join_all(agents.into_iter().map(|agent| measure(link, clock, agent))).await
}

async fn measure(link: &Link, clock: &Clock, agent: Chosen) -> Result<Chosen, Error> {
    let mut exchanges = Vec::with_capacity(PINGS);
    for _ in 0..PINGS {
        let asked_ns = clock.now_ns();
        let Pong { received_ns, responded_ns } = link.ask(&agent.name, "ping", Bytes::new()).await?;
        exchanges.push(Exchange { asked_ns, received_ns, responded_ns, heard_ns: clock.now_ns() });
    }
    let clock = offset(&exchanges).unwrap_or_default();
    if clock.offset_ns.unsigned_abs() > CLOCK_OFF_MAX.as_nanos() as u64 {
        return Err(Error::Clock { agent: agent.name, offset_ns: clock.offset_ns, most: CLOCK_OFF_MAX });
    }
    Ok(Chosen { clock, ..agent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::WorkUnderWay;

    fn agent(name: &str, zone: &str, work: Option<&str>) -> Introduction {
        Introduction {
            name: name.into(),
            version: version(),
            labels: [("zone".to_owned(), zone.to_owned())].into(),
            cores: 2,
            work: work.map(|run| WorkUnderWay { run: run.into(), trial: 1 }),
            watches: Vec::new(),
            receives: false,
        }
    }

    #[test]
    fn agents_with_other_labels_or_other_work_are_named_and_not_chosen() {
        let selector = Selector::parse("zone=a").unwrap();
        let there = vec![agent("one", "a", None), agent("two", "b", None), agent("three", "a", Some("other"))];
        let Fitting { chosen, is_busy, hint } =
            fitting(&selector, there, "this", 1).unwrap_or_else(|error| panic!("{error}"));
        assert!(is_busy);
        assert_eq!(chosen.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(), ["one"]);
        assert_eq!(hint, "two has other labels, three works for another run");
    }

    #[test]
    fn an_agent_of_another_version_is_refused_by_name() {
        let old = Introduction { version: "0.0.9 (messages 1)".into(), ..agent("old", "a", None) };
        let error = fitting(&Selector::default(), vec![old], "this", 1).err().map(|error| error.to_string());
        assert_eq!(
            error,
            Some(format!(
                "agent old is of version 0.0.9 (messages 1), expected {}: install the same version there",
                version()
            ))
        );
    }
}
