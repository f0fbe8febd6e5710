//! Compact storage for the accounts of closed connections.

use super::account::Account;

/// Accounts that need more bytes stay uncompressed. Those of short connections, which may be numerous, need
/// fewer.
const MOST_PUT_AWAY_BYTES: usize = 2048;

/// The accounts of a connection, the client's first. Uncompressed they take 2.7 KB. After the connection
/// closes, they are serialized into a few hundred bytes. Only stray segments need them again, and most
/// connections receive none.
#[derive(Clone, Debug)]
pub(crate) enum Accounts {
    AtHand(Box<[Account; 2]>),
    PutAway(Box<[u8]>),
    /// Deserialized again for a stray segment. It stays so, because more may follow.
    TakenOut(Box<[Account; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::AtHand(Box::default())
    }
}

impl Accounts {
    /// The accounts in writable form; deserializes them if needed.
    #[inline]
    pub(crate) fn at_hand(&mut self) -> Option<&mut [Account; 2]> {
        if let Self::AtHand(accounts) = self { Some(accounts) } else { self.take_out() }
    }

    #[cold]
    #[inline(never)]
    fn take_out(&mut self) -> Option<&mut [Account; 2]> {
        if let Self::PutAway(bytes) = self {
            *self = Self::TakenOut(read(bytes)?);
        }
        match self {
            Self::AtHand(accounts) | Self::TakenOut(accounts) => Some(accounts),
            Self::PutAway(_) => None,
        }
    }

    /// Converts into the accounts, for the connection's row.
    pub(crate) fn take(self) -> Option<Box<[Account; 2]>> {
        match self {
            Self::AtHand(accounts) | Self::TakenOut(accounts) => Some(accounts),
            Self::PutAway(bytes) => read(&bytes),
        }
    }

    /// Serializes the accounts after the connection closed.
    pub(crate) fn put_away(&mut self) {
        let Self::AtHand(accounts) = self else { return };
        let mut room = [0; MOST_PUT_AWAY_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::PutAway(Box::from(&*bytes));
        }
    }
}

/// Deserializes accounts. It cannot fail for bytes that `put_away` wrote, and nothing else writes them.
fn read(bytes: &[u8]) -> Option<Box<[Account; 2]>> {
    postcard::from_bytes(bytes).ok()
}
