//! The change in a sentence: which service it comes from, and who only waits for it.

use narrows_model::diff::{ServiceDiff, ServiceRole};
use narrows_model::units;

/// Services that only wait and are named.
const WAITING_MAX: usize = 3;

/// The clause that names the cause, such as `payment takes 40 ms more of each request, 95 % of the change; checkout and
/// frontend only wait for it`; none when no service is one.
pub(crate) fn sentence(services: &[ServiceDiff]) -> Option<String> {
    let cause = services.iter().find(|one| one.role.is_cause() || one.role == ServiceRole::Faster)?;
    let waiting = services.iter().filter(|service| service.role == ServiceRole::Waiting);
    let waiting: Vec<&str> = waiting.map(|service| service.service.as_str()).take(WAITING_MAX).collect();
    let waiting = match waiting[..] {
        [] => String::new(),
        [one] => format!("; {one} only waits for it"),
        [.., last] => format!("; {} and {last} only wait for it", waiting[..waiting.len() - 1].join(", ")),
    };
    Some(format!("{}{waiting}", of_cause(cause)))
}

fn of_cause(cause: &ServiceDiff) -> String {
    if cause.role == ServiceRole::Failing {
        let (old, new) = (units::percent(cause.errors.0), units::percent(cause.errors.1));
        return format!("errors that begin in {} fail {new} of the requests instead of {old}", cause.service);
    }
    if let Some((callee, old, new)) = &cause.calls {
        return format!("{} calls {callee} {} instead of {}", cause.service, units::times(*new), units::times(*old));
    }
    format!(
        "{} takes {} of each request instead of {}, {} of all that changed",
        cause.service,
        units::duration(cause.after_ns),
        units::duration(cause.before_ns),
        units::percent(cause.share)
    )
}
