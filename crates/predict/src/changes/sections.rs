//! Sections that a change names: shared by the changes to limits, locks and what is held.

use narrows_model::prediction::{Change, ResourceKind};

use super::Scene;
use crate::Cannot;
use crate::recognition::{ReadTrial, is_same_work};
use crate::system::{Section, System};

/// The sections of a service or a store.
pub(super) fn sections<'s>(target: &str, scene: &'s Scene<'s>) -> Result<Vec<&'s Section>, Cannot> {
    let found = places(scene.system, target);
    if found.is_empty() {
        let named = scene.system.sections.iter().filter(|section| section.kind != ResourceKind::Unexplained);
        let mut known: Vec<String> = named.map(|section| section.name.clone()).collect();
        known.dedup();
        return Err(Cannot::NoSection { place: target.to_owned(), known });
    }
    Ok(found.into_iter().map(|at| &scene.system.sections[at]).collect())
}

/// Time of a request in the longest of these sections, seconds.
pub(super) fn held_s(sections: &[&Section]) -> f64 {
    sections.iter().map(|section| section.held_s).fold(0.0, f64::max)
}

/// Changes the sections of a service or a store.
pub(super) fn each_section(system: &mut System, target: &str, change: impl Fn(&mut Section)) {
    places(system, target).into_iter().for_each(|at| change(&mut system.sections[at]));
}

/// Removes the sections of a service or a store.
pub(super) fn remove_sections(system: &mut System, target: &str) {
    places(system, target).into_iter().rev().for_each(|at| drop(system.sections.remove(at)));
}

/// Places of the sections of a service or a store among those of a system; of a service that has none, of the limit that
/// nothing explains.
fn places(system: &System, target: &str) -> Vec<usize> {
    let of = |is_meant: &dyn Fn(&Section) -> bool| {
        let sections = system.sections.iter().enumerate();
        sections.filter(|(_, section)| is_meant(section)).map(|(at, _)| at).collect::<Vec<_>>()
    };
    let own = of(&|section| section.name == target);
    if own.is_empty() && system.program(target).is_some() {
        return of(&|section| section.kind == ResourceKind::Unexplained);
    }
    own
}

/// Whether a later trial no longer takes turns there, and yet does the same work for each request.
pub(super) fn is_gone(change: &Change, before: &ReadTrial<'_>, after: &ReadTrial<'_>) -> bool {
    !after.suggests(change) && is_same_work(before, after)
}
