//! The settings of one store: how it is reached, and the database and containers it begins with.

use std::path::PathBuf;
use std::time::Duration;

use narrows_serving::Listen;

use crate::Error;
use crate::access::{Access, AccountKey};
use crate::budget::Excess;
use crate::partition_key::path_from_text;
use crate::throughput::MAX_RU_PER_SECOND_OF_PARTITION;

/// The most physical partitions a container may have.
pub(crate) const MAX_PARTITIONS: u32 = 1_000;
/// About 4 GiB of text and index: as much as a machine should carry besides the measured system.
const MAX_DOCUMENTS: u32 = 2_000_000;
const MAX_CONTAINERS: usize = 64;
const MAX_NAME_BYTES: usize = 255;
const MAX_DELAY: Duration = Duration::from_secs(60);

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Flush {
    /// Once the disk has flushed it: it survives a loss of power.
    #[default]
    Always,
    /// Once the system has it: it survives the end of the process, however it ends. A loss of power may cost the last
    /// writes.
    Never,
}

/// The settings of a store; [`Config::default`] is the one of the drone delivery case study: 900 RU/s on 9 partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where it listens; port 0 lets the system choose. A token of it is checked where `access` is [`Access::Token`].
    pub listen: Listen,
    /// The folder that keeps the store, made unless it is there; without one the store goes with the process. A folder that is
    /// there has its own databases, containers and documents, and those of the other settings are left aside.
    pub dir: Option<PathBuf>,
    /// When a write to `dir` is acknowledged.
    pub sync: Flush,
    /// Whose requests are served; by default those signed with the key of Microsoft's emulators.
    pub access: Access,
    /// The folder with `certificate.pem` and `key.pem`, with which the port serves HTTPS as well; where both are missing, a
    /// certificate for localhost is made.
    pub tls: Option<PathBuf>,
    /// The name of the database a new store begins with.
    pub database: String,
    /// The names of its containers, 1 to 64, each seeded alike.
    pub containers: Vec<String>,
    /// The top-level property that is the partition key, without the slash.
    pub partition_key: String,
    /// Physical partitions of each of these containers, 1 to 1 000.
    pub partitions: u32,
    /// Physical partitions of a container that a client creates, at least; without it one for every 10 000 RU/s.
    pub partitions_of_created: Option<u32>,
    /// The text in bytes beyond which a partition is split in two, where it holds more than one partition key.
    pub split_bytes: usize,
    /// Provisioned throughput per container in RU/s, split evenly over the partitions; at most 10 000 for each.
    pub throughput_ru_per_second: u32,
    /// Treatment of the request that goes beyond a partition's budget.
    pub excess: Excess,
    /// Utilisation documents each container starts with, up to 2 000 000.
    pub documents_per_container: u32,
    /// Time every request spends under way, half of it before it is looked at and half after, up to 60 s: it stands for
    /// the network to a cloud store. Timers of a millisecond's resolution add 1 to 2 ms to it; zero waits for nothing.
    pub delay: Duration,
    /// The mean of an exponentially distributed time under way on top of `delay`, up to 60 s; a single draw is cut at
    /// 20 times the mean.
    pub jitter: Duration,
    /// Seed of the draws of `jitter` and of when each partition's seconds begin: the same seed gives the n-th request the
    /// same draw again.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Listen::loopback(8081),
            dir: None,
            sync: Flush::Always,
            access: Access::Signed(AccountKey::of_emulators()),
            tls: None,
            database: "dronedelivery".to_owned(),
            containers: vec!["utilization".to_owned()],
            partition_key: "ownerId".to_owned(),
            partitions: 9,
            partitions_of_created: None,
            split_bytes: 512 << 20,
            throughput_ru_per_second: 900,
            excess: Excess::Overdraw,
            documents_per_container: 11_000,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            seed: 1,
        }
    }
}

impl Config {
    /// Checks every setting.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] names the first setting outside its range.
    pub fn validate(&self) -> Result<(), Error> {
        within("partitions", self.partitions, 1, MAX_PARTITIONS)?;
        within("partitions_of_created", self.partitions_of_created.unwrap_or(1), 1, MAX_PARTITIONS)?;
        let most = self.partitions * MAX_RU_PER_SECOND_OF_PARTITION;
        within("throughput_ru_per_second", self.throughput_ru_per_second, self.partitions, most)?;
        within("documents_per_container", self.documents_per_container, 0, MAX_DOCUMENTS)?;
        for (setting, value) in [("delay", self.delay), ("jitter", self.jitter)] {
            if value > MAX_DELAY {
                return Err(refused(setting, format!("{value:?}"), format!("at most {MAX_DELAY:?}")));
            }
        }
        if self.containers.is_empty() || self.containers.len() > MAX_CONTAINERS {
            let expected = format!("1 to {MAX_CONTAINERS} names");
            return Err(refused("containers", format!("{} names", self.containers.len()), expected));
        }
        name("database", &self.database)?;
        name("partition_key", &self.partition_key)?;
        if path_from_text(&format!("/{}", self.partition_key)).is_none_or(|path| path != [self.partition_key.as_str()])
        {
            return Err(refused(
                "partition_key",
                format!("{:?}", self.partition_key),
                "a name without quotes around it".to_owned(),
            ));
        }
        for (index, container) in self.containers.iter().enumerate() {
            name("containers", container)?;
            if self.containers[..index].contains(container) {
                return Err(refused("containers", format!("{container:?} twice"), "each name once".to_owned()));
            }
        }
        Ok(())
    }
}

fn within(setting: &'static str, value: u32, least: u32, most: u32) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(refused(setting, value.to_string(), format!("{least} to {most}")))
}

fn name(setting: &'static str, value: &str) -> Result<(), Error> {
    let usable = !value.is_empty()
        && value.len() <= MAX_NAME_BYTES
        && !value.contains(['/', '\\', '?', '#'])
        && !value.ends_with(' ');
    if usable {
        return Ok(());
    }
    Err(refused(
        setting,
        format!("{value:?}"),
        format!("1 to {MAX_NAME_BYTES} bytes without / \\ ? # or a space at the end"),
    ))
}

fn refused(setting: &'static str, value: String, expected: String) -> Error {
    Error::Setting { setting, value, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_valid() {
        Config::default().validate().unwrap();
    }

    #[test]
    fn a_setting_out_of_range_is_named_with_its_range() {
        let base = Config::default;
        let cases = [
            (Config { partitions: 0, ..base() }, "partitions is 0, expected 1 to 1000"),
            (
                Config { throughput_ru_per_second: 90_001, ..base() },
                "throughput_ru_per_second is 90001, expected 9 to 90000",
            ),
            (Config { containers: vec![], ..base() }, "containers is 0 names, expected 1 to 64 names"),
            (
                Config { containers: vec!["a".into(), "a".into()], ..base() },
                "containers is \"a\" twice, expected each name once",
            ),
            (
                Config { database: "a/b".into(), ..base() },
                "database is \"a/b\", expected 1 to 255 bytes without / \\ ? # or a space at the end",
            ),
            (Config { delay: Duration::from_secs(61), ..base() }, "delay is 61s, expected at most 60s"),
            (Config { jitter: Duration::from_millis(60_001), ..base() }, "jitter is 60.001s, expected at most 60s"),
        ];
        for (config, expected) in cases {
            assert_eq!(config.validate().unwrap_err().to_string(), expected);
        }
    }
}
