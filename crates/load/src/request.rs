//! From a request template to the bytes on the wire.
//!
//! A template is compiled once into pieces: constant bytes, joined as far as they go, and the few places that differ
//! per request. Rendering copies pieces into a reused buffer and allocates nothing once the buffer has grown.
//!
//! The result is one well-formed HTTP/1.1 request whatever the data holds: values in the path are percent-encoded
//! (RFC 3986: all but unreserved characters), control characters in header values are left out, so that data cannot
//! add headers, and the length of the body is always computed. Bodies are sent as they are. Cookies go into one header,
//! after those that the template gives.

use narrows_model::load::{Connections, Cookies, LoadPlan, RequestTemplate, Scenario, Segment, Step, Template};

use crate::Error;
use crate::data::{Draw, Sources};
use crate::encoding::{Encoding, is_header_byte, percent_encode};
use crate::session::{Hop, HopMethod, Session, VARIABLES_MAX};
use crate::trace_context::TraceContext;

/// Headers that speak of the body, which a redirected request may not have any more (Fetch standard, 4.4).
const BODY_HEADERS: [&str; 4] = ["content-encoding", "content-language", "content-location", "content-type"];
const USER_AGENT: &str = concat!("narrows/", env!("CARGO_PKG_VERSION"));

/// A compiled request template.
#[derive(Debug)]
pub(crate) struct Request {
    head: Vec<Piece>,
    body: Vec<Piece>,
    /// Rest of the request after a redirect; `None` if redirects are not followed.
    redirected: Option<Box<RedirectHeads>>,
    method: String,
    /// The data sources that it draws from.
    pub(crate) sources_used: Vec<usize>,
    /// Whether the response has a head only.
    pub(crate) response_form: ResponseForm,
}

/// Header sections for the hops after the first.
#[derive(Debug)]
struct RedirectHeads {
    as_it_was: Vec<Piece>,
    without_body: Vec<Piece>,
}

/// Shape of the response to a request, by the request's method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseForm {
    /// A head, and a body unless the status has none.
    WithBody,
    /// A head only: the response to `HEAD`.
    HeadOnly,
}

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Field {
        source: usize,
        column: usize,
        encoding: Encoding,
    },
    Variable {
        index: usize,
        encoding: Encoding,
    },
    /// The user's cookies for the path in the request line: a header of their own, or the rest of the given one.
    Cookies {
        before: &'static [u8],
        after: &'static [u8],
    },
    Traceparent,
    ContentLength,
}

/// Values for the places of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestValues<'a> {
    pub(crate) sources: &'a Sources<'a>,
    /// Draws from each of the sources.
    pub(crate) draws: &'a [Draw],
    pub(crate) trace: &'a TraceContext,
    /// Variables and cookies; `None` where iterations have neither.
    pub(crate) session: Option<&'a Session>,
    /// The time, by which cookies expire.
    pub(crate) now_ns: i64,
}

/// Buffers of one thread that rendering needs.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    body: Vec<u8>,
}

impl Request {
    /// Compiles a step's template. `place` is how errors name it.
    ///
    /// # Errors
    /// [`Error::Plan`] when the method or a header is not well-formed, or a place names data that is not there.
    pub(crate) fn compile(step: &Step, scenario: &Scenario, plan: &LoadPlan, place: &str) -> Result<Self, Error> {
        let template = &step.request;
        let sends_cookies = scenario.cookies != Cookies::Ignored;
        let mut compiler = Compiler { plan, place, sends_cookies, pieces: Vec::new(), sources_used: Vec::new() };
        if !is_token(&template.method) {
            return Err(compiler.refuse("method", format!("{:?} is not an HTTP method", template.method)));
        }
        if let Some(body) = &template.body {
            compiler.template("body", body, Encoding::Body)?;
        }
        let body = compiler.taken();
        compiler.request_line(template)?;
        compiler.headers(template)?;
        let head = compiler.taken();
        let redirected = if step.redirects_max > 0 { Some(Box::new(compiler.redirected(template)?)) } else { None };
        let response_form = if template.method == "HEAD" { ResponseForm::HeadOnly } else { ResponseForm::WithBody };
        let method = template.method.clone();
        Ok(Self { head, body, redirected, method, sources_used: compiler.sources_used, response_form })
    }

    /// Renders one request into `out`, replacing what was there.
    pub(crate) fn render(&self, filling: RequestValues<'_>, scratch: &mut Scratch, out: &mut Vec<u8>) {
        scratch.body.clear();
        append(&self.body, filling, 0, &mut scratch.body);
        out.clear();
        append(&self.head, filling, scratch.body.len(), out);
        out.extend_from_slice(&scratch.body);
    }

    /// Renders the request that follows a redirect into `out`, and returns what its response looks like.
    pub(crate) fn render_hop(
        &self,
        hop: &Hop,
        filling: RequestValues<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) -> ResponseForm {
        let (method, response_form) = match hop.method {
            HopMethod::AsItWas => (self.method.as_str(), self.response_form),
            HopMethod::Get => ("GET", ResponseForm::WithBody),
        };
        scratch.body.clear();
        out.clear();
        for part in [method.as_bytes(), b" ", &hop.path, b" HTTP/1.1\r\n"] {
            out.extend_from_slice(part);
        }
        if let Some(redirected) = &self.redirected {
            let pieces = match hop.method {
                HopMethod::AsItWas => {
                    append(&self.body, filling, 0, &mut scratch.body);
                    &redirected.as_it_was
                }
                HopMethod::Get => &redirected.without_body,
            };
            append(pieces, filling, scratch.body.len(), out);
        }
        out.extend_from_slice(&scratch.body);
        response_form
    }

    /// The method of the template.
    pub(crate) fn method(&self) -> &str {
        &self.method
    }
}

/// Whether the method of a rendered request is idempotent (RFC 9110, 9.2.2).
pub(crate) fn is_idempotent(request: &[u8]) -> bool {
    const IDEMPOTENT: [&[u8]; 6] = [b"GET", b"HEAD", b"OPTIONS", b"TRACE", b"PUT", b"DELETE"];
    let method = request.split(|byte| *byte == b' ').next().unwrap_or_default();
    IDEMPOTENT.contains(&method)
}

/// Path and query in a request that is rendered at least as far as its first line.
pub(crate) fn path_of(request: &[u8]) -> &[u8] {
    request.split(|byte| *byte == b' ').nth(1).unwrap_or(b"/")
}

/// The headers, names and values in order, of a request that was rendered at least in part, or of a response whose head
/// was already parsed.
pub(crate) fn headers_of(message: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    // Empty lines may come before a response (RFC 9112, 2.2).
    let lines = message.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).skip_while(|line| line.is_empty());
    lines.skip(1).take_while(|line| !line.is_empty()).filter_map(|line| {
        let (name, value) = line.split_at(line.iter().position(|byte| *byte == b':')?);
        Some((name, value[1..].trim_ascii()))
    })
}

/// The value of the first header of a name; see [`headers_of`].
pub(crate) fn header_of<'a>(message: &'a [u8], name: &str) -> Option<&'a [u8]> {
    headers_of(message).find(|(given, _)| given.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

fn append(pieces: &[Piece], filling: RequestValues<'_>, body_bytes: usize, out: &mut Vec<u8>) {
    for piece in pieces {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Field { source, column, encoding } => {
                let draw = filling.draws[*source];
                filling.sources.with_cell(*source, *column, draw, |cell| encoding.append(cell, out));
            }
            Piece::Variable { index, encoding } => {
                encoding.append(filling.session.map_or(b"", |session| session.variable(*index)), out);
            }
            Piece::Cookies { before, after } => {
                if let Some(session) = filling.session {
                    session.append_cookies(filling.now_ns, before, after, out);
                }
            }
            Piece::Traceparent => filling.trace.write(out),
            Piece::ContentLength => {
                use std::io::Write;
                // Writing to a vector cannot fail.
                let _ = write!(out, "{body_bytes}");
            }
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

struct Compiler<'plan> {
    plan: &'plan LoadPlan,
    place: &'plan str,
    sends_cookies: bool,
    pieces: Vec<Piece>,
    sources_used: Vec<usize>,
}

impl Compiler<'_> {
    fn taken(&mut self) -> Vec<Piece> {
        std::mem::take(&mut self.pieces)
    }

    fn redirected(&mut self, template: &RequestTemplate) -> Result<RedirectHeads, Error> {
        self.headers(template)?;
        let as_it_was = self.taken();
        let mut bare = RequestTemplate { method: "GET".into(), body: None, ..template.clone() };
        bare.headers.retain(|(name, _)| !BODY_HEADERS.iter().any(|other| name.eq_ignore_ascii_case(other)));
        self.headers(&bare)?;
        Ok(RedirectHeads { as_it_was, without_body: self.taken() })
    }

    fn request_line(&mut self, template: &RequestTemplate) -> Result<(), Error> {
        self.bytes(template.method.as_bytes());
        self.bytes(b" ");
        self.path(&template.path)?;
        self.bytes(b" HTTP/1.1\r\n");
        Ok(())
    }

    fn headers(&mut self, template: &RequestTemplate) -> Result<(), Error> {
        let given = |name: &str| template.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        // The host must be known first (RFC 9110, 7.2): later cookies depend on it.
        if !given("host") {
            self.header("Host", &Template::text(&template.host))?;
        }
        self.given_headers(template, |name| name.eq_ignore_ascii_case("host"))?;
        self.given_headers(template, |name| !name.eq_ignore_ascii_case("host"))?;
        if !given("user-agent") {
            self.header("User-Agent", &Template::text(USER_AGENT))?;
        }
        if !given("accept") {
            self.header("Accept", &Template::text("*/*"))?;
        }
        if self.plan.connections == Connections::PerRequest && !given("connection") {
            self.header("Connection", &Template::text("close"))?;
        }
        if self.plan.tracing.is_some() && !given("traceparent") {
            self.computed(b"traceparent: ", Piece::Traceparent);
        }
        if self.sends_cookies && !given("cookie") {
            self.pieces.push(Piece::Cookies { before: b"Cookie: ", after: b"\r\n" });
        }
        if template.body.is_some() || matches!(template.method.as_str(), "POST" | "PUT" | "PATCH") {
            self.length(template);
        }
        self.bytes(b"\r\n");
        Ok(())
    }

    fn given_headers(&mut self, template: &RequestTemplate, are_meant: fn(&str) -> bool) -> Result<(), Error> {
        for (name, value) in template.headers.iter().filter(|(name, _)| are_meant(name)) {
            if name.eq_ignore_ascii_case("transfer-encoding") {
                return Err(self.refuse("header Transfer-Encoding", "bodies are sent with a Content-Length".into()));
            }
            if !name.eq_ignore_ascii_case("content-length") {
                self.header(name, value)?;
            }
        }
        Ok(())
    }

    fn path(&mut self, path: &Template) -> Result<(), Error> {
        let begins_well = match path.segments.first() {
            Some(Segment::Text(text)) => text.starts_with('/') || text == "*",
            _ => false,
        };
        if !begins_well {
            return Err(self.refuse("path", "it must begin with \"/\"".into()));
        }
        self.template("path", path, Encoding::Path)
    }

    fn header(&mut self, name: &str, value: &Template) -> Result<(), Error> {
        if !is_token(name) {
            return Err(self.refuse("headers", format!("{name:?} is not a header name")));
        }
        self.bytes(name.as_bytes());
        self.bytes(b": ");
        self.template(&format!("header {name}"), value, Encoding::Header)?;
        if self.sends_cookies && name.eq_ignore_ascii_case("cookie") {
            self.pieces.push(Piece::Cookies { before: b"; ", after: b"" });
        }
        self.bytes(b"\r\n");
        Ok(())
    }

    fn computed(&mut self, name: &[u8], value: Piece) {
        self.bytes(name);
        self.pieces.push(value);
        self.bytes(b"\r\n");
    }

    fn length(&mut self, template: &RequestTemplate) {
        let segments = template.body.iter().flat_map(|body| &body.segments);
        let constant: Option<usize> =
            segments.map(|s| if let Segment::Text(text) = s { Some(text.len()) } else { None }).sum();
        match constant {
            Some(length) => self.bytes(format!("Content-Length: {length}\r\n").as_bytes()),
            None => self.computed(b"Content-Length: ", Piece::ContentLength),
        }
    }

    fn template(&mut self, what: &str, template: &Template, encoding: Encoding) -> Result<(), Error> {
        for segment in &template.segments {
            match segment {
                Segment::Text(text) => self.text(what, text, encoding)?,
                Segment::Field { source, column } => self.field(what, *source, *column, encoding)?,
                Segment::Variable(index) => self.variable(what, *index, encoding)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, what: &str, text: &str, encoding: Encoding) -> Result<(), Error> {
        match encoding {
            Encoding::Header if !text.bytes().all(is_header_byte) => {
                return Err(self.refuse(what, format!("control character in {text:?}")));
            }
            Encoding::Path => {
                let mut encoded = Vec::with_capacity(text.len());
                percent_encode(text.as_bytes(), |byte| byte.is_ascii_graphic(), &mut encoded);
                self.bytes(&encoded);
            }
            Encoding::Header | Encoding::Body => self.bytes(text.as_bytes()),
        }
        Ok(())
    }

    fn field(&mut self, what: &str, source: usize, column: usize, encoding: Encoding) -> Result<(), Error> {
        use narrows_model::load::DataValues;
        let columns = match self.plan.data.get(source).map(|s| &s.values) {
            None => return Err(self.refuse(what, format!("data source {source} does not exist"))),
            Some(DataValues::Integers { .. }) => 1,
            Some(DataValues::Rows { rows, .. }) => rows.iter().map(Vec::len).min().unwrap_or(0),
        };
        if column >= columns {
            let name = &self.plan.data[source].name;
            return Err(self.refuse(what, format!("column {column} of data source {name} does not exist")));
        }
        if !self.sources_used.contains(&source) {
            self.sources_used.push(source);
        }
        self.pieces.push(Piece::Field { source, column, encoding });
        Ok(())
    }

    fn variable(&mut self, what: &str, index: usize, encoding: Encoding) -> Result<(), Error> {
        if index >= VARIABLES_MAX {
            return Err(self.refuse(what, format!("variable {index}, expected less than {VARIABLES_MAX}")));
        }
        self.pieces.push(Piece::Variable { index, encoding });
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.pieces.push(Piece::Bytes(bytes.to_vec())),
        }
    }

    fn refuse(&self, what: &str, problem: String) -> Error {
        Error::plan(format!("{}: {what}", self.place), problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::LoadPart;
    use crate::random::Random;
    use crate::testing::{constant_plan, rows};
    use narrows_model::load::{DataSource, DataValues, Pick, Tracing};
    use proptest::prelude::*;

    fn field(source: usize, column: usize) -> Segment {
        Segment::Field { source, column }
    }

    fn text(text: &str) -> Segment {
        Segment::Text(text.into())
    }

    fn template(segments: impl Into<Vec<Segment>>) -> Template {
        Template { segments: segments.into() }
    }

    fn compiled(plan: &LoadPlan) -> Result<Request, String> {
        let scenario = &plan.scenarios[0];
        Request::compile(&scenario.flows[0].steps[0], scenario, plan, "scenario a").map_err(|e| e.to_string())
    }

    fn rendered(plan: &LoadPlan) -> String {
        let request = compiled(plan).unwrap();
        let sources = Sources::new(&plan.data, LoadPart::whole(1, 0));
        let (mut random, mut draws) = (Random::new(1, 0), Vec::new());
        let trace = plan.tracing.map_or_else(TraceContext::default, |t| TraceContext::draw(t, &mut random));
        let mut out = b"left over".to_vec();
        sources.draw_all(&request.sources_used, &mut random, &mut draws).unwrap();
        let filling = RequestValues { sources: &sources, draws: &draws, trace: &trace, session: None, now_ns: 0 };
        request.render(filling, &mut Scratch::default(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_constant_request_is_one_piece_with_default_headers() {
        let plan = constant_plan();
        assert_eq!(compiled(&plan).unwrap().head.len(), 1);
        let version = env!("CARGO_PKG_VERSION");
        let expected = format!("GET / HTTP/1.1\r\nHost: test\r\nUser-Agent: narrows/{version}\r\nAccept: */*\r\n\r\n");
        assert_eq!(rendered(&plan), expected);
    }

    #[test]
    fn given_headers_replace_the_defaults_but_not_the_length() {
        let mut plan = constant_plan();
        plan.connections = Connections::PerRequest;
        let request = &mut plan.scenarios[0].flows[0].steps[0].request;
        request.method = "POST".into();
        for (name, value) in [("user-agent", "me"), ("ACCEPT", "a/b"), ("host", "h"), ("content-length", "99")] {
            request.headers.push((name.into(), Template::text(value)));
        }
        assert_eq!(
            rendered(&plan),
            "POST / HTTP/1.1\r\nhost: h\r\nuser-agent: me\r\nACCEPT: a/b\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn values_are_encoded_for_the_place_they_stand_in() {
        let mut plan = constant_plan();
        plan.data = vec![rows(&[&["a b/ü&\r\nX: y", "second"]], Pick::Sequential)];
        let request = &mut plan.scenarios[0].flows[0].steps[0].request;
        request.path = template([text("/ü?q= "), field(0, 0), text("&s="), field(0, 1)]);
        request.headers.push(("X-Value".into(), template([field(0, 0)])));
        request.body = Some(template([text("{"), field(0, 0), text("}")]));
        let out = rendered(&plan);
        assert!(out.starts_with("GET /%C3%BC?q=%20a%20b%2F%C3%BC%26%0D%0AX%3A%20y&s=second HTTP/1.1\r\n"), "{out}");
        assert!(out.contains("\r\nX-Value: a b/ü&X: y\r\n"), "{out}");
        assert!(out.ends_with("\r\nContent-Length: 15\r\n\r\n{a b/ü&\r\nX: y}"), "{out}");
    }

    #[test]
    fn a_trace_is_carried_unless_the_user_gives_one() {
        let mut plan = constant_plan();
        plan.tracing = Some(Tracing { sample: 1.0, tag: [1, 2, 3, 4] });
        assert!(rendered(&plan).contains("\r\ntraceparent: 00-01020304"));
        plan.scenarios[0].flows[0].steps[0].request.headers.push(("Traceparent".into(), Template::text("mine")));
        let out = rendered(&plan);
        assert!(out.contains("Traceparent: mine") && !out.contains("00-01020304"), "{out}");
    }

    #[test]
    fn a_rendered_request_says_its_path_and_headers() {
        let request = b"POST /a?b HTTP/1.1\r\nHost:  h:1 \r\nx-host: no\r\n\r\nX-Body: no\r\n";
        assert_eq!((path_of(request), path_of(b"")), (&b"/a?b"[..], &b"/"[..]));
        assert_eq!(header_of(request, "host"), Some(&b"h:1"[..]));
        assert_eq!((header_of(request, "x-body"), header_of(b"", "host")), (None, None));
        let response = b"\r\n\nHTTP/1.1 200 OK\nA: 1\r\na:\t2\r\n\r\nb: no";
        let headers: Vec<(&[u8], &[u8])> = headers_of(response).collect();
        assert_eq!(headers, [(&b"A"[..], &b"1"[..]), (b"a", b"2")]);
    }

    #[test]
    fn variables_are_limited_in_number_and_empty_without_a_session() {
        let mut plan = constant_plan();
        let request = &mut plan.scenarios[0].flows[0].steps[0].request;
        request.path = template([text("/"), Segment::Variable(VARIABLES_MAX - 1), text("x")]);
        assert!(rendered(&plan).starts_with("GET /x HTTP/1.1\r\n"));
        let request = &mut plan.scenarios[0].flows[0].steps[0].request;
        request.path = template([text("/"), Segment::Variable(VARIABLES_MAX)]);
        assert_eq!(compiled(&plan).unwrap_err(), "load plan: scenario a: path: variable 256, expected less than 256");
    }

    #[test]
    fn mistakes_name_their_place() {
        type Change = fn(&mut LoadPlan);
        let cases: [(Change, &str); 6] = [
            (
                |p| p.scenarios[0].flows[0].steps[0].request.method = "G T".into(),
                "method: \"G T\" is not an HTTP method",
            ),
            (|p| p.scenarios[0].flows[0].steps[0].request.path = Template::text("x"), "path: it must begin with \"/\""),
            (
                |p| p.scenarios[0].flows[0].steps[0].request.host = "a\r\nb".into(),
                "header Host: control character in \"a\\r\\nb\"",
            ),
            (
                |p| p.scenarios[0].flows[0].steps[0].request.headers.push(("a b".into(), Template::default())),
                "headers: \"a b\" is not a header name",
            ),
            (
                |p| p.scenarios[0].flows[0].steps[0].request.body = Some(template([field(0, 0)])),
                "body: data source 0 does not exist",
            ),
            (
                |p| {
                    p.data.push(rows(&[&["x"]], Pick::Random));
                    p.scenarios[0].flows[0].steps[0].request.body = Some(template([field(0, 1)]));
                },
                "body: column 1 of data source owner does not exist",
            ),
        ];
        for (change, expected) in cases {
            let mut plan = constant_plan();
            change(&mut plan);
            assert_eq!(compiled(&plan).unwrap_err(), format!("load plan: scenario a: {expected}"));
        }
    }

    proptest! {
        #[test]
        fn no_value_can_add_a_header_or_break_the_request_line(value in any::<String>(), n: i64) {
            let mut plan = constant_plan();
            plan.data = vec![
                rows(&[&[&value]], Pick::Random),
                DataSource { name: "n".into(), values: DataValues::Integers { from: n, to: n } },
            ];
            let request = &mut plan.scenarios[0].flows[0].steps[0].request;
            request.path = template([text("/"), field(0, 0)]);
            request.headers.push(("X-A".into(), template([field(0, 0)])));
            request.headers.push(("X-N".into(), template([field(1, 0)])));
            request.body = Some(template([field(0, 0)]));
            let out = rendered(&plan);
            let (head, body) = out.split_once("\r\n\r\n").unwrap();
            prop_assert_eq!(body, &value);
            prop_assert_eq!(head.split("\r\n").count(), 7);
            prop_assert_eq!(head.lines().next().unwrap().split(' ').count(), 3);
            let (n, length) = (format!("X-N: {n}\r\n"), format!("Content-Length: {}", value.len()));
            prop_assert!(head.contains(&n) && head.ends_with(&length));
        }
    }
}
