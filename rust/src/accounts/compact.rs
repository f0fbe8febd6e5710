//! Compact storage for the accounts of closed connections.

use super::account::DirectionAccount;

/// Accounts that need more than 2,048 bytes after serialization are not serialized. The accounts of a short connection
/// never exceed this limit, and a capture may have very many short connections.
const MAX_COMPACT_BYTES: usize = 2048;

/// The accounts of the two directions of a connection, the client's direction first. They take 2.7 kB. After the
/// connection closes, its accounts are serialized into a few hundred bytes. Accounts are needed again only if a segment
/// arrives after the close, which is rare.
#[derive(Clone, Debug)]
pub(crate) enum Accounts {
    Expanded(Box<[DirectionAccount; 2]>),
    Compact(Box<[u8]>),
    /// The accounts were deserialized because a segment arrived after the close. Deserialized accounts stay in this
    /// form, because more segments may follow.
    Restored(Box<[DirectionAccount; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::Expanded(Box::default())
    }
}

impl Accounts {
    /// Returns the accounts so that they can be changed, and deserializes them first if needed.
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

    /// Returns the accounts for the row of the connection.
    pub(crate) fn take(self) -> Option<Box<[DirectionAccount; 2]>> {
        match self {
            Self::Expanded(accounts) | Self::Restored(accounts) => Some(accounts),
            Self::Compact(bytes) => read(&bytes),
        }
    }

    /// Serializes the accounts of a connection that has closed.
    pub(crate) fn compact(&mut self) {
        let Self::Expanded(accounts) = self else { return };
        let mut room = [0; MAX_COMPACT_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::Compact(Box::from(&*bytes));
        }
    }
}

/// Deserializes accounts. Deserializing cannot fail, because only `compact` writes these bytes.
fn read(bytes: &[u8]) -> Option<Box<[DirectionAccount; 2]>> {
    postcard::from_bytes(bytes).ok()
}
