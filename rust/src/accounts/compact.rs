//! Compact storage for the accounts of closed connections.

use super::account::DirectionAccount;

/// Accounts that need more bytes stay uncompressed. The accounts of short connections, which may be numerous, need
/// fewer.
const MAX_COMPACT_BYTES: usize = 2048;

/// The accounts of a connection, the client's first. Uncompressed they take 2.7 KB. After the connection
/// closes, they are serialized into a few hundred bytes. Only stray segments need them again, and most
/// connections receive none.
#[derive(Clone, Debug)]
pub(crate) enum Accounts {
    Expanded(Box<[DirectionAccount; 2]>),
    Compact(Box<[u8]>),
    /// Deserialized again for a stray segment, and not serialized a second time, because more stray segments may follow.
    Restored(Box<[DirectionAccount; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::Expanded(Box::default())
    }
}

impl Accounts {
    /// The accounts in writable form; deserializes them if needed.
    #[inline]
    pub(crate) fn expanded(&mut self) -> Option<&mut [DirectionAccount; 2]> {
        if let Self::Expanded(accounts) = self { Some(accounts) } else { self.restore() }
    }

    #[cold]
    #[inline(never)]
    fn restore(&mut self) -> Option<&mut [DirectionAccount; 2]> {
        if let Self::Compact(bytes) = self {
            *self = Self::Restored(read(bytes)?);
        }
        match self {
            Self::Expanded(accounts) | Self::Restored(accounts) => Some(accounts),
            Self::Compact(_) => None,
        }
    }

    /// Converts into the accounts, for the connection's row.
    pub(crate) fn take(self) -> Option<Box<[DirectionAccount; 2]>> {
        match self {
            Self::Expanded(accounts) | Self::Restored(accounts) => Some(accounts),
            Self::Compact(bytes) => read(&bytes),
        }
    }

    /// Serializes the accounts after the connection closed.
    pub(crate) fn compact(&mut self) {
        let Self::Expanded(accounts) = self else { return };
        let mut room = [0; MAX_COMPACT_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::Compact(Box::from(&*bytes));
        }
    }
}

/// Deserializes accounts. It cannot fail for bytes that `compact` wrote, and nothing else writes them.
fn read(bytes: &[u8]) -> Option<Box<[DirectionAccount; 2]>> {
    postcard::from_bytes(bytes).ok()
}
