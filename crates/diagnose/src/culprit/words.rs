//! The change in a sentence: which service it comes from, and who only waits for it.

use narrows_model::diff::{Fate, LogDiff, ServiceDiff, ServiceRole};
use narrows_model::units;

/// Services that only wait and are named.
const WAITING_MAX: usize = 3;

/// Share of the requests below which a service is described by its calls.
const RARE_MAX: f64 = 0.5;

/// The clause that names the cause, such as `payment takes 40 ms more of each request, 95 % of the change; checkout and
/// frontend only wait for it`; `None` if no service is one.
pub(crate) fn sentence(services: &[ServiceDiff]) -> Option<String> {
    let is_origin = |one: &&ServiceDiff| !matches!(one.role, ServiceRole::Waiting | ServiceRole::Unchanged);
    let cause = services.iter().find(is_origin)?;
    let waiting = services.iter().filter(|service| service.role == ServiceRole::Waiting);
    let waiting: Vec<&str> = waiting.map(|service| service.service.as_str()).take(WAITING_MAX).collect();
    let waiting = match waiting[..] {
        [] => String::new(),
        [one] => format!("; {one} only waits for it"),
        [.., last] => format!("; {} and {last} only wait for it", waiting[..waiting.len() - 1].join(", ")),
    };
    let logged = cause.logs.iter().find(|message| message.fate == Fate::Appeared).map_or_else(String::new, of_message);
    Some(format!("{}{logged}{waiting}", of_cause(cause)))
}

fn of_message(message: &LogDiff) -> String {
    format!(", and logs a new error, “{}”", message.template)
}

fn of_cause(cause: &ServiceDiff) -> String {
    if cause.role == ServiceRole::Failing {
        let (old, new) = (units::percent(cause.errors.0), units::percent(cause.errors.1));
        return format!("errors that begin in {} fail {new} of the requests instead of {old}", cause.service);
    }
    if let Some((callee, old, new)) = &cause.calls {
        return match (*old, *new) {
            (_, 0.0) => format!("{} no longer calls {callee}", cause.service),
            (0.0, new) => format!("{} now calls {callee} {}", cause.service, units::times(new)),
            (old, new) => {
                format!("{} calls {callee} {} instead of {}", cause.service, units::times(new), units::times(old))
            }
        };
    }
    if let Some(text) = of_spans(cause).or_else(|| of_usage(cause)).or_else(|| of_rare_calls(cause)) {
        return text;
    }
    if let (ServiceRole::Called, Some((old, new))) = (cause.role, cause.requests) {
        let (old, new) = (units::rate(old), units::rate(new));
        return format!("{} receives {new} instead of {old}, which no known caller explains", cause.service);
    }
    let (old, new) = (units::duration(cause.before_ns), units::duration(cause.after_ns));
    let share = cause.share.map_or_else(String::new, |share| format!(", {} of the change", units::percent(share)));
    if cause.requests.is_some() {
        return format!("{} responds in {new} instead of {old}", cause.service);
    }
    format!("{} takes {new} of each request instead of {old}{share}", cause.service)
}

/// Internal spans that vanished or appeared, where nothing else did.
fn of_spans(cause: &ServiceDiff) -> Option<String> {
    let span = cause.spans.first().filter(|_| cause.role == ServiceRole::Calling)?;
    let has = if span.after < span.before { "no longer has" } else { "has new" };
    Some(format!("{} {has} internal spans “{}”", cause.service, span.name))
}

fn of_usage(cause: &ServiceDiff) -> Option<String> {
    if cause.role != ServiceRole::Heavier {
        return None;
    }
    let ratio = |(before, after): (f64, f64)| if before > 0.0 { after / before } else { f64::INFINITY };
    match (cause.cpu, cause.memory) {
        (Some(cpu), memory) if memory.is_none_or(|memory| ratio(cpu) >= ratio(memory)) => {
            let (old, new) = (units::duration(cpu.0), units::duration(cpu.1));
            Some(format!("{} uses {new} of CPU for each request instead of {old}", cause.service))
        }
        (_, Some((before, after))) => {
            let (old, new) = (units::bytes(before), units::bytes(after));
            Some(format!("{} uses {new} of memory instead of {old}", cause.service))
        }
        _ => None,
    }
}

/// The time of each call, where few requests lead to it.
fn of_rare_calls(cause: &ServiceDiff) -> Option<String> {
    let (_, reached) = cause.reached.filter(|(_, after)| *after < RARE_MAX)?;
    let (old, new) = cause.call_ns.filter(|(before, after)| after > before)?;
    let (old, new, share) = (units::duration(old), units::duration(new), units::percent(reached));
    Some(format!("{} takes {new} of each of its calls instead of {old}, in {share} of the requests", cause.service))
}
