//! Load models: how many virtual users, when. One file per model, each of them pure arithmetic.
//!
//! A model knows neither clocks nor connections; it answers questions about a moment, given as the time since the
//! model began. Adding one is a file here, a `mod` line, an entry in [`ALL`] and an arm in [`of`].

use std::time::Duration;

use narrows_model::load::LoadModel;

use crate::windows::PlannedWindow;

mod constant_vus;
mod ramping_vus;
mod shared_iterations;

/// The ids of all load models, in k6's words: what an experiment file says after `model:`.
pub const ALL: [&str; 3] = [constant_vus::ID, ramping_vus::ID, shared_iterations::ID];

/// A load model's answers. Times are since the model began, after the warm-up.
pub(crate) trait Model: Send + Sync {
    /// How long it lasts; none when only its requests limit it.
    fn duration(&self) -> Option<Duration>;

    /// Virtual users that may send at `t`, never above [`Model::vus_max`]. What is said of times past the duration
    /// carries no meaning.
    fn vus_at(&self, t: Duration) -> u32;

    /// The most users at any time.
    fn vus_max(&self) -> u32;

    /// How many requests there are to send in all; none when only time limits it.
    fn iterations(&self) -> Option<u64> {
        None
    }

    /// How widely to spread the first sends of users who begin at the same moment and then send every `interval`,
    /// lest they send in step for ever.
    fn spread(&self, interval: Duration) -> Duration {
        interval
    }

    /// The stretches under one load, in order.
    fn windows(&self) -> Vec<PlannedWindow>;
}

/// The model of a scenario.
pub(crate) fn of(model: &LoadModel) -> Box<dyn Model> {
    match model {
        LoadModel::ConstantVus { vus, duration } => {
            Box::new(constant_vus::ConstantVus { vus: *vus, duration: *duration })
        }
        LoadModel::RampingVus { start_vus, stages } => {
            Box::new(ramping_vus::RampingVus { start_vus: *start_vus, stages: stages.clone() })
        }
        LoadModel::SharedIterations { vus, iterations, max_duration } => {
            Box::new(shared_iterations::SharedIterations {
                vus: *vus,
                iterations: *iterations,
                max_duration: *max_duration,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/models");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".rs", "").replace('_', "-"))
            .filter(|name| name != "mod")
            .collect();
        files.sort();
        assert_eq!(files, ALL);
    }
}
