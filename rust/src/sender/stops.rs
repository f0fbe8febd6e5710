//! Flights after which even a full-sized segment waited until all of the flight was acknowledged: the send
//! buffer was full.

use serde::{Deserialize, Serialize};

use crate::nullable::Nullable;

/// Number of flight sizes that are counted. A sender limited by its buffer stops at a few sizes (a heuristic).
const KEPT: usize = 4;

/// The flights of one direction after which a full-sized segment waited, by size in bytes, and how often.
///
/// Neither Nagle's algorithm nor silly-window avoidance delays a full-sized segment. If the window has room and
/// nothing is lost, a segment that repeatedly waits behind a flight of the same size found no space in the send
/// buffer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Stops(Option<Box<[Stop; KEPT]>>);

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Stop {
    flight: i64,
    times: u16,
}

impl Stops {
    /// Counts a full-sized segment that waited until this flight was acknowledged. If all places are taken, the
    /// rarest flight is replaced.
    pub(super) fn held_behind(&mut self, flight: i64) {
        let stops = self.0.get_or_insert_default();
        if let Some(stop) = stops.iter_mut().find(|stop| stop.flight == flight) {
            stop.times = stop.times.saturating_add(1);
        } else if let Some(rarest) = stops.iter_mut().min_by_key(|stop| stop.times) {
            *rarest = Stop { flight, times: 1 };
        }
    }

    /// The two flights after which most segments waited, and how many.
    pub(super) fn most(&self) -> [(Nullable, u16); 2] {
        let mut stops = self.0.as_deref().copied().unwrap_or_default();
        stops.sort_by_key(|stop| std::cmp::Reverse(stop.times));
        let [first, second, ..] = stops;
        [first, second].map(|stop| (Some(stop.flight).filter(|_| stop.times > 0).into(), stop.times))
    }
}

#[cfg(test)]
mod tests {
    use super::Stops;

    #[test]
    fn the_flights_at_which_a_sender_stopped_most_often_are_kept() {
        let mut stops = Stops::default();
        for flight in [4380, 100, 5272, 200, 4380, 300, 5272, 400, 4380] {
            stops.held_behind(flight);
        }
        assert_eq!(stops.most().map(|(flight, times)| (flight.get(), times)), [(Some(4380), 3), (Some(5272), 2)]);
    }

    #[test]
    fn a_sender_that_never_stopped_has_no_such_flight() {
        assert_eq!(Stops::default().most().map(|(flight, times)| (flight.get(), times)), [(None, 0); 2]);
    }
}
