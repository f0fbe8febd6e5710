//! The accounts of a connection, in little memory once it is over.

use super::account::Account;

/// Accounts that take more than this are not put away: not those of short connections, of which there may be many.
const MOST_PUT_AWAY_BYTES: usize = 2048;

/// The accounts of a connection, the client's and the server's. Those of one that is over are put away in a few hundred bytes,
/// where they take 2.7 KB at hand: it is kept for strays, of which most connections get none.
#[derive(Clone, Debug)]
pub(crate) enum Accounts {
    AtHand(Box<[Account; 2]>),
    PutAway(Box<[u8]>),
    /// Taken out again, for a stray: more of them may come, so it stays at hand.
    TakenOut(Box<[Account; 2]>),
}

impl Default for Accounts {
    fn default() -> Self {
        Self::AtHand(Box::default())
    }
}

impl Accounts {
    /// The accounts, to be written on.
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

    /// The accounts, for the connection's row.
    pub(crate) fn take(self) -> Option<Box<[Account; 2]>> {
        match self {
            Self::AtHand(accounts) | Self::TakenOut(accounts) => Some(accounts),
            Self::PutAway(bytes) => read(&bytes),
        }
    }

    /// Nothing more is expected to be written.
    pub(crate) fn put_away(&mut self) {
        let Self::AtHand(accounts) = self else { return };
        let mut room = [0; MOST_PUT_AWAY_BYTES];
        if let Ok(bytes) = postcard::to_slice(accounts, &mut room) {
            *self = Self::PutAway(Box::from(&*bytes));
        }
    }
}

/// What was put away: always there, because nothing else makes such bytes.
fn read(bytes: &[u8]) -> Option<Box<[Account; 2]>> {
    postcard::from_bytes(bytes).ok()
}
