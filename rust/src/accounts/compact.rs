//! Compact storage for the accounts of closed connections.

use super::account::DirectionAccount;

/// Accounts of more than 2,048 serialized bytes stay as they are. The accounts of a short connection are always
/// smaller, and only short connections occur in large numbers.
const MAX_COMPACT_BYTES: usize = 2048;

/// The accounts of both directions of a connection, the client's direction first, in 2.7 kB. A closed connection needs
/// its accounts only for a late segment, which is rare. The accounts of closed connections are therefore serialized
/// into a few hundred bytes.
#[derive(Clone, Debug)]
pub(crate) enum Accounts {
    Expanded(Box<[DirectionAccount; 2]>),
    Compact(Box<[u8]>),
    /// Accounts that were deserialized for a segment after the close. They stay deserialized, because more segments are
    /// likely.
    Restored(Box<[DirectionAccount; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::Expanded(Box::default())
    }
}

impl Accounts {
    /// The accounts in a form that can be changed.
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

    /// The accounts for the connection's row.
    pub(crate) fn take(self) -> Option<Box<[DirectionAccount; 2]>> {
        match self {
            Self::Expanded(accounts) | Self::Restored(accounts) => Some(accounts),
            Self::Compact(bytes) => read(&bytes),
        }
    }

    /// Serializes the accounts of a closed connection.
    pub(crate) fn compact(&mut self) {
        let Self::Expanded(accounts) = self else { return };
        let mut room = [0; MAX_COMPACT_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::Compact(Box::from(&*bytes));
        }
    }
}

/// Deserializes accounts. The bytes come from `compact`, so they are always valid.
fn read(bytes: &[u8]) -> Option<Box<[DirectionAccount; 2]>> {
    postcard::from_bytes(bytes).ok()
}
