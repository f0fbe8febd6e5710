//! Waits and direction facts → causes: *why is the next byte of this direction not leaving now?*
//!
//! A direction's departures (segments with data, SYN or FIN) cut its life into waits. The engine records one
//! [`WaitRecord`] per departure while the capture is read ([`record`]) and judges nothing before the connection ends:
//! then [`Direction`] holds the final facts of the direction, [`judge`] names the cause of each wait, and [`timeline`]
//! divides the wait into intervals. The intervals of one direction touch, never overlap, and sum to its life to the
//! nanosecond. `docs/architecture.md` shows the whole road, and where to add a cause.
//!
//! The modules, each using only those before it:
//! [`cause`] the names, [`record`] what is kept of a wait, [`direction`] the final facts, [`evidence`] what a wait shows
//! under these facts, [`gates`] one file per reason why TCP may not send, [`judge`] which gate held, [`timeline`] the
//! intervals of a wait, [`edges`] the time before a direction's first departure and after its last. Records wait for the
//! end of their connection in logs ([`live`], [`log`]), in memory or in a temporary file (`spool`); then their waits are judged
//! in shares (`judging`), which [`summary`] hands out to `threads`. [`rows`] are what is reported of a connection: sums, [`kinds`],
//! the [`longest`] waits, [`locks`]; details only where it is worth a finding ([`costs`]).

pub mod cause;
pub mod closed;
pub mod costs;
pub mod direction;
pub mod edges;
mod encoding;
pub mod evidence;
pub mod gates;
pub mod intervals;
pub mod judge;
pub mod judged;
mod judging;
pub mod kinds;
mod limits;
pub mod live;
pub mod locks;
pub mod log;
pub mod longest;
pub mod record;
pub mod rows;
mod spool;
pub mod summary;
mod threads;
mod timeline;
mod verdict;

pub use cause::{CAUSES, Cause};
pub use costs::{Sums, Worth};
pub use direction::Direction;
pub use edges::{Edge, edges};
pub use intervals::Interval;
pub use judge::judge;
pub use judged::{JudgedWait, MOST_SPANS, Note, Round};
pub use live::LiveWaits;
pub use log::EndedWaits;
pub use record::WaitRecord;
pub use summary::Summaries;
