//! An experiment as a run file keeps it: the parts of its text that conclusions need.

use narrows_diagnose::thresholds::Thresholds;
use narrows_model::published::Notes;

use super::error::Report;
use super::grammar::{LOAD, OBJECTIVES};
use super::load::CLIENT_ADDRESSES;
use super::objective::{self, Objective};
use super::tree::{self, At};
use super::{addresses, published, thresholds};

/// What conclusions need of an experiment. As far as it can be read: a run file may come from elsewhere, and the data
/// files of its experiment need not be here.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Its objectives, in order.
    pub objectives: Vec<Objective>,
    /// The thresholds that it sets, and the usual ones for the rest.
    pub thresholds: Thresholds,
    /// Parameters with reasons, and published figures.
    pub notes: Notes,
    /// How many different addresses its load connects from: one when it names none; none when it cannot be told from the
    /// text alone.
    pub client_addresses: Option<u32>,
}

impl Recorded {
    /// Reads the text that a run file keeps.
    pub fn read(source: &str) -> Self {
        let Some(root) = tree::parse(source, &mut Report::new("")) else { return Self::default() };
        let root = At::root(&root);
        let objectives = root.get(&OBJECTIVES);
        Self {
            objectives: objectives.iter().flat_map(At::items).filter_map(objective::read).collect(),
            thresholds: thresholds::thresholds(root),
            notes: published::notes(root),
            client_addresses: client_addresses(root),
        }
    }
}

fn client_addresses(root: At<'_>) -> Option<u32> {
    let load = root.get(&LOAD)?;
    let Some(at) = load.get(&CLIENT_ADDRESSES) else { return Some(1) };
    let addresses = addresses::expand(at, None, &mut Report::new(""))?;
    u32::try_from(addresses.len()).ok().filter(|count| *count > 0)
}
