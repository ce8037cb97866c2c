//! The machine's fingerprint: enough to tell whether two runs may be compared.

use std::fs;

use narrows_model::run::Environment;

/// Reads it from `/proc`; what cannot be read is left empty.
pub fn fingerprint() -> Environment {
    let uname = rustix::system::uname();
    Environment {
        kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
        cpu_model: field("/proc/cpuinfo", "model name").unwrap_or_default(),
        cores: cores(),
        memory_bytes: field("/proc/meminfo", "MemTotal")
            .and_then(|text| text.trim_end_matches(" kB").parse::<u64>().ok())
            .map_or(0, |kib| kib * 1024),
    }
}

/// Logical processors this process may use, at least 1.
pub fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// Nanoseconds since the Unix epoch.
pub fn now_ns() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Sixty-four bits that no other run has: from the kernel's random source, else from time and process id.
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    match read {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => (now_ns() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64::from(std::process::id()),
    }
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_a_fingerprint() {
        let environment = super::fingerprint();
        assert!(environment.kernel.starts_with("Linux "));
        assert!(environment.cores >= 1);
        assert!(environment.memory_bytes > 1 << 20);
    }
}
