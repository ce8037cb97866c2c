//! CPU of a request under a load that was not measured.
//!
//! Levels of different loads tell how CPU depends on the load (`demands.rs`), and so does another trial of the run that puts another
//! load on the same programs (`other_load.rs`). One level does not: with more requests under way a process handles more of them each
//! time that it runs, so that each needs less CPU, as far as its program works that way.

use super::System;

/// Powers of the requests per second in a process with which its CPU for a request changes. Of 30 recordings of the zoo whose
/// heaviest load completes at least a quarter more than the lightest, four in five lie between, the median at −0.2: programs
/// from a to m, without those whose virtual machine compiles meanwhile.
const POWERS: [f64; 2] = [-0.7, 0.1];
/// Median of these powers.
const LIKELY_POWER: f64 = -0.2;
/// Powers with which CPU differs from a straight line through two lighter loads: eight of ten recordings of these programs, without
/// those whose virtual machine compiles meanwhile.
const POWERS_BESIDE_LINE: [f64; 2] = [-0.35, 0.15];
/// Median of these powers.
const LIKELY_POWER_BESIDE_LINE: f64 = -0.1;

/// Load of the programs of a system with a change, as a multiple of that without.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadGrowth {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Requests that are in CPU or wait for it.
    pub(crate) under_way: f64,
}

impl LoadGrowth {
    /// Growth that both show. CPU was measured where both grow: a shorter queue alone makes no request dearer, and a higher rate
    /// alone none cheaper.
    fn of_both(self) -> f64 {
        let Self { rate, under_way } = self;
        if rate > 1.0 { rate.min(under_way).max(1.0) } else { rate.max(under_way).min(1.0) }
    }
}

/// How CPU of a request depends on the load: with a power of the load of a process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadedCpu {
    power: f64,
}

impl LoadedCpu {
    /// The most likely one; `None` with several levels, which tell it, and with one user, whose requests meet no other.
    pub(crate) fn likely(system: &System) -> Option<Self> {
        let is_unknown = system.levels.len() == 1 && !system.is_one_user();
        let power = if system.other_load.is_some() { LIKELY_POWER_BESIDE_LINE } else { LIKELY_POWER };
        is_unknown.then_some(Self { power })
    }

    /// Both ends of the interval; empty where nothing is unknown.
    pub(crate) fn ends(system: &System) -> Vec<Self> {
        let powers = if system.other_load.is_some() { POWERS_BESIDE_LINE } else { POWERS };
        let ends = powers.iter().map(|power| Self { power: *power }).collect();
        Self::likely(system).map_or_else(Vec::new, |_| ends)
    }

    /// Gives a changed system the CPU of so much more load. Replicas that were added share it.
    pub(crate) fn apply(self, growth: LoadGrowth, before: &System, changed: &mut System) {
        let growth = growth.of_both();
        let services_s: f64 = changed.programs.iter().map(|program| program.demand_s).sum();
        let generator_s = changed.machine_s - services_s;
        for program in changed.programs.clone() {
            let Some(old) = before.program(&program.service) else { continue };
            let processes = f64::from(old.replicas) / f64::from(program.replicas.max(1));
            changed.scale_cpu(&program.service, (growth * processes).powf(self.power));
        }
        changed.machine_s += generator_s * (growth.powf(self.power) - 1.0);
    }
}

#[cfg(test)]
mod tests {
    use narrows_testkit::simulator;

    use super::*;
    use crate::DiagnosedTrial;

    fn read(steps: &[(u32, u32)]) -> System {
        let trial = simulator::System { steps: steps.to_vec(), ..simulator::System::default() }.run("a");
        System::read(&DiagnosedTrial::new(&trial, &[])).expect("a system")
    }

    #[test]
    fn several_levels_and_one_user_tell_cpu() {
        let ends = |system: &System| LoadedCpu::ends(system).len();
        assert_eq!(ends(&read(&[(4, 15)])), 2);
        assert_eq!(ends(&read(&[(2, 15), (4, 15)])), 0);
        assert_eq!(ends(&read(&[(1, 15)])), 0);
    }

    #[test]
    fn load_grows_as_far_as_rate_and_requests_under_way_do() {
        let growth = |rate, under_way| LoadGrowth { rate, under_way }.of_both();
        assert_eq!([growth(4.0, 3.0), growth(1.5, 0.1), growth(0.5, 0.2), growth(0.8, 1.2)], [3.0, 1.0, 0.5, 1.0]);
        assert_eq!(growth(2.0, f64::NAN), 2.0, "no program is in both systems");
    }

    #[test]
    fn cpu_follows_the_load_of_each_process() {
        let before = read(&[(4, 15)]);
        let cpu = LoadedCpu { power: -0.5 };
        let mut changed = before.clone();
        cpu.apply(LoadGrowth { rate: 4.0, under_way: 4.0 }, &before, &mut changed);
        assert!((changed.machine_s - before.machine_s / 2.0).abs() < 1e-12, "{changed:?}");
        let mut more = before.clone();
        more.programs.iter_mut().for_each(|program| program.replicas *= 4);
        let of_services = |system: &System| system.programs.iter().map(|program| program.demand_s).sum::<f64>();
        cpu.apply(LoadGrowth { rate: 4.0, under_way: 4.0 }, &before, &mut more);
        assert!((of_services(&more) - of_services(&before)).abs() < 1e-12, "each replica has the load of one before");
    }
}
