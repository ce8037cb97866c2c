//! The change in a sentence: which service it comes from, and who only waits for it.

use narrows_model::diff::{Fate, LogDiff, ServiceDiff, ServiceRole};
use narrows_model::units;

/// Services that only wait and are named.
const WAITING_MAX: usize = 3;

/// The clause that names the cause, such as `payment takes 40 ms more of each request, 95 % of the change; checkout and
/// frontend only wait for it`; `None` if no service is one.
pub(crate) fn sentence(services: &[ServiceDiff]) -> Option<String> {
    let is_origin =
        |one: &&ServiceDiff| one.role.is_cause() || matches!(one.role, ServiceRole::Faster | ServiceRole::Calling);
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
    let (old, new) = (units::duration(cause.before_ns), units::duration(cause.after_ns));
    let share = cause.share.map_or_else(String::new, |share| format!(", {} of the change", units::percent(share)));
    format!("{} takes {new} of each request instead of {old}{share}", cause.service)
}
