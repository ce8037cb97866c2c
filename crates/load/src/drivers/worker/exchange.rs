//! One request and its response, from the moment a user is due to the moment its next request has a time. A request
//! that is redirected is one with all that follow from it. What happens in between, the transport reports as events.

use narrows_model::load::{Connections, ErrorKind};

use super::Worker;
use super::user::Activity;
use crate::drivers::transport::{Order, Response, Reuse, Transport};
use crate::flows::Position;
use crate::recorder::Cause;
use crate::request::{RequestValues, header_of};
use crate::sampling::FinishedRequest;
use crate::session::{Failure, Hop, Judgement, Origin, STATUS_FAILED, Security, SentRequest};
use crate::trace_context::TraceContext;

/// The pause of a user after a refused connection doubles from the first to the second.
const BACK_OFF_NS_MIN: i64 = 10_000_000;
const BACK_OFF_NS_MAX: i64 = 1_000_000_000;

impl<T: Transport> Worker<'_, T> {
    /// Sends a user's next request, which is due at `intended_ns`: the next step of its iteration, or the first of a new
    /// one.
    pub(super) fn begin(&mut self, slot: usize, intended_ns: i64) {
        let begun_ns = self.now();
        if let Some(session) = &mut self.users[slot].session {
            match session.take_upcoming() {
                Some(step) => return self.send_step(slot, step, intended_ns, begun_ns),
                None => session.begin_iteration(),
            }
        }
        if !self.take_ticket(slot, begun_ns) {
            return;
        }
        let user = &mut self.users[slot];
        let position = self.shared.flows.draw(user.scenario, &mut self.random);
        let used = &self.shared.flows.steps()[position.row].sources_used;
        if self.shared.sources.draw_all(used, &mut self.random, &mut user.draws).is_none() {
            return self.run_dry(slot, begun_ns);
        }
        self.send_step(slot, position, intended_ns, begun_ns);
    }

    fn send_step(&mut self, slot: usize, position: Position, intended_ns: i64, begun_ns: i64) {
        let user = &mut self.users[slot];
        user.position = position;
        let request = &self.shared.flows.steps()[position.row].request;
        if let Some(tracing) = self.shared.plan.tracing {
            user.trace = TraceContext::draw(tracing, &mut self.random);
        }
        let filling = RequestValues {
            sources: self.shared.sources,
            draws: &user.draws,
            trace: &user.trace,
            session: user.session.as_deref(),
            now_ns: begun_ns,
        };
        request.render(filling, &mut self.scratch, &mut user.request);
        user.form = request.response_form;
        user.activity = Activity::Busy;
        user.received = 0;
        (user.intended_ns, user.begun_ns) = (intended_ns, begun_ns);
        (user.sent_ns, user.writing_ns, user.written_ns, user.first_byte_ns) = (0, 0, 0, 0);
        user.is_repeat = false;
        user.deadline_ns = begun_ns + self.timeout_ns;
        self.deadlines.watch(slot, user.deadline_ns);
        self.busy += 1;
        self.hand_over(slot, begun_ns);
    }

    /// Gives a user's current request to the transport, to be sent from its first byte.
    pub(super) fn hand_over(&mut self, slot: usize, now_ns: i64) {
        let user = &mut self.users[slot];
        if let Some(session) = &mut user.session {
            session.capture.want(self.shared.flows.steps()[user.position.row].rules.wanted);
        }
        let from = self.shared.client_address(user.vu);
        let order = Order { target: user.target, from, form: user.form, now_ns };
        self.transport.send(slot, order, &mut self.users);
    }

    /// Closes a user's connection, whatever is under way on it.
    pub(super) fn disconnect(&mut self, slot: usize) {
        self.users[slot].is_connected = false;
        self.transport.close(slot);
    }

    /// Ends the current request, or the part of it that was redirected, with a complete response.
    pub(super) fn complete(&mut self, slot: usize, response: Response, now: i64) {
        if self.users[slot].session.is_some() {
            return self.judge(slot, response, now);
        }
        let error = (response.status >= STATUS_FAILED).then_some(ErrorKind::Status);
        let ended = FinishedRequest { status: response.status, error, ..self.users[slot].ended(now) };
        self.settle(slot, response, ended);
        self.end_iteration(slot, now);
    }

    /// Counts the current request, which has a complete response.
    fn settle(&mut self, slot: usize, response: Response, ended: FinishedRequest) {
        let user = &mut self.users[slot];
        self.recorder.completed(user.position.row, &ended);
        let totals = &mut self.recorder.totals;
        if user.written_ns != 0 {
            totals.phases.write.add(user.writing_ns, user.written_ns);
            totals.phases.wait.add(user.written_ns, user.first_byte_ns);
            totals.phases.read.add(user.first_byte_ns, ended.done_ns);
        }
        user.back_off_ns = 0;
        self.busy -= 1;
        self.keep_connection(slot, response);
    }

    /// Keeps the connection that delivered a response, if it can carry another request.
    fn keep_connection(&mut self, slot: usize, response: Response) {
        self.recorder.totals.body_bytes += response.body_bytes;
        if response.reuse == Reuse::Open && self.shared.plan.connections == Connections::KeepAlive {
            self.users[slot].is_connected = true;
        } else {
            self.disconnect(slot);
        }
    }

    /// Judges a complete response by its step's rules.
    fn judge(&mut self, slot: usize, response: Response, now: i64) {
        let user = &mut self.users[slot];
        let step = &self.shared.flows.steps()[user.position.row];
        let Some(session) = &mut user.session else { return };
        match step.rules.judge_by_status(response.status) {
            Some(Judgement::Succeeded) => return self.conclude(slot, response, now, None),
            Some(Judgement::Failed(failure)) => return self.conclude(slot, response, now, Some(failure)),
            _ => {}
        }
        let origin = Origin {
            security: if self.shared.plan.tls.is_some() { Security::Tls } else { Security::Plain },
            host: header_of(&user.request, "host").unwrap_or(b""),
            address: user.target,
        };
        let sent = SentRequest { request: &user.request, method: step.request.method(), origin };
        match step.rules.judge(response.status, session, sent, now, &mut self.decoder) {
            Judgement::Succeeded => self.conclude(slot, response, now, None),
            Judgement::Failed(failure) => self.conclude(slot, response, now, Some(failure)),
            Judgement::Redirected(hop) => self.follow(slot, response, &hop, now),
        }
    }

    /// Ends the current request with a judged response.
    fn conclude(&mut self, slot: usize, response: Response, now: i64, failure: Option<Failure>) {
        let user = &mut self.users[slot];
        let ended = user.ended(now);
        let bytes = ended.bytes + user.end_request();
        let error = failure.as_ref().map(|failure| failure.kind);
        let position = user.position;
        self.settle(slot, response, FinishedRequest { status: response.status, error, bytes, ..ended });
        match failure {
            None => match position.next() {
                Some(step) => self.go_on(slot, step, now),
                None => self.end_iteration(slot, now),
            },
            Some(failure) => {
                if let Some(cause) = failure.cause {
                    self.recorder.caused(failure.kind, cause);
                }
                self.end_iteration(slot, now);
            }
        }
    }

    /// Goes on with an iteration, after the pause that follows its last step.
    fn go_on(&mut self, slot: usize, step: Position, now: i64) {
        if !self.may_go_on(slot, now) {
            return self.rest(slot);
        }
        let user = &mut self.users[slot];
        let think_ns = self.shared.flows.steps()[user.position.row].think_ns(&mut self.random);
        if let Some(session) = &mut user.session {
            session.go_on_at(step);
        }
        if think_ns > 0 {
            self.wait_until(slot, now + think_ns);
        } else {
            self.begin(slot, now);
        }
    }

    /// Sends the request that a redirect requires, as a part of the current one.
    fn follow(&mut self, slot: usize, response: Response, hop: &Hop, now: i64) {
        self.keep_connection(slot, response);
        let user = &mut self.users[slot];
        if let Some(session) = &mut user.session {
            session.redirected_bytes += response.bytes;
        }
        let filling = RequestValues {
            sources: self.shared.sources,
            draws: &user.draws,
            trace: &user.trace,
            session: user.session.as_deref(),
            now_ns: now,
        };
        let request = &self.shared.flows.steps()[user.position.row].request;
        user.form = request.render_hop(hop, filling, &mut self.scratch, &mut user.request);
        user.received = 0;
        (user.writing_ns, user.written_ns, user.first_byte_ns) = (0, 0, 0);
        self.hand_over(slot, now);
    }

    /// Ends the current request without a complete response.
    pub(super) fn fail(&mut self, slot: usize, kind: ErrorKind, cause: Cause) {
        let now = self.now();
        let user = &mut self.users[slot];
        let ended = user.ended(now);
        let bytes = ended.bytes + user.end_request();
        self.recorder.failed(user.position.row, FinishedRequest { bytes, ..ended }, kind, cause);
        if kind == ErrorKind::Connect {
            user.back_off_ns = (user.back_off_ns * 2).clamp(BACK_OFF_NS_MIN, BACK_OFF_NS_MAX);
        }
        self.disconnect(slot);
        self.busy -= 1;
        self.end_iteration(slot, now);
    }
}
