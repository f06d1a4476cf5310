//! How much memory the process has, as the kernel counts it.
//!
//! Promise: zeros when the kernel does not tell, never an error. Must never know who asks.

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub resident_bytes: u64,
    pub peak_bytes: u64,
}

/// Reads `/proc/self/status`.
#[expect(clippy::disallowed_methods, reason = "the kernel's own numbers, not data of ours")]
#[must_use]
pub fn of_this_process() -> Memory {
    std::fs::read_to_string("/proc/self/status").map(|status| parse(&status)).unwrap_or_default()
}

fn parse(status: &str) -> Memory {
    let bytes = |name: &str| {
        let kilobytes = status.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        kilobytes.and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    Memory { resident_bytes: bytes("VmRSS:"), peak_bytes: bytes("VmHWM:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_in_bytes() {
        let memory = parse("Name:\thearth\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n");
        assert_eq!(memory, Memory { resident_bytes: 1024 * 1024, peak_bytes: 2048 * 1024 });
        assert_eq!(parse("nothing"), Memory::default());
    }
}
