//! Load models: how many virtual users or arrivals, when. One file per model, each of them pure arithmetic.
//!
//! A model knows neither clocks nor connections; it describes a moment, given as the time since the model began.
//! Adding one is a file here, a `mod` line, an entry in [`ALL`] and an arm in [`build`].

use std::time::Duration;

use narrows_model::load::{Arrivals, LoadModel};

use crate::arrivals::RateCurve;
use crate::windows::PlannedWindow;

mod constant_arrival_rate;
mod constant_vus;
mod per_vu_iterations;
mod ramping_arrival_rate;
mod ramping_vus;
mod shared_iterations;

/// The ids of all load models, in k6's words: what an experiment file says after `model:`.
pub const ALL: [&str; 6] = [
    constant_arrival_rate::ID,
    constant_vus::ID,
    per_vu_iterations::ID,
    ramping_arrival_rate::ID,
    ramping_vus::ID,
    shared_iterations::ID,
];

/// Limits of a load model besides time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Iterations {
    /// Nothing.
    Unlimited,
    /// So many iterations, of all users together.
    Shared(u64),
    /// So many iterations of each user.
    PerUser(u64),
}

/// Times at which iterations of an open model are due, whether or not a user is free.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenLoad {
    /// Over the model's time.
    pub(crate) curve: RateCurve,
    pub(crate) arrivals: Arrivals,
}

/// Result of a load model. Times are since the model began, after the warm-up.
pub(crate) trait Model: Send + Sync {
    /// How long it lasts; none when only its iterations limit it.
    fn duration(&self) -> Option<Duration>;

    /// Virtual users that may be at work at `t`, never above [`Model::vus_max`]. What is said of times past the duration
    /// carries no meaning.
    fn vus_at(&self, t: Duration) -> u32;

    /// The most users at any time.
    fn vus_max(&self) -> u32;

    /// How many iterations there are to begin.
    fn iterations(&self) -> Iterations {
        Iterations::Unlimited
    }

    /// Times at which iterations are due; `None` for a closed model, whose users begin iterations of their own accord.
    fn open(&self) -> Option<OpenLoad> {
        None
    }

    /// How widely to spread the first sends of users who begin at the same moment and then send every `interval`,
    /// lest they send in step for ever.
    fn spread(&self, interval: Duration) -> Duration {
        interval
    }

    /// The intervals under one load, in order.
    fn windows(&self) -> Vec<PlannedWindow>;
}

/// The model of a scenario.
pub(crate) fn build(model: &LoadModel) -> Box<dyn Model> {
    match model {
        LoadModel::ConstantVus { vus, duration } => {
            Box::new(constant_vus::ConstantVus { vus: *vus, duration: *duration })
        }
        LoadModel::RampingVus { start_vus, stages } => {
            Box::new(ramping_vus::RampingVus { start_vus: *start_vus, stages: stages.clone() })
        }
        LoadModel::PerVuIterations { vus, iterations, max_duration } => Box::new(per_vu_iterations::PerVuIterations {
            vus: *vus,
            iterations: *iterations,
            max_duration: *max_duration,
        }),
        LoadModel::ConstantArrivalRate { rate, duration, vus_max, arrivals } => {
            Box::new(constant_arrival_rate::ConstantArrivalRate {
                rate: *rate,
                duration: *duration,
                vus_max: *vus_max,
                arrivals: *arrivals,
            })
        }
        LoadModel::RampingArrivalRate { start_rate, stages, vus_max, arrivals } => {
            Box::new(ramping_arrival_rate::RampingArrivalRate {
                start_rate: *start_rate,
                stages: stages.clone(),
                vus_max: *vus_max,
                arrivals: *arrivals,
            })
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
