//! What happens to the simulated disk, counted: the effects, the faults armed, and the moment the
//! power goes off.
//!
//! It promises that each effect has one number, that the power goes off exactly where it was told to,
//! and that a fault hits exactly once. It must never know what an effect does.

use std::io;

use rustix::io::Errno;

/// A call that changes what is on the disk or what of it is durable.
pub(super) enum Effect {
    CreateDir,
    Create,
    Rename,
    Remove,
    FlushDir,
    Write(usize),
    SetLen,
    Flush,
}

/// How often each effect happened. A call that was refused or failed is no effect; the faults that hit
/// are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectCounts {
    pub create_dirs: u64,
    pub creates: u64,
    pub renames: u64,
    pub removes: u64,
    pub dir_flushes: u64,
    pub writes: u64,
    pub bytes_written: u64,
    pub set_lens: u64,
    pub flushes: u64,
    pub failed_writes: u64,
    pub failed_flushes: u64,
}

pub(super) enum Refusal {
    PowerOff,
    Fault,
}

#[derive(Default)]
pub(super) struct Gauge {
    pub(super) effects: u64,
    pub(super) counts: EffectCounts,
    pub(super) power_off_after: Option<u64>,
    /// Counts down to the call that fails; 0 is none armed.
    pub(super) fail_flush: u64,
    pub(super) fail_write: u64,
}

impl Gauge {
    /// Whether this effect may happen now; if so it is counted, and the caller makes it happen.
    pub(super) fn admit(&mut self, effect: Effect) -> Result<(), Refusal> {
        if self.power_off_after.is_some_and(|limit| self.effects >= limit) {
            return Err(Refusal::PowerOff);
        }
        let counts = &mut self.counts;
        match effect {
            Effect::CreateDir => counts.create_dirs += 1,
            Effect::Create => counts.creates += 1,
            Effect::Rename => counts.renames += 1,
            Effect::Remove => counts.removes += 1,
            Effect::FlushDir => counts.dir_flushes += 1,
            Effect::SetLen => counts.set_lens += 1,
            Effect::Write(bytes) => {
                if hits(&mut self.fail_write) {
                    counts.failed_writes += 1;
                    return Err(Refusal::Fault);
                }
                counts.writes += 1;
                counts.bytes_written += bytes as u64;
            }
            Effect::Flush => {
                if hits(&mut self.fail_flush) {
                    counts.failed_flushes += 1;
                    return Err(Refusal::Fault);
                }
                counts.flushes += 1;
            }
        }
        self.effects += 1;
        Ok(())
    }
}

fn hits(countdown: &mut u64) -> bool {
    let last = *countdown == 1;
    *countdown = countdown.saturating_sub(1);
    last
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        match refusal {
            Refusal::PowerOff => io::Error::other("the power is off"),
            Refusal::Fault => Errno::IO.into(),
        }
    }
}
