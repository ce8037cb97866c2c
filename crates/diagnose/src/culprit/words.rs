//! The change in a sentence: which service it comes from, and who only waits for it.

use narrows_model::diff::{Fate, LogDiff, ServiceDiff, ServiceRole};
use narrows_model::units;

/// Services that only wait and are named.
const WAITING_MAX: usize = 3;

/// The clause that names the cause, such as `payment takes 40 ms more of each request, 95 % of the change; checkout and
/// frontend only wait for it`; `None` if no service is one.
pub(crate) fn sentence(services: &[ServiceDiff]) -> Option<String> {
    let cause = services.iter().find(|one| is_origin(one) || !one.logs.is_empty())?;
    let waiting = services.iter().filter(|service| service.role == ServiceRole::Waiting);
    let waiting: Vec<&str> = waiting.map(|service| service.service.as_str()).take(WAITING_MAX).collect();
    let waiting = match waiting[..] {
        [] => String::new(),
        [one] => format!("; {one} only waits for it"),
        [.., last] => format!("; {} and {last} only wait for it", waiting[..waiting.len() - 1].join(", ")),
    };
    let logged = cause.logs.first().map(of_message);
    let clause = match (is_origin(cause), logged) {
        (true, None) => of_cause(cause),
        (true, Some(logged)) => format!("{}, and {logged}", of_cause(cause)),
        (false, logged) => format!("{} {}", cause.service, logged.unwrap_or_default()),
    };
    Some(format!("{clause}{waiting}"))
}

/// True if traces show a change that begins in the service.
fn is_origin(service: &ServiceDiff) -> bool {
    !matches!(service.role, ServiceRole::Waiting | ServiceRole::Unchanged)
}

/// How a message differs, such as `no longer logs “reserved * items”, which every call did`.
fn of_message(message: &LogDiff) -> String {
    let text = &message.template;
    let calls = message.operation.as_ref().map_or_else(|| "calls".to_owned(), |name| format!("calls of {name}"));
    let call = calls.replacen("calls", "call", 1);
    let share = |share: f64| if share > 0.995 { format!("every {call}") } else { percent_of(share, &calls) };
    match (message.fate, message.calls) {
        (Fate::Vanished, Some((before, _))) => format!("no longer logs “{text}”, which {} did", share(before)),
        (Fate::Vanished, None) => format!("no longer logs “{text}”"),
        (Fate::Appeared, calls) => {
            let what = if message.is_error { "logs a new error, “" } else { "now logs “" };
            let share = calls.map_or_else(String::new, |(_, after)| format!(", in {}", share(after)));
            format!("{what}{text}”{share}")
        }
        (_, Some((before, after))) => {
            format!("logs “{text}” in {} instead of {}", share(after), units::percent(before))
        }
        (_, None) => format!("logs “{text}” {} as often", units::times(message.growth.unwrap_or(1.0))),
    }
}

fn percent_of(share: f64, calls: &str) -> String {
    format!("{} of the {calls}", units::percent(share))
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
    if let Some((old, new)) = cause.outside_ns {
        let (old, new) = (units::duration(old), units::duration(new));
        return format!("requests wait {new} in front of {} instead of {old}, where it has no spans", cause.service);
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
    let ((old, new), reached) = cause.slower_rare_calls()?;
    let (old, new, share) = (units::duration(old), units::duration(new), units::percent(reached));
    Some(format!("{} takes {new} of each of its calls instead of {old}, in {share} of the requests", cause.service))
}
