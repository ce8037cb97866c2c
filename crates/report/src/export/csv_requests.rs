//! The sampled requests as comma-separated values, one record each.
//!
//! They are a sample: `weight` is how many requests of its second each one stands for.

use std::fmt::Write;

use narrows_model::load::{ErrorKind, Sample};
use narrows_model::trace::hex;

use super::csv_field;

const HEADER: &str = "intended_ns,sent_ns,done_ns,latency_ns,service_ns,scenario,request,vu,status,error,bytes,weight,\
                      trace_id,agent\n";

/// The table with its header. Instants are nanoseconds since the Unix epoch; `latency_ns` counts from the intended send,
/// `service_ns` from the actual one. `status` is 0 without a response. `error`, `trace_id` and `agent` are empty
/// when there is none.
pub fn csv_requests(samples: &[Sample]) -> String {
    let mut out = HEADER.to_owned();
    for sample in samples {
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            sample.intended_ns,
            sample.sent_ns,
            sample.done_ns,
            sample.done_ns.saturating_sub(sample.intended_ns),
            sample.done_ns.saturating_sub(sample.sent_ns),
            csv_field(&sample.scenario),
            csv_field(&sample.request),
            sample.vu,
            sample.status,
            sample.error.map_or("", ErrorKind::as_str),
            sample.bytes,
            sample.weight,
            sample.trace_id.map_or_else(String::new, |id| hex(&id)),
            sample.agent.as_deref().map_or_else(String::new, csv_field)
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVIL, START_NS, records};
    use super::*;

    #[test]
    fn every_sample_reads_back() {
        let sample = Sample {
            scenario: "shop".into(),
            request: EVIL.into(),
            vu: 7,
            agent: Some("north".into()),
            intended_ns: START_NS,
            sent_ns: START_NS + 1_000,
            done_ns: START_NS + 5_000,
            status: 200,
            error: Some(ErrorKind::Check),
            bytes: 99,
            trace_id: Some([0xab; 16]),
            weight: 2.5,
        };
        let plain = Sample { error: None, trace_id: None, agent: None, weight: 1.0, ..sample.clone() };
        let records = records(&csv_requests(&[sample, plain]));
        let expected = ["5000", "4000", "shop", EVIL, "7", "200", "check", "99", "2.5", &"ab".repeat(16), "north"];
        assert_eq!(records[1][3..], expected);
        assert_eq!((records[1][0].as_str(), records[0].len()), (START_NS.to_string().as_str(), 14));
        assert_eq!((records[2][9].as_str(), records[2][11].as_str(), records[2][12].as_str()), ("", "1", ""));
        assert_eq!(super::super::testing::records(&csv_requests(&[])).len(), 1);
    }
}
