//! Walks over the instances of a partition, in the order of acceptance.
//!
//! A walk looks at a bounded number of instances per turn and says where to go on, so that no question, however wide,
//! holds the partition up.

use crate::client::{Filter, InstanceView, Status};
use crate::error::Error;
use crate::partition::Partition;
use crate::partition::input::Values;
use crate::partition::table::Instance;

/// Instances that one question looks at before it says where to go on.
pub(super) const LOOKED_AT_MAX: usize = 20_000;

impl Filter {
    pub(super) fn passes(&self, instance: &Instance) -> bool {
        let status = instance.status();
        let wanted = if self.statuses.is_empty() { status != Status::Entity } else { self.statuses.contains(&status) };
        wanted
            && self.created_from.is_none_or(|from| instance.created >= from)
            && self.created_to.is_none_or(|to| instance.created < to)
            && instance.id.as_str().starts_with(&self.prefix)
    }
}

impl Partition {
    pub(super) fn query(
        &self,
        filter: &Filter,
        limit: usize,
        values: Values,
        from: u64,
    ) -> Result<(Vec<InstanceView>, Option<u64>), Error> {
        let mut views = Vec::new();
        for (looks, (handle, instance)) in self.table.from(from).enumerate() {
            if looks == LOOKED_AT_MAX || views.len() == limit {
                return Ok((views, Some(handle)));
            }
            if filter.passes(instance) {
                views.push(self.view(handle, values)?);
            }
        }
        Ok((views, None))
    }

    pub(super) fn count(&self, filter: &Filter, from: u64) -> (u64, Option<u64>) {
        let mut count = 0;
        for (looks, (handle, instance)) in self.table.from(from).enumerate() {
            if looks == LOOKED_AT_MAX {
                return (count, Some(handle));
            }
            count += u64::from(filter.passes(instance));
        }
        (count, None)
    }
}
