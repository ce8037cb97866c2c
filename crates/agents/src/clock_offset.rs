//! How far the clock of another machine is from this one's, from messages that go there and back.
//!
//! Of several exchanges the fastest is taken: its way there and its way back can differ the least (Mills 2010, RFC 5905,
//! sections 8 and 10: offset θ = ((t₁ − t₀) + (t₂ − t₃)) ÷ 2, and the filter that picks the sample of least delay).

use narrows_model::load::ClockOffset;

/// Times of one exchange, in Unix nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// When this machine asked, by its clock.
    pub(crate) asked_ns: i64,
    /// When the other one was asked, by its clock.
    pub(crate) received_ns: i64,
    /// When it responded, by its clock.
    pub(crate) responded_ns: i64,
    /// When the response came, by this clock.
    pub(crate) heard_ns: i64,
}

impl Exchange {
    fn offset(&self) -> ClockOffset {
        let there = self.received_ns.saturating_sub(self.asked_ns);
        let back = self.responded_ns.saturating_sub(self.heard_ns);
        let delay = (self.heard_ns - self.asked_ns) - (self.responded_ns - self.received_ns);
        // The mean without the sum, which may not fit.
        let offset_ns = there / 2 + back / 2 + (there % 2 + back % 2) / 2;
        ClockOffset { offset_ns, uncertainty_ns: (delay.max(0) + 1) / 2 }
    }
}

/// Offset of the fastest exchange; `None` without exchanges.
pub(crate) fn offset(exchanges: &[Exchange]) -> Option<ClockOffset> {
    exchanges.iter().map(Exchange::offset).min_by_key(|offset| offset.uncertainty_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            true_ns in -7_200_000_000_000i64..7_200_000_000_000,
            ways in proptest::collection::vec((1i64..5_000_000, 0i64..100_000, 1i64..5_000_000), 1..12),
        ) {
            let exchanges: Vec<Exchange> = ways.iter().map(|(there, work, back)| {
                let received_ns = 1_000 + there + true_ns;
                let heard_ns = 1_000 + there + work + back;
                Exchange { asked_ns: 1_000, received_ns, responded_ns: received_ns + work, heard_ns }
            }).collect();
            let found = offset(&exchanges).unwrap();
            prop_assert!((found.offset_ns - true_ns).abs() <= found.uncertainty_ns, "{found:?}");
            let fastest = ways.iter().map(|(there, _, back)| there + back).min().unwrap();
            prop_assert_eq!(found.uncertainty_ns, (fastest + 1) / 2);
        }
    }
}
