//! Flights after which even a full-sized segment waited until the whole flight was acknowledged, because the send
//! buffer was full.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// Maximum number of flight sizes that are counted. A sender that is limited by its send buffer stops at only a few
/// flight sizes (a heuristic).
const MAX_FLIGHTS: usize = 4;

/// The flights of one direction after which a full-sized segment waited: their sizes in bytes, and how often each
/// occurred.
///
/// Neither Nagle's algorithm nor silly-window avoidance delays a full-sized segment. If the window has room and nothing
/// is lost, only the send buffer can repeatedly delay a segment behind a flight of the same size.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FullBuffer(Option<Box<[Flight; MAX_FLIGHTS]>>);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Flight {
    bytes: i64,
    times: u16,
}

impl FullBuffer {
    /// Counts a full-sized segment that waited until this flight was acknowledged. If the array is full, the flight
    /// size that occurred most rarely is replaced.
    pub(super) fn waited_after(&mut self, flight: i64) {
        let flights = self.0.get_or_insert_default();
        if let Some(one) = flights.iter_mut().find(|one| one.bytes == flight) {
            one.times = one.times.saturating_add(1);
        } else if let Some(rarest) = flights.iter_mut().min_by_key(|one| one.times) {
            *rarest = Flight { bytes: flight, times: 1 };
        }
    }

    /// The two flight sizes after which segments waited most often, and the number of these waits.
    pub(super) fn most_frequent(&self) -> [(Nullable, u16); 2] {
        let mut flights = self.0.as_deref().copied().unwrap_or_default();
        flights.sort_by_key(|one| std::cmp::Reverse(one.times));
        let [first, second, ..] = flights;
        [first, second].map(|one| (Some(one.bytes).filter(|_| one.times > 0).into(), one.times))
    }
}

#[cfg(test)]
mod tests {
    use super::FullBuffer;

    #[test]
    fn the_flights_at_which_a_sender_stopped_most_often_are_kept() {
        let mut flights = FullBuffer::default();
        for flight in [4380, 100, 5272, 200, 4380, 300, 5272, 400, 4380] {
            flights.waited_after(flight);
        }
        assert_eq!(
            flights.most_frequent().map(|(flight, times)| (flight.get(), times)),
            [(Some(4380), 3), (Some(5272), 2)]
        );
    }

    #[test]
    fn a_sender_that_never_stopped_has_no_such_flight() {
        assert_eq!(FullBuffer::default().most_frequent().map(|(flight, times)| (flight.get(), times)), [(None, 0); 2]);
    }
}
