//! Rules for the responses to a step: redirects, then cookies, checks and extraction, in this order.

use narrows_model::load::{Cookies, ErrorKind, Scenario, Step};
use narrows_model::trace::SpanKind;

use super::capture::ResponseParts;
use super::checks::CompiledCheck;
use super::extract::CompiledExtract;
use super::redirect::{Hop, HopMethod, Origin, is_redirect, method_after, resolve};
use super::response::{Decoder, Response};
use super::{Failure, Session};
use crate::Error;
use crate::recorder::Cause;
use crate::request::{header_of, path_of};

/// Lowest status of a failed response, unless a check allows it: the load engine is a client.
pub(crate) const STATUS_FAILED: u16 = SpanKind::Client.failed_from();

/// See the module.
#[derive(Debug)]
pub(crate) struct Rules {
    /// Parts of responses to keep.
    pub(crate) wanted: ResponseParts,
    checks: Vec<CompiledCheck>,
    checks_status: bool,
    extracts: Vec<CompiledExtract>,
    redirects_max: u8,
    /// Whether nothing but the status of a response matters, unless it is a redirect.
    is_by_status: bool,
}

/// Meaning of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Judgement {
    Succeeded,
    Failed(Failure),
    /// Another request has to follow before there is a final response.
    Redirected(Hop),
}

impl Rules {
    /// Compiles the checks and extractions of a step. `place` is how errors name it.
    ///
    /// # Errors
    /// [`Error::Plan`] when one is not well-formed.
    pub(crate) fn compile(step: &Step, scenario: &Scenario, place: &str) -> Result<Self, Error> {
        let refuse = |problem| Error::plan(place, problem);
        let checks = step.checks.iter().map(|check| CompiledCheck::compile(check).map_err(refuse));
        let checks = checks.collect::<Result<Vec<_>, _>>()?;
        let extracts = step.extract.iter().map(|extract| CompiledExtract::compile(extract).map_err(refuse));
        let extracts = extracts.collect::<Result<Vec<_>, _>>()?;
        let reads_head = step.redirects_max > 0 || scenario.cookies != Cookies::Ignored;
        let least = if reads_head { ResponseParts::Head } else { ResponseParts::Nothing };
        let needs = checks.iter().map(CompiledCheck::wanted).chain(extracts.iter().map(CompiledExtract::wanted));
        Ok(Self {
            wanted: needs.fold(least, ResponseParts::max),
            checks_status: checks.iter().any(CompiledCheck::is_of_status),
            is_by_status: checks.is_empty() && extracts.is_empty() && scenario.cookies == Cookies::Ignored,
            checks,
            extracts,
            redirects_max: step.redirects_max,
        })
    }

    /// Judges a response by its status alone; `None` if more of it has to be looked at.
    pub(crate) fn judge_by_status(&self, status: u16) -> Option<Judgement> {
        if !self.is_by_status || is_redirect(status) {
            return None;
        }
        Some(match status {
            STATUS_FAILED.. => Judgement::Failed(Failure { kind: ErrorKind::Status, cause: None }),
            _ => Judgement::Succeeded,
        })
    }

    /// Judges the captured response to a request, and keeps what is to be kept of it.
    pub(crate) fn judge(
        &self,
        status: u16,
        session: &mut Session,
        sent: SentRequest<'_>,
        now_ns: i64,
        decoder: &mut Decoder,
    ) -> Judgement {
        session.take_cookies(sent.request, &sent.origin, now_ns);
        let judged = match self.redirect(status, session, sent) {
            Ok(Some(hop)) => return Judgement::Redirected(hop),
            Ok(None) => self.look(status, session, decoder),
            Err(failure) => Err(failure),
        };
        judged.map_or_else(Judgement::Failed, |()| Judgement::Succeeded)
    }

    fn redirect(&self, status: u16, session: &mut Session, sent: SentRequest<'_>) -> Result<Option<Hop>, Failure> {
        if self.redirects_max == 0 || !is_redirect(status) {
            return Ok(None);
        }
        let Some(location) = header_of(&session.capture.head, "location") else { return Ok(None) };
        let path = resolve(location, path_of(sent.request), &sent.origin)?;
        if session.redirects == self.redirects_max {
            let cause = Cause::Said(format!("more than {} redirects", self.redirects_max).into());
            return Err(Failure { kind: ErrorKind::Protocol, cause: Some(cause) });
        }
        session.redirects += 1;
        if session.hop_method == HopMethod::AsItWas {
            session.hop_method = method_after(status, sent.method);
        }
        session.capture.clear();
        Ok(Some(Hop { method: session.hop_method, path }))
    }

    fn look(&self, status: u16, session: &mut Session, decoder: &mut Decoder) -> Result<(), Failure> {
        if !self.checks_status && status >= STATUS_FAILED {
            return Err(Failure { kind: ErrorKind::Status, cause: None });
        }
        if self.checks.is_empty() && self.extracts.is_empty() {
            return Ok(());
        }
        let Session { capture, variables, .. } = session;
        let mut response = Response::new(status, capture, decoder);
        // The status first: when it is wrong, the rest means nothing.
        for of_status in [true, false] {
            let mut checks = self.checks.iter().filter(|check| check.is_of_status() == of_status);
            checks.try_for_each(|check| check.hold(&mut response))?;
        }
        self.extracts.iter().try_for_each(|extract| match variables.get_mut(extract.variable) {
            Some(variable) => extract.take(&mut response, variable),
            None => Ok(()),
        })
    }
}

/// The request that the response belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest<'a> {
    /// Its bytes.
    pub(crate) request: &'a [u8],
    /// The method of the step's template.
    pub(crate) method: &'a str,
    pub(crate) origin: Origin<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::constant_plan;
    use narrows_model::load::Check;

    fn reported(status: u16, change: impl FnOnce(&mut Scenario)) -> Option<&'static str> {
        let mut scenario = constant_plan().scenarios.remove(0);
        change(&mut scenario);
        let rules = Rules::compile(&scenario.flows[0].steps[0], &scenario, "a").unwrap();
        rules.judge_by_status(status).map(|judged| match judged {
            Judgement::Succeeded => "succeeded",
            Judgement::Failed(_) => "failed",
            Judgement::Redirected(_) => "redirected",
        })
    }

    #[test]
    fn a_status_is_enough_unless_more_of_the_response_is_checked() {
        let follows = |scenario: &mut Scenario| scenario.flows[0].steps[0].redirects_max = 10;
        let cases = [(200, Some("succeeded")), (304, Some("succeeded")), (404, Some("failed")), (302, None)];
        for (status, expected) in cases {
            assert_eq!(reported(status, follows), expected, "{status}");
        }
        assert_eq!(reported(200, |scenario| scenario.cookies = Cookies::PerUser), None);
        let checked = |scenario: &mut Scenario| {
            scenario.flows[0].steps[0].checks = vec![Check::BodyContains("x".into())];
        };
        assert_eq!(reported(200, checked), None);
    }
}
