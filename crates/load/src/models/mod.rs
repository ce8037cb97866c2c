//! Load models: how many virtual users or arrivals, when. One file per model, each of them pure arithmetic.
//!
//! A model knows neither clocks nor connections; it describes a moment, given as the time since the model began.
//! Registering one is a `mod` line and an arm in [`build`].

use std::time::Duration;

use narrows_model::load::{Arrivals, Iterations, LoadModel};

use crate::arrivals::RateCurve;
use crate::check::{RATE_MAX, RATE_MIN};
use crate::windows::PlannedWindow;

mod constant_arrival_rate;
mod constant_vus;
mod iterations;
mod ramping_arrival_rate;
mod ramping_vus;

/// Times at which iterations of an open model are due, whether or not a user is free.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenLoad {
    /// Over the model's time.
    pub(crate) curve: RateCurve,
    pub(crate) arrivals: Arrivals,
}

/// Result of a load model. Times are since the model began, after the warm-up.
pub(crate) trait Model: Send + Sync {
    /// Error of its values, as a clause; `None` if they make a load.
    fn error(&self) -> Option<String> {
        None
    }

    /// How long it lasts; `None` if only its iterations limit it.
    fn duration(&self) -> Option<Duration>;

    /// Virtual users that may be at work at `t`, never above [`Model::vus_max`]. What is said of times past the duration
    /// carries no meaning.
    fn vus_at(&self, t: Duration) -> u32;

    /// The fewest users that [`Model::vus_max`] may be.
    fn vus_min(&self) -> u32 {
        1
    }

    /// The most users at any time.
    fn vus_max(&self) -> u32;

    /// Number of iterations to begin; `None` if nothing but time limits them.
    fn iterations(&self) -> Option<Iterations> {
        None
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
        LoadModel::Iterations { vus, iterations, max_duration } => {
            Box::new(iterations::IterationModel { vus: *vus, iterations: *iterations, max_duration: *max_duration })
        }
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
    }
}

/// Error of a list of stages.
fn stages_error<T>(stages: &[T]) -> Option<String> {
    stages.is_empty().then(|| "at least one stage is required".into())
}

/// Error of a rate of arrivals.
fn rate_error(rate: f64) -> Option<String> {
    (!(RATE_MIN..=RATE_MAX).contains(&rate))
        .then(|| format!("{rate} iterations per second, expected {RATE_MIN} to {RATE_MAX}"))
}
