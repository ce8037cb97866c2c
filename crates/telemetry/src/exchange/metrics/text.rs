//! Prometheus' text exposition with times, as `promtool tsdb dump` and federation write it.

use super::{Mapping, kept};
use crate::exchange::formats::{Complaint, Records};
use crate::scrape::{is_sample as is_sample_line, read_text};

/// Lines that are read at once, in bytes.
const PART_BYTES: usize = 1 << 20;

pub(super) fn is_sample(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| is_sample_line(line.trim()))
}

pub(super) fn read(
    bytes: &[u8],
    mapping: &Mapping,
    take: &mut dyn FnMut(Records) -> Result<(), String>,
) -> Result<(), String> {
    let mut rest = bytes;
    let mut lines = 0_u64;
    while !rest.is_empty() {
        let end =
            rest.iter().skip(PART_BYTES).position(|byte| *byte == b'\n').map_or(rest.len(), |at| PART_BYTES + at + 1);
        let (part, after) = rest.split_at(end);
        let page = read_text(part, lines);
        lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
        let mut records = Records { malformed: page.malformed, over_limit: page.over_limit, ..Records::default() };
        records.complaint = page.complaint.map(|what| Complaint { place: String::new(), what });
        for (key, point) in page.points {
            if point.time_ns > 0 {
                records.points.push(kept(key, point, mapping));
            } else {
                records.malformed += 1;
                let what = "a sample has no time; a page shows one moment and no rates".to_owned();
                records.complaint.get_or_insert_with(|| Complaint { place: String::new(), what });
            }
        }
        take(records)?;
        rest = after;
    }
    Ok(())
}
