//! What the kernel says of a process: CPU time and peak memory, from /proc. Linux only.

use crate::Outcome;

/// The kernel reports CPU time to user space in hundredths of a second, whatever its own tick is.
const MICROSECONDS_PER_TICK: u64 = 10_000;

/// User and system time of all threads, and of the children the process has waited for: redis rewrites its
/// append-only file in a child, and that work belongs to the server as compaction belongs to Hearth.
pub fn cpu_us(pid: u32) -> Outcome<u64> {
    let ticks = stat_ticks(&pid.to_string())?;
    Ok(ticks.iter().sum::<u64>() * MICROSECONDS_PER_TICK)
}

/// CPU time of all children this process has waited for. The difference across one child's life is that child's own,
/// exact and without polling, provided that nothing else is waited for meanwhile.
pub fn waited_children_cpu_us() -> Outcome<u64> {
    let [_, _, user, system] = stat_ticks("self")?;
    Ok((user + system) * MICROSECONDS_PER_TICK)
}

/// Peak resident memory in KiB.
pub fn peak_memory_kib(pid: u32) -> Outcome<u64> {
    let text = read(&pid.to_string(), "status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| format!("The kernel reports no peak memory for process {pid}."))
}

/// The fields utime, stime, cutime and cstime.
fn stat_ticks(process: &str) -> Outcome<[u64; 4]> {
    let text = read(process, "stat")?;
    // The second field is the program's name in parentheses and may hold blanks, so count from behind it.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let mut ticks = [0; 4];
    for (place, tick) in ticks.iter_mut().enumerate() {
        let field = fields.get(11 + place).and_then(|field| field.parse().ok());
        *tick =
            field.ok_or_else(|| format!("The CPU time of process {process} could not be read from its stat file."))?;
    }
    Ok(ticks)
}

fn read(process: &str, file: &str) -> Outcome<String> {
    std::fs::read_to_string(format!("/proc/{process}/{file}"))
        .map_err(|e| format!("The {file} file of process {process} could not be read, so it has probably ended: {e}."))
}
