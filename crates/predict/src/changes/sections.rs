//! Sections that a change names: shared by the changes to limits, locks and what is held.

use narrows_model::prediction::Change;

use super::Scene;
use crate::Cannot;
use crate::recognition::{ReadTrial, is_same_work};
use crate::system::{Section, System};

/// The sections of a service or a store.
pub(super) fn sections<'s>(target: &str, scene: &'s Scene<'s>) -> Result<Vec<&'s Section>, Cannot> {
    let found: Vec<&Section> = scene.system.sections.iter().filter(|section| section.name == target).collect();
    if found.is_empty() { Err(Cannot::NoSection { place: target.to_owned() }) } else { Ok(found) }
}

/// Time of a request in the longest of these sections, seconds.
pub(super) fn held_s(sections: &[&Section]) -> f64 {
    sections.iter().map(|section| section.held_s).fold(0.0, f64::max)
}

/// Changes the sections of a service or a store.
pub(super) fn each_section(system: &mut System, target: &str, change: impl Fn(&mut Section)) {
    system.sections.iter_mut().filter(|section| section.name == target).for_each(change);
}

/// Whether a later trial no longer takes turns there, and yet does the same work for each request.
pub(super) fn is_gone(change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> bool {
    !after.suggests(change) && is_same_work(before, after)
}
