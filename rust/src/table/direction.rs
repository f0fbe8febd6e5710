//! One direction of a connection, as input for columns.

use crate::accounts::{Acking, Behaviour, Counts, Nagle, StatisticsFigures};
use crate::connection::DirectionFigures;
use crate::flows::ConnectionRow;

pub(super) struct DirectionRow<'a> {
    pub connection: &'a ConnectionRow,
    pub figures: &'a DirectionFigures,
    pub counts: &'a Counts,
    pub statistics: &'a StatisticsFigures,
    pub behaviour: &'a Behaviour,
}

impl<'a> DirectionRow<'a> {
    /// The direction in which the client (`at` = 0) or the server (`at` = 1) sends.
    pub(super) fn of(connection: &'a ConnectionRow, at: usize) -> Option<Self> {
        let (figures, counts) = (connection.directions.get(at)?, connection.counts.get(at)?);
        let (statistics, behaviour) = (connection.statistics.get(at)?, connection.behaviours.get(at)?);
        Some(Self { connection, figures, counts, statistics, behaviour })
    }

    pub(super) fn nagle(&self) -> Nagle {
        self.behaviour.sending.nagle.as_deref().copied().unwrap_or_default()
    }

    pub(super) fn acking(&self) -> Option<&Acking> {
        self.behaviour.acking.as_deref()
    }
}
