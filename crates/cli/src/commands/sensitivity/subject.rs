//! The subject of an analysis: a demo by its name, or an experiment file.

use std::path::Path;

use narrows_lab::experiment::{Experiment, Variant};

use super::Arguments;
use crate::exit::Failure;

/// An experiment and how it runs.
pub(super) struct Subject {
    pub(super) experiment: Experiment,
    /// The variants to run; all when empty.
    pub(super) variants: Vec<String>,
    pub(super) repetitions: u32,
    pub(super) time_scale: f64,
    #[cfg(feature = "reference-systems")]
    _folder: Option<crate::commands::demo::Folder>,
}

impl Subject {
    /// Whether a variant runs.
    pub(super) fn has(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }

    /// The variants that run, of this experiment or of one with other values.
    pub(super) fn variants_of<'a>(&'a self, experiment: &'a Experiment) -> impl Iterator<Item = &'a Variant> {
        experiment.variants.iter().filter(|variant| self.has(&variant.name))
    }
}

/// The experiments that are named.
pub(super) fn subjects(arguments: &Arguments) -> Result<Vec<Subject>, Failure> {
    let names = &arguments.experiments;
    // Secrets of one file are unknown in another.
    if names.iter().filter(|name| is_file(name)).count() > 1 {
        return Err(Failure::new("expected one experiment file at most, beside demos"));
    }
    if let Some((_, twice)) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(Failure::new(format!("`{twice}` is named twice")));
    }
    names.iter().map(|name| subject(name, arguments)).collect()
}

fn is_file(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml") || Path::new(name).is_file()
}

fn subject(name: &str, arguments: &Arguments) -> Result<Subject, Failure> {
    if is_file(name) {
        return Ok(Subject {
            experiment: crate::commands::read_experiment(Path::new(name))?,
            variants: Vec::new(),
            repetitions: arguments.repeat.unwrap_or(1),
            time_scale: arguments.time_scale.unwrap_or(1.0),
            #[cfg(feature = "reference-systems")]
            _folder: None,
        });
    }
    demo(name, arguments)
}

#[cfg(feature = "reference-systems")]
fn demo(name: &str, arguments: &Arguments) -> Result<Subject, Failure> {
    use crate::commands::demo;
    let demo = demo::find(name)?;
    let length = if arguments.full { &demo.full } else { &demo.short };
    let (experiment, folder) = demo::read(demo)?;
    Ok(Subject {
        variants: demo::chosen(&[], demo, length, &experiment),
        experiment,
        repetitions: arguments.repeat.unwrap_or(length.repetitions),
        time_scale: arguments.time_scale.unwrap_or(length.time_scale),
        _folder: Some(folder),
    })
}

#[cfg(not(feature = "reference-systems"))]
fn demo(name: &str, _: &Arguments) -> Result<Subject, Failure> {
    Err(Failure::new(format!("no experiment file {name}")))
}
