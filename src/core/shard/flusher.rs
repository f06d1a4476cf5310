//! A thread that does nothing but flush files, so that no flush makes other work wait and none shares a pool.
//!
//! Promise: one flush after the other; the answer is the file's own. Must never know what is flushed.

use std::io;
use std::sync::Arc;

use crate::core::log::disk::DiskFile;
use crate::rt::{self, channel};

struct Order {
    file: Arc<dyn DiskFile>,
    done: channel::Sender<io::Result<()>>,
}

/// The way to the flush thread of one shard.
pub struct Flusher {
    orders: channel::Sender<Order>,
}

impl Flusher {
    /// Starts the thread; it ends when this is dropped.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start() -> io::Result<Self> {
        let (orders, inbox) = channel::bounded::<Order>(1);
        rt::thread("hearth-flush", move || {
            while let Ok(order) = inbox.recv_blocking() {
                let _ = order.done.try_send(order.file.flush());
            }
        })?;
        Ok(Self { orders })
    }

    /// Flushes `file` on the thread. Cancelled, the flush still happens and nobody learns how it went.
    ///
    /// # Errors
    /// The flush's own, or that the thread is gone.
    pub async fn flush(&self, file: Arc<dyn DiskFile>) -> io::Result<()> {
        let (done, result) = channel::bounded(1);
        let gone = || io::Error::other("the flush thread is gone");
        self.orders.send(Order { file, done }).await.map_err(|_| gone())?;
        result.recv().await.map_err(|_| gone())?
    }
}
