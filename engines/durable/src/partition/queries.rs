//! Walks over the instances of a partition, in the order of acceptance.
//!
//! A walk looks at a bounded number of instances per turn and says where to go on, so that no question, however wide,
//! holds the partition up.

use crate::client::{Filter, InstanceView, Status, Summary};
use crate::error::Error;
use crate::partition::input::{RequestKind, Response, Values};
use crate::partition::table::Instance;
use crate::partition::view::InstanceReader;

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

impl InstanceReader<'_> {
    /// Responds to a query. A request that would change something is not a query, and is left undone.
    pub(super) fn respond(&self, kind: &RequestKind) -> Result<Response, Error> {
        match kind {
            RequestKind::Get(id) => {
                let view = self.table.handle(id).map(|handle| self.view(handle, Values::With)).transpose()?;
                Ok(Response::View(view.map(Box::new)))
            }
            RequestKind::History(id) => {
                self.table.handle(id).map_or(Ok(None), |handle| self.events(handle)).map(Response::Events)
            }
            RequestKind::State(id) => {
                let instance = self.table.handle(id.instance()).map(|handle| self.table.known(handle));
                Ok(Response::State(instance.and_then(|instance| instance.entity()?.state.clone())))
            }
            RequestKind::Query { filter, limit, values, from } => {
                self.query(filter, *limit, *values, *from).map(|(views, next)| Response::Page(views, next))
            }
            RequestKind::Summary(filter, from) => {
                let (summary, next) = self.summary(filter, *from);
                Ok(Response::Summary(summary, next))
            }
            _ => Ok(Response::Done),
        }
    }

    fn query(
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

    fn summary(&self, filter: &Filter, from: u64) -> (Summary, Option<u64>) {
        let mut summary = Summary::default();
        for (looks, (handle, instance)) in self.table.from(from).enumerate() {
            if looks == LOOKED_AT_MAX {
                return (summary, Some(handle));
            }
            if filter.passes(instance) {
                summary = summary.with(Summary { count: 1, period: Some((instance.created, instance.updated)) });
            }
        }
        (summary, None)
    }
}
