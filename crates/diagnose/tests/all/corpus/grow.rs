//! From nodes to spans with times: one trace of a request, with its own lengths, counts and ids.
//!
//! A span lasts as long as what it waits for, and then `takes` for its own work. So a tree cannot contradict itself:
//! what is serial in it is serial in time. Time that is to make up the latency of a load step is written `fill`.

use std::collections::BTreeMap;

use narrows_model::trace::SpanKind;
use narrows_testkit::random::Random;
use narrows_testkit::spans::{self, SpanBuilder};

use super::tree::{At, Block, Count, Node, SpanNode, Term, Time};

/// Spans of one trace.
const SPANS_MAX: u32 = 20_000;
/// Default own time of a span with children, milliseconds.
const OWN_MS: f64 = 0.1;

/// Input shared by all traces of a load step.
pub(crate) struct Soil<'a> {
    pub(crate) variables: &'a BTreeMap<String, f64>,
    /// Port of each service of the case.
    pub(crate) ports: &'a BTreeMap<String, u16>,
    /// Spread of lengths, as a share to either side.
    pub(crate) jitter: f64,
    /// Mean length of each `fill`, milliseconds.
    pub(crate) fill_ms: f64,
}

/// A grown trace.
pub(crate) struct Grown {
    pub(crate) root: SpanBuilder,
    pub(crate) length_ms: f64,
    /// Number of fills in the trace.
    pub(crate) fills: u32,
}

struct Growth<'a> {
    soil: &'a Soil<'a>,
    random: &'a mut Random,
    number: u32,
    /// Of the repetitions around, the innermost last.
    indices: Vec<u32>,
    fills: u32,
    spans: u32,
}

/// Grows one trace; `number` stands for `{t}`.
///
/// # Errors
/// Fault of the tree.
pub(crate) fn grow(nodes: &[Node], soil: &Soil<'_>, random: &mut Random, number: u32) -> Result<Grown, String> {
    let mut growth = Growth { soil, random, number, indices: Vec::new(), fills: 0, spans: 0 };
    let laid = growth.lay(nodes, 0.0, 0.0)?;
    let length_ms = laid.end;
    let mut roots = laid.spans;
    if roots.len() != 1 {
        return Err(format!("the tree has {} roots, expected one", roots.len()));
    }
    Ok(Grown { root: roots.remove(0), length_ms, fills: growth.fills })
}

struct Laid {
    spans: Vec<SpanBuilder>,
    /// When all that is waited for has ended.
    end: f64,
}

impl Growth<'_> {
    /// Lays siblings out from `start`; `skew` is how wrong the clock is that writes their times.
    fn lay(&mut self, nodes: &[Node], start: f64, skew: f64) -> Result<Laid, String> {
        let (mut laid, mut cursor) = (Laid { spans: Vec::new(), end: start }, start);
        for node in nodes {
            match node {
                Node::Span(span) => {
                    let begin = match &span.at {
                        At::After(time) => cursor + self.length(time)?,
                        At::Offset(time) => start + self.length(time)?,
                    };
                    let (builder, end) = self.span(span, begin, skew)?;
                    laid.spans.push(builder);
                    if span.words.iter().any(|word| word == "detached") {
                        continue;
                    }
                    if matches!(span.at, At::After(_)) {
                        cursor = end;
                    }
                    laid.end = laid.end.max(end);
                }
                Node::Pause(time) => {
                    cursor += self.length(time)?;
                    laid.end = laid.end.max(cursor);
                }
                Node::Block(block, children) => {
                    let inner = self.block(block, children, cursor, skew)?;
                    laid.spans.extend(inner.spans);
                    cursor = inner.end;
                    laid.end = laid.end.max(cursor);
                }
            }
        }
        Ok(laid)
    }

    fn block(&mut self, block: &Block, children: &[Node], start: f64, skew: f64) -> Result<Laid, String> {
        let mut laid = Laid { spans: Vec::new(), end: start };
        match block {
            Block::Repeat(count, every) => {
                let mut begin = start;
                for index in 0..self.count(count)? {
                    self.indices.push(index);
                    let inner = self.lay(children, begin, skew);
                    self.indices.pop();
                    let inner = inner?;
                    laid.spans.extend(inner.spans);
                    laid.end = laid.end.max(inner.end);
                    begin = match every {
                        Some(time) => begin + self.length(time)?,
                        None => inner.end,
                    };
                }
            }
            Block::Parallel => {
                for child in children {
                    let inner = self.lay(std::slice::from_ref(child), start, skew)?;
                    laid.spans.extend(inner.spans);
                    laid.end = laid.end.max(inner.end);
                }
            }
            Block::Chance(chance) => {
                let chance = self.sum(chance)?.0;
                if self.random.unit() < chance {
                    return self.lay(children, start, skew);
                }
            }
        }
        Ok(laid)
    }

    fn span(&mut self, node: &SpanNode, start: f64, skew: f64) -> Result<(SpanBuilder, f64), String> {
        self.spans += 1;
        if self.spans > SPANS_MAX {
            return Err(format!("a trace of more than {SPANS_MAX} spans"));
        }
        let told = |why: String| format!("line {} of the tree: {why}", node.line);
        let mut span = self.begin(node).map_err(told)?;
        let mut takes = None;
        let mut skew = skew;
        for (key, value) in &node.attributes {
            let mut value = self.text(value);
            if value.starts_with('$') && key != "takes" {
                value = self.sum(&Time::parse(&value).map_err(told)?)?.0.to_string();
            }
            match key.as_str() {
                "takes" => takes = Some(self.length(&Time::parse(&value).map_err(told)?)?),
                "skew" => skew += value.parse::<f64>().map_err(|e| told(format!("skew: {e}")))?,
                "to" => span = self.called(span, &value),
                _ => span = attribute(span, key, &value).map_err(told)?,
            }
        }
        let laid = self.lay(&node.children, start, skew)?;
        let own = takes.unwrap_or(if node.children.is_empty() { 1.0 } else { OWN_MS });
        let end = laid.end + own;
        Ok((span.at(start + skew, end - start).children(laid.spans), end))
    }

    /// The span as its kind and words say.
    fn begin(&mut self, node: &SpanNode) -> Result<SpanBuilder, String> {
        let words: Vec<String> = node.words.iter().map(|word| self.text(word)).collect();
        let flags = ["failed", "throttled", "detached"];
        let (flags, words): (Vec<&str>, Vec<&str>) = words.iter().map(String::as_str).partition(|w| flags.contains(w));
        let mut span = match (node.kind.as_str(), words.as_slice()) {
            ("server", [service, name]) => spans::server(service, name),
            ("consumer", [service, name]) => SpanBuilder::of_kind(SpanKind::Consumer, name).service(service),
            ("client", [name]) => spans::client(name),
            ("internal", [name]) => spans::internal(name),
            ("producer", [name]) => SpanBuilder::of_kind(SpanKind::Producer, name),
            ("query", [text]) => spans::query(text),
            ("database", [name]) => spans::database(name),
            ("document", [text]) => {
                let mut span = spans::document_query(text, "");
                span = span.facts(|facts| facts.db_partition = None);
                span
            }
            ("http", [method, to, path]) => self.http(method, to, path),
            ("rpc", [to, call]) => {
                let (service, method) = call.split_once('/').ok_or(format!("`{call}`, expected `Service/Method`"))?;
                let span = spans::client(call).remote(service, method).scope("grpc.client");
                self.called(span, to)
            }
            (kind, words) => return Err(format!("`{kind}` with {} words is no span", words.len())),
        };
        if flags.contains(&"throttled") {
            span = span.facts(|facts| facts.error_type = Some("429".into())).throttled(None);
        }
        if flags.contains(&"failed") {
            span = span.failed();
        }
        Ok(span)
    }

    fn http(&mut self, method: &str, to: &str, path: &str) -> SpanBuilder {
        let (address, port) = self.address(to);
        let span = spans::client(method).url(&format!("http://{address}:{port}{path}")).scope("http.client");
        let span = span.facts(|facts| {
            facts.http_method = Some(method.into());
            facts.http_status = Some(200);
        });
        self.called(span, to)
    }

    fn called(&self, span: SpanBuilder, to: &str) -> SpanBuilder {
        let (address, port) = self.address(to);
        span.facts(|facts| {
            facts.server_address = Some(address);
            facts.server_port = Some(port);
        })
    }

    /// Address of a service of the case, or of a host elsewhere.
    fn address(&self, to: &str) -> (String, u16) {
        match self.soil.ports.get(to) {
            Some(port) => ("127.0.0.1".into(), *port),
            None => (to.into(), 443),
        }
    }

    /// A length with its jitter; never negative.
    fn length(&mut self, time: &Time) -> Result<f64, String> {
        let (sum, fills) = self.sum(time)?;
        let spread = if time.is_exact { 0.0 } else { self.soil.jitter };
        self.fills += fills;
        let fill = if fills > 0 { self.random.around(self.soil.fill_ms * f64::from(fills), 0.5) } else { 0.0 };
        Ok((self.random.around(sum, spread) + fill).max(0.0))
    }

    fn count(&mut self, count: &Count) -> Result<u32, String> {
        let (from, to) = (self.sum(&count.from)?.0, self.sum(&count.to)?.0);
        let more = self.random.below((to - from).max(0.0) as u64 + 1);
        Ok((from.max(0.0) as u64 + more).min(u64::from(SPANS_MAX)) as u32)
    }

    fn sum(&self, time: &Time) -> Result<(f64, u32), String> {
        let (mut sum, mut fills) = (0.0, 0);
        for term in &time.terms {
            match term {
                Term::Fixed(ms) => sum += ms,
                Term::Fill => fills += 1,
                Term::Variable(name, factor) => {
                    let value = self.soil.variables.get(name);
                    sum += factor * value.ok_or(format!("`${name}` is not set in this step"))?;
                }
            }
        }
        Ok((sum, fills))
    }

    /// A text with its placeholders: `{i}` innermost index, `{j}` the one around, `{t}` trace, `{r}` any number; `{i:4}`
    /// is the remainder by 4, `{hit:4}` is 1 in one of four repetitions, another one in each trace, and else 0.
    fn text(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let inner = after.split_once('}').and_then(|(inside, after)| Some((self.placeholder(inside)?, after)));
            match inner {
                Some((value, after)) => {
                    out.push_str(&value.to_string());
                    rest = after;
                }
                None => {
                    out.push('{');
                    rest = after;
                }
            }
        }
        out + rest
    }

    fn placeholder(&mut self, inside: &str) -> Option<u64> {
        let (name, modulus) = inside.split_once(':').unwrap_or((inside, "1000000"));
        let modulus: u64 = modulus.parse().ok().filter(|modulus| *modulus > 0)?;
        let index = |back: usize| self.indices.iter().rev().nth(back).map(|index| u64::from(*index));
        let value = match name {
            "i" => index(0)?,
            "j" => index(1)?,
            "t" => u64::from(self.number),
            "r" => self.random.bits(),
            "hit" => u64::from(index(0)? == u64::from(self.number) % modulus),
            _ => return None,
        };
        Some(value % modulus)
    }
}

fn attribute(span: SpanBuilder, key: &str, value: &str) -> Result<SpanBuilder, String> {
    let number = || value.parse::<f64>().map_err(|error| format!("{key}={value}: {error}"));
    let text = || Some(value.to_owned());
    Ok(match key {
        "service" => span.service(value),
        "scope" => span.scope(value),
        "name" => span.named(value),
        "rows" => span.rows(number()? as u64),
        "charge" => span.charge(number()?),
        "partition" => span.partition(value),
        "retry_after" => {
            let ns = (number()? * 1e6) as u64;
            span.facts(|facts| facts.retry_after_ns = Some(ns))
        }
        "resend" => span.resent(number()? as u32),
        "batch" => {
            let size = number()? as u32;
            span.facts(|facts| facts.batch_size = Some(size))
        }
        "status" => {
            let status = number()? as u16;
            let span = span.facts(|facts| facts.http_status = Some(status));
            if status >= 500 { span.failed() } else { span }
        }
        "sub_status" => {
            let status = number()? as u32;
            span.facts(|facts| facts.db_sub_status = Some(status))
        }
        "port" => span.to_port(number()? as u16),
        "db_status" => span.facts(|facts| facts.db_status = text()),
        "system" => span.facts(|facts| facts.db_system = text()),
        "sql" => span.facts(|facts| facts.db_query = text()),
        "operation" => span.facts(|facts| facts.db_operation = text()),
        "namespace" => span.facts(|facts| facts.db_namespace = text()),
        "collection" => span.facts(|facts| facts.db_collection = text()),
        "error" => span.facts(|facts| facts.error_type = text()).failed(),
        "url" => span.facts(|facts| facts.url = text()),
        "template" => span.facts(|facts| facts.url_template = text()),
        "peer" => span.facts(|facts| facts.peer_service = text()),
        "address" => span.facts(|facts| facts.server_address = text()),
        "messaging" => span.facts(|facts| facts.messaging_system = text()),
        "destination" => span.facts(|facts| facts.messaging_destination = text()),
        "messaging_operation" => span.facts(|facts| facts.messaging_operation = text()),
        "rpc_status" => span.facts(|facts| facts.rpc_status = text()),
        _ => match key.strip_prefix("attr.") {
            Some(key) => span.attribute(key, value),
            None => return Err(format!("`{key}` is no attribute of this language")),
        },
    })
}
