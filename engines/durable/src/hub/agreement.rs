//! Agreement of partitions on the messages that went from one to another.
//!
//! A message leaves its sender, and its acknowledgement its receiver, only after a frame of theirs is durable. So when a
//! hub is opened, no partition knows of more than the other one remembers, unless that has lost the end of its log. It
//! would then give the same numbers again to other messages, which the receiver would pass over.

use crate::ids::PartitionId;
use crate::partition::LaneProgress;
use crate::store::{Location, StoreError};

/// Checks that no partition knows of more than the other one remembers. `of[a][b]` is the progress between `a` and `b`, as
/// `a` knows it.
pub(crate) fn check(of: &[Vec<LaneProgress>]) -> Result<(), StoreError> {
    for (a, ours) in of.iter().enumerate() {
        for (b, own) in ours.iter().enumerate() {
            let other = of[b][a];
            if other.taken > own.sent {
                let what =
                    format!("it has sent {} messages to partition {b}, which has taken {}", own.sent, other.taken);
                return Err(lost(a, what));
            }
            if own.arrived > other.taken {
                let what = format!(
                    "it has taken {} messages of partition {a}, to which it has confirmed {}",
                    other.taken, own.arrived
                );
                return Err(lost(b, what));
            }
        }
    }
    Ok(())
}

fn lost(partition: usize, what: String) -> StoreError {
    let partition = PartitionId(u16::try_from(partition).unwrap_or(u16::MAX));
    StoreError::Damaged { place: Location::Log { partition }, what: format!("{what}: the end of the log is lost") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_lost_what_another_knows_of_is_named() {
        let progress = |sent, arrived, taken| LaneProgress { sent, arrived, taken };
        let none = progress(0, 0, 0);
        assert!(check(&[vec![none, progress(5, 3, 0)], vec![progress(0, 0, 4), none]]).is_ok());
        let error = check(&[vec![none, progress(3, 0, 0)], vec![progress(0, 0, 4), none]]).expect_err("it lost one");
        let text = "the log of partition 0 is damaged: it has sent 3 messages to partition 1, which has taken 4";
        assert!(error.to_string().starts_with(text), "{error}");
        let error = check(&[vec![none, progress(5, 5, 0)], vec![progress(0, 0, 4), none]]).expect_err("it lost one");
        let text = "the log of partition 1 is damaged: it has taken 4 messages of partition 0";
        assert!(error.to_string().starts_with(text), "{error}");
    }
}
