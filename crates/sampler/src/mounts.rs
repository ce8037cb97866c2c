//! Where control groups are: the mounted hierarchies, and which group of each a process is in. Formats: proc(5),
//! cgroups(7).

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use super::files::Files;
use super::text::lines;

/// Controllers of a hierarchy, as far as they are of interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controller {
    Cpu,
    Memory,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Cpu => "cpu",
            Controller::Memory => "memory",
        }
    }
}

/// Which interface the kernel offers for a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1(Controller),
    V2,
}

/// A mounted hierarchy that is of interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) version: Version,
    /// The group that is seen at the mount point; `/` unless this is inside a container.
    root: PathBuf,
    pub(super) point: PathBuf,
}

/// Mounted hierarchies, by `mountinfo` of this process.
pub(super) fn mounts(files: &mut Files) -> Vec<Mount> {
    let text = files.whole(format_args!("self/mountinfo")).unwrap_or_default();
    text.split(|byte| *byte == b'\n').flat_map(mount).collect()
}

/// A line: `ID PARENT DEV ROOT POINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPER`. A hierarchy may control several things.
fn mount(line: &[u8]) -> Vec<Mount> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-");
    let (Some(dash), Some(root), Some(point)) = (dash, fields.get(3), fields.get(4)) else { return Vec::new() };
    let (Some(kind), Some(options)) = (fields.get(dash + 1), fields.get(dash + 3)) else { return Vec::new() };
    let controls =
        |controller: Controller| options.split(|byte| *byte == b',').any(|o| o == controller.name().as_bytes());
    let of = |version| Mount { version, root: unescaped(root), point: unescaped(point) };
    match *kind {
        b"cgroup2" => vec![of(Version::V2)],
        b"cgroup" => {
            let controllers = [Controller::Cpu, Controller::Memory].into_iter().filter(|c| controls(*c));
            controllers.map(|controller| of(Version::V1(controller))).collect()
        }
        _ => Vec::new(),
    }
}

/// A path in which space, tab, line end and backslash stand as `\` and three octal digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let octal = (*byte == b'\\').then(|| std::str::from_utf8(text.get(at + 1..at + 4)?).ok()).flatten();
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                at += 4;
            }
            None => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

impl Mount {
    /// The folder of a group of this hierarchy; `None` if it lies outside what is mounted here.
    pub(super) fn folder(&self, group: &str) -> Option<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).ok()?;
        let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        is_plain.then(|| self.point.join(below))
    }

    /// The group of this hierarchy that `/proc/PID/cgroup` names, as a folder. Lines: `ID:CONTROLLERS:GROUP`.
    pub(super) fn folder_of(&self, text: &[u8]) -> Option<PathBuf> {
        let group = lines(text).find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
            let is_it = match self.version {
                Version::V2 => id == "0" && controllers.is_empty(),
                Version::V1(controller) => controllers.split(',').any(|name| name == controller.name()),
            };
            is_it.then_some(group)
        })?;
        self.folder(group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hierarchies_of_both_versions_are_found() {
        let v1 = mount(b"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:7 - cgroup cgroup rw,cpu,cpuacct");
        let point = PathBuf::from("/sys/fs/cgroup/cpu,cpuacct");
        assert_eq!(v1, [Mount { version: Version::V1(Controller::Cpu), root: "/".into(), point }]);
        let both = mount(b"1 1 0:1 /a\\040b /m - cgroup cgroup rw,memory,cpu");
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].root, Path::new("/a b"));
        assert_eq!(mount(b"41 31 0:38 / /u rw - cgroup2 cgroup2 rw")[0].version, Version::V2);
        for line in ["", "1 2 3", "1 1 0:1 / / rw - ext4 x rw", "1 1 0:1 / / rw - cgroup x rw,cpuset", "1 1 0:1 / / -"]
        {
            assert_eq!(mount(line.as_bytes()), []);
        }
    }

    #[test]
    fn a_group_is_found_below_its_mount_only() {
        let text = b"4:memory:/m/x\n3:cpu,cpuacct:/kube/pod/c\n0::/v2/a:b\n";
        let mount = |version, root: &str| Mount { version, root: root.into(), point: "/p".into() };
        let cpu = Version::V1(Controller::Cpu);
        let cases = [
            (mount(cpu, "/"), Some("/p/kube/pod/c")),
            (mount(cpu, "/kube"), Some("/p/pod/c")),
            (mount(cpu, "/other"), None),
            (mount(Version::V1(Controller::Memory), "/"), Some("/p/m/x")),
            (mount(Version::V2, "/"), Some("/p/v2/a:b")),
        ];
        for (mount, expected) in cases {
            assert_eq!(mount.folder_of(text), expected.map(PathBuf::from), "{mount:?}");
        }
        assert_eq!(mount(Version::V2, "/").folder_of(b"0::/../x\n"), None);
        assert_eq!(mount(Version::V2, "/").folder_of(b"1:name=systemd:/\n"), None);
    }

    proptest! {
        #[test]
        fn random_lines_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), line in r"[ a-z0-9:/\\-]{0,100}") {
            for bytes in [bytes.as_slice(), line.as_bytes()] {
                for mount in mount(&[b"1 1 1 / / - cgroup x ".as_slice(), bytes].concat()) {
                    mount.folder_of(bytes);
                }
                mount(bytes);
                unescaped(bytes);
            }
        }
    }
}
