//! How the process's file descriptors are shared out: clients, segments of the log, and what a broker cannot do without.
//!
//! Promise: whatever the limit on open files, the log keeps the descriptors it needs; clients get what is left. Must never
//! know who a client is.

/// What a broker has open beside clients and sealed segments: standard streams, two reactors, the signal pipe, the listener,
/// lock, anchor, the segment being written and the next one, a directory being flushed: about 20, and as many again in reserve.
const ALWAYS_OPEN: u64 = 20;

/// With fewer descriptors than this no broker starts: it could not make its next segment.
const FEWEST: u64 = 48;

/// The part of all descriptors that sealed segments get, within their bounds.
const SEGMENTS_SHARE: u64 = 16;
const FEWEST_SEGMENTS: u64 = 4;
const MOST_SEGMENTS: u64 = 64;

/// The part of all descriptors for peers that are in the middle of being turned away, and the most there may be.
const TURNED_AWAY_SHARE: u64 = 16;
const MOST_TURNED_AWAY: u64 = 64;

/// How many of each there may be at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub clients: usize,
    /// Peers being told that they are turned away.
    pub turned_away: usize,
    /// Sealed segments that are open.
    pub segments: usize,
}

/// Raises the limit on open files as far as the process may, and shares it out; says so when it is too low for
/// `clients_asked`.
///
/// # Errors
/// When the limit is so low that the log could not be kept.
pub fn budget(clients_asked: usize) -> std::io::Result<Budget> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    // The soft limit is raised to the hard one: a broker is what it is there for.
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match rustix::process::setrlimit(rustix::process::Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    if current.is_some_and(|current| current < FEWEST) {
        let what = format!("a broker needs a limit of at least {FEWEST} open files; raise it with ulimit -n");
        return Err(std::io::Error::other(what));
    }
    let budget = share_out(current.unwrap_or(u64::MAX), clients_asked);
    if budget.clients < clients_asked {
        tracing::warn!(
            asked = clients_asked,
            fitting = budget.clients,
            "the limit on open files leaves room for fewer clients than --max-clients"
        );
    }
    Ok(budget)
}

fn share_out(limit: u64, clients_asked: usize) -> Budget {
    let segments = (limit / SEGMENTS_SHARE).clamp(FEWEST_SEGMENTS, MOST_SEGMENTS);
    let turned_away = (limit / TURNED_AWAY_SHARE).clamp(1, MOST_TURNED_AWAY);
    // One more peer is accepted before anything is decided about it.
    let kept = 2 * ALWAYS_OPEN.min(limit / 4) + segments + turned_away + 1;
    let clients = limit.saturating_sub(kept).max(1);
    Budget {
        clients: clients_asked.min(usize::try_from(clients).unwrap_or(usize::MAX)),
        turned_away: turned_away as usize,
        segments: segments as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_leaves_the_log_what_it_needs_and_clients_the_rest() {
        for limit in [32_u64, 48, 64, 100, 256, 1024, 4096, 65_536, 1 << 20, u64::MAX] {
            let Budget { clients, turned_away, segments } = share_out(limit, 10_000);
            let taken = clients as u64 + turned_away as u64 + segments as u64 + 1;
            assert!((1..=10_000).contains(&clients) && (4..=64).contains(&segments) && turned_away >= 1, "{limit}");
            let left = limit.saturating_sub(taken);
            assert!(left >= (2 * ALWAYS_OPEN).min(limit / 2) || clients == 1, "{limit}: {left} left");
        }
        assert_eq!(share_out(64, 200), Budget { clients: 23, turned_away: 4, segments: 4 });
        assert_eq!(share_out(1024, 10_000), Budget { clients: 855, turned_away: 64, segments: 64 });
        assert_eq!(share_out(1 << 20, 10_000), Budget { clients: 10_000, turned_away: 64, segments: 64 });
    }
}
