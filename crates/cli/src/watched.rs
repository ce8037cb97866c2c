//! Options of commands that sample services which others have started.

use std::path::PathBuf;

#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WatchedArguments {
    /// Sample this process and its children as service NAME; repeatable
    #[arg(long = "pid", value_name = "NAME=PID", value_parser = named_pid)]
    pub(crate) pids: Vec<(String, u32)>,
    /// Sample the processes of this control group as service NAME; repeatable
    #[arg(long = "cgroup", value_name = "NAME=PATH", value_parser = named_path)]
    cgroups: Vec<(String, PathBuf)>,
    /// Sample this Docker or Podman container (name or ID) as service NAME; repeatable
    #[arg(long = "container", value_name = "NAME=CONTAINER", value_parser = named_container)]
    containers: Vec<(String, PathBuf)>,
}

impl WatchedArguments {
    /// Control groups of services, containers' too.
    pub(crate) fn cgroups(&self) -> Vec<(String, PathBuf)> {
        self.cgroups.iter().chain(&self.containers).cloned().collect()
    }
}

/// `NAME=VALUE`.
pub(crate) fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, value)| !name.is_empty() && name.len() <= 200 && !value.is_empty())
}

fn named_pid(text: &str) -> Result<(String, u32), String> {
    let (name, pid) = named(text).ok_or("expected a service and a process such as web=4711")?;
    let pid = pid.parse::<u32>().ok().filter(|pid| *pid > 0);
    pid.map(|pid| (name.to_owned(), pid)).ok_or_else(|| "expected a process id after `=`, such as web=4711".to_owned())
}

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    let (name, path) = named(text).ok_or("expected a service and a group such as web=/sys/fs/cgroup/shop.slice")?;
    Ok((name.to_owned(), PathBuf::from(path)))
}

fn named_container(text: &str) -> Result<(String, PathBuf), String> {
    let (name, container) = named(text).ok_or("expected a service and a container such as web=shop-web-1")?;
    Ok((name.to_owned(), narrows_lab::containers::control_group_of(container)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_or_refused() {
        assert_eq!(named_pid("web=12"), Ok(("web".to_owned(), 12)));
        for text in ["web", "=12", "web=", "web=0", "web=-1", "web=x"] {
            assert!(named_pid(text).is_err(), "{text}");
        }
        assert_eq!(named_path("a=/b=c"), Ok(("a".to_owned(), PathBuf::from("/b=c"))));
        assert!(named_container("web").is_err() && named_container("web=no-such-container-of-narrows").is_err());
    }
}
