//! The trace a request begins: W3C Trace Context (Recommendation, version 00), header `traceparent`.
//!
//! A trace id is the trial's tag of four bytes, which distinguishes its traces from others, and twelve random bytes.
//! A request that is not sampled still carries a trace, with flag `00`, so that services need not decide themselves.

use narrows_model::load::Tracing;
use narrows_model::trace::{SpanId, TraceId};

use crate::random::Random;

/// Length of a `traceparent`: `00-` 32 digits `-` 16 digits `-` 2 digits.
const TRACEPARENT_BYTES: usize = 55;

/// One request's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TraceContext {
    trace_id: TraceId,
    span_id: SpanId,
    sampled: bool,
}

impl TraceContext {
    /// A new trace, sampled with the plan's probability.
    pub(crate) fn draw(tracing: Tracing, random: &mut Random) -> Self {
        let mut trace_id = [0; 16];
        trace_id[..4].copy_from_slice(&tracing.tag);
        trace_id[4..12].copy_from_slice(&random.next_u64().to_be_bytes());
        let last = random.next_u64();
        trace_id[12..].copy_from_slice(&((last as u32) | 1).to_be_bytes());
        let span_id = (random.next_u64() | 1).to_be_bytes();
        Self { trace_id, span_id, sampled: random.unit() < tracing.sample }
    }

    /// The trace's id, when it is sampled.
    pub(crate) fn sampled_id(&self) -> Option<TraceId> {
        self.sampled.then_some(self.trace_id)
    }

    /// Appends the header's value.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut text = [b'-'; TRACEPARENT_BYTES];
        text[..2].copy_from_slice(b"00");
        hex(&self.trace_id, &mut text[3..35]);
        hex(&self.span_id, &mut text[36..52]);
        text[53..].copy_from_slice(if self.sampled { b"01" } else { b"00" });
        out.extend_from_slice(&text);
    }
}

fn hex(bytes: &[u8], out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(out.chunks_exact_mut(2)) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw_many(sample: f64, n: usize) -> Vec<TraceContext> {
        let mut random = Random::new(5, 0);
        let tracing = Tracing { sample, tag: [0xde, 0xad, 0xbe, 0xef] };
        (0..n).map(|_| TraceContext::draw(tracing, &mut random)).collect()
    }

    #[test]
    fn the_header_has_the_form_of_the_recommendation() {
        for trace in draw_many(0.5, 100) {
            let mut out = Vec::new();
            trace.write(&mut out);
            let text = String::from_utf8(out).unwrap();
            let parts: Vec<&str> = text.split('-').collect();
            assert_eq!(parts.iter().map(|p| p.len()).collect::<Vec<_>>(), [2, 32, 16, 2], "{text}");
            assert!(text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f' | '-')), "{text}");
            assert_eq!((parts[0], &parts[1][..8]), ("00", "deadbeef"));
            assert_eq!(parts[3], if trace.sampled { "01" } else { "00" });
            assert_eq!(
                trace.sampled_id().map(|id| narrows_model::trace::hex(&id)),
                trace.sampled.then(|| parts[1].into())
            );
        }
    }

    #[test]
    fn the_sampled_share_is_the_plans() {
        for (sample, expected) in [(0.0, 0..=0), (0.1, 900..=1_100), (1.0, 10_000..=10_000)] {
            let sampled = draw_many(sample, 10_000).iter().filter(|t| t.sampled).count();
            assert!(expected.contains(&sampled), "{sample}: {sampled}");
        }
    }

    #[test]
    fn ids_do_not_repeat() {
        let mut ids: Vec<_> = draw_many(1.0, 10_000).iter().map(|t| (t.trace_id, t.span_id)).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 10_000);
    }
}
