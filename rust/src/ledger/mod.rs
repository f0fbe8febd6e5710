//! The ledger: for every instant of a direction, *why is the next byte not leaving now?*
//!
//! A **departure** is a segment with data, SYN or FIN that leaves its sender. A **wait** is the time between two
//! departures of one direction. The ledger gives each wait a cause, and divides it into **intervals** with one cause
//! each. The intervals of a direction touch, never overlap, and sum to the life of the connection to the nanosecond.
//! `docs/how-it-decides.md` explains the rules, `docs/architecture.md` the whole pipeline and where to add a cause.
//!
//! While the capture is read, the engine only records one [`WaitRecord`] per departure ([`waits::record`]). Judging begins
//! when the connection has ended: [`DirectionFacts`] holds the final facts of the direction, [`judge`] names the cause of
//! each wait, and [`timeline`] divides the wait into intervals.
//!
//! The modules of the judgement, each using only those before it:
//!
//! - [`cause`]: the names of the causes
//! - [`waits::record`]: the numbers kept of one wait
//! - [`direction`]: the final facts of a direction
//! - [`evidence`]: what one wait shows under these facts
//! - [`gates`]: one file for each reason why TCP may not send
//! - [`judge`]: the gate that owns the wait
//! - [`timeline`]: the intervals of a wait
//! - [`edges`]: the time before the first departure of a direction and after its last
//!
//! The modules that carry the data:
//!
//! - [`waits::live`], [`waits::log`], `spool`: records of open connections, in memory or in a temporary file
//! - `judging`, [`summary`], `threads`: judge the waits of ended connections, in shares, on several threads
//! - [`rows`]: what is reported of a connection: sums, [`kinds`], the [`longest`] waits, and [`locks`]
//! - [`timers`]: the timer that ended a stall
//! - [`costs`]: which connections lose enough time to keep these details

pub mod cause;
pub mod closed;
pub mod costs;
pub mod direction;
pub mod edges;
pub mod evidence;
pub mod gates;
pub mod intervals;
pub mod judge;
pub mod judged;
mod judging;
pub mod kinds;
mod limits;
pub mod locks;
pub mod longest;
pub mod rows;
pub mod summary;
mod threads;
mod timeline;
pub mod timers;
mod verdict;
pub mod waits;

pub use cause::{CAUSES, Cause};
pub use costs::{Sums, Worth};
pub use direction::DirectionFacts;
pub use edges::{Edge, edges};
pub use intervals::Interval;
pub use judge::judge;
pub use judged::{JudgedWait, MAX_SPANS, Note, Round};
pub use summary::Summaries;
pub use waits::live::LiveWaits;
pub use waits::log::EndedWaits;
pub use waits::record::WaitRecord;
