//! The ledger: for every instant of a direction, *why does the sender not send the next byte now?*
//!
//! A **departure** is a segment with data, SYN or FIN, seen from its sender. A **wait** is the time between two
//! departures of one direction. The ledger finds the cause of each wait, and divides the wait into **intervals** with
//! one cause each. The intervals of a direction follow each other without gap or overlap, and sum to the life of the
//! connection to the nanosecond. `docs/how-it-decides.md` explains the rules. `docs/architecture.md` explains the whole
//! pipeline and where to add a cause.
//!
//! While the capture is read, the engine only records one [`WaitRecord`] per departure ([`waits::record`]). Judging
//! begins when the connection has ended: [`DirectionFacts`] contains the final facts of the direction, [`judge`] names
//! the cause of each wait, and [`timeline`] divides the wait into intervals.
//!
//! The modules, in the order in which a wait passes them; each uses only the modules before it:
//!
//! 1. [`cause`]: the names of the causes.
//! 2. [`waits`]: one [`WaitRecord`] per wait, kept in memory or in a temporary file until its connection ends.
//! 3. [`direction`]: the final facts of a direction.
//! 4. [`evidence`]: what one wait shows under these facts.
//! 5. [`gates`]: one file for each reason why TCP must not send.
//! 6. [`judge`]: the cause of a wait; the result is a [`judged`] wait.
//! 7. `timeline`: the intervals of a wait. [`edges`]: the intervals before the first segment of a direction and after
//!    its last. [`intervals`]: all intervals, with their times and frames.
//! 8. [`summary`]: judges all waits of ended connections on several threads, and keeps sums, notes and the longest waits.

pub mod cause;
pub mod direction;
pub mod edges;
pub mod evidence;
pub mod gates;
pub mod intervals;
pub mod judge;
pub mod judged;
pub mod rivals;
pub mod summary;
mod timeline;
pub mod waits;

pub use cause::{CAUSES, Cause};
pub use direction::DirectionFacts;
pub use edges::{Edge, edges};
pub use intervals::Interval;
pub use judge::judge;
pub use judged::{JudgedWait, MAX_SPANS, Note, Round};
pub use rivals::Rivals;
pub use summary::Summaries;
pub use summary::costs::{Sums, Worth};
pub use waits::live::LiveWaits;
pub use waits::log::EndedWaits;
pub use waits::record::WaitRecord;
