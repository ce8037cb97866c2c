//! CPU of a request under a load that was not measured.
//!
//! Levels of different loads tell how CPU depends on the load (`demands.rs`). One level does not: with more requests under way a
//! process handles more of them each time that it runs, so that each needs less CPU, as far as its program works that way.

use super::System;

/// Powers of the requests per second in a process with which its CPU for a request changes. Of 30 recordings of the zoo whose
/// heaviest load completes at least a quarter more than the lightest, four in five lie between, the median at −0.2: programs
/// from a to m, without those whose virtual machine compiles meanwhile.
const POWERS: [f64; 2] = [-0.7, 0.1];

/// How CPU of a request depends on the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadedCpu {
    /// Requests per second, as a multiple of those that were measured.
    growth: f64,
    power: f64,
}

impl LoadedCpu {
    /// Both ends of what it may be at this rate, in requests per second; empty with several levels, which tell it, and with one
    /// user, whose requests meet no other.
    pub(crate) fn unknown(system: &System, rate: f64) -> Vec<Self> {
        let growth = rate / system.levels[0].rate();
        let is_unknown = system.levels.len() == 1 && !system.is_one_user() && growth > 0.0 && growth.is_finite();
        let powers = if is_unknown { &POWERS[..] } else { &[] };
        powers.iter().map(|power| Self { growth, power: *power }).collect()
    }

    /// Gives a changed system the CPU under that load. Replicas that were added share it.
    pub(crate) fn apply(&self, before: &System, changed: &mut System) {
        let services_s: f64 = changed.programs.iter().map(|program| program.demand_s).sum();
        let generator_s = changed.machine_s - services_s;
        for program in changed.programs.clone() {
            let replicas = before.program(&program.service).map_or(program.replicas, |old| old.replicas);
            let of_process = self.growth * f64::from(replicas) / f64::from(program.replicas.max(1));
            changed.scale_cpu(&program.service, of_process.powf(self.power));
        }
        changed.machine_s += generator_s * (self.growth.powf(self.power) - 1.0);
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
        let twice = |system: &System| LoadedCpu::unknown(system, 2.0 * system.levels[0].rate()).len();
        assert_eq!(twice(&read(&[(4, 15)])), 2);
        assert_eq!(twice(&read(&[(2, 15), (4, 15)])), 0);
        assert_eq!(twice(&read(&[(1, 15)])), 0);
    }

    #[test]
    fn cpu_follows_the_load_of_each_process() {
        let before = read(&[(4, 15)]);
        let cpu = LoadedCpu { growth: 4.0, power: -0.5 };
        let mut changed = before.clone();
        cpu.apply(&before, &mut changed);
        assert!((changed.machine_s - before.machine_s / 2.0).abs() < 1e-12, "{changed:?}");
        let mut more = before.clone();
        more.programs.iter_mut().for_each(|program| program.replicas *= 4);
        let of_services = |system: &System| system.programs.iter().map(|program| program.demand_s).sum::<f64>();
        cpu.apply(&before, &mut more);
        assert!((of_services(&more) - of_services(&before)).abs() < 1e-12, "each replica has the load of one before");
    }
}
