//! Draws the causes of a direction's waits as adjacent bands of at least one pixel.
//!
//! A wait of a pixel or more has a band of its own. Shorter waits share a band, which can show only one cause. A shared
//! band shows the cause with the most time that has not been drawn yet. Time of earlier waits that has not been drawn
//! yet counts too (error diffusion). The total width of a cause's bands therefore matches the time of the cause in the
//! ledger, to within a few pixels.

use crate::ledger::Cause;

/// An interval with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Band {
    pub start_ns: i64,
    pub end_ns: i64,
    pub cause: Cause,
}

impl Band {
    fn length_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// Makes bands from the waits of a direction.
#[derive(Debug)]
pub struct Strip {
    pixel_ns: i64,
    bands: Vec<Band>,
    /// Time of each cause that has not been drawn yet, negative if too much time has been drawn.
    owed_ns: Vec<(Cause, i64)>,
    /// Start and end of the short waits since the last band.
    short: Option<(i64, i64)>,
}

impl Strip {
    /// A strip without bands.
    #[must_use]
    pub fn new(pixel_ns: i64) -> Self {
        Self { pixel_ns, bands: Vec::new(), owed_ns: Vec::new(), short: None }
    }

    /// Adds the next wait in order of time.
    pub fn add(&mut self, wait: Band) {
        if wait.length_ns() >= self.pixel_ns {
            self.draw();
            self.push(wait);
            return;
        }
        match self.owed_ns.iter_mut().find(|(cause, _)| *cause == wait.cause) {
            Some((_, owed_ns)) => *owed_ns = owed_ns.saturating_add(wait.length_ns()),
            None => self.owed_ns.push((wait.cause, wait.length_ns())),
        }
        let start_ns = self.short.map_or(wait.start_ns, |(start_ns, _)| start_ns);
        self.short = Some((start_ns, wait.end_ns));
        if wait.end_ns.saturating_sub(start_ns) >= self.pixel_ns {
            self.draw();
        }
    }

    /// Removes and returns the bands so far.
    #[must_use]
    pub fn take(&mut self) -> Vec<Band> {
        self.draw();
        std::mem::replace(self, Self::new(self.pixel_ns)).bands
    }

    /// Makes one band from the short waits since the last band.
    fn draw(&mut self) {
        let Some((start_ns, end_ns)) = self.short.take() else { return };
        let most = self.owed_ns.iter_mut().rev().max_by_key(|(_, owed_ns)| *owed_ns); // the first if several are equal
        if let Some((cause, owed_ns)) = most {
            let band = Band { start_ns, end_ns, cause: *cause };
            *owed_ns = owed_ns.saturating_sub(band.length_ns());
            self.push(band);
        }
    }

    fn push(&mut self, band: Band) {
        match self.bands.last_mut() {
            Some(last) if (last.end_ns, last.cause) == (band.start_ns, band.cause) => last.end_ns = band.end_ns,
            _ => self.bands.push(band),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIXEL_NS: i64 = 1_000;

    /// The bands of adjacent waits with these lengths, from time 0 on.
    fn bands(waits: impl IntoIterator<Item = (i64, Cause)>) -> Vec<(i64, i64, Cause)> {
        let (mut strip, mut start_ns) = (Strip::new(PIXEL_NS), 0);
        for (length_ns, cause) in waits {
            strip.add(Band { start_ns, end_ns: start_ns + length_ns, cause });
            start_ns += length_ns;
        }
        strip.take().into_iter().map(|band| (band.start_ns, band.end_ns, band.cause)).collect()
    }

    #[test]
    fn waits_of_a_pixel_or_more_keep_their_edges() {
        let waits = [(1_000, Cause::Timeout), (2_500, Cause::Network), (1_234, Cause::Timeout)];
        let expected = [(0, 1_000, Cause::Timeout), (1_000, 3_500, Cause::Network), (3_500, 4_734, Cause::Timeout)];
        assert_eq!(bands(waits), expected);
    }

    /// The first pixel has 600 ns of `Network` and 400 ns of `Peer`. The pixel shows `Network`, so the 400 ns are
    /// carried over. The next pixel has equal times of both causes, and shows `Peer`.
    #[test]
    fn short_waits_share_a_pixel_which_has_the_cause_with_most_time() {
        let waits = [
            (300, Cause::Network),
            (400, Cause::Peer),
            (300, Cause::Network),
            (500, Cause::Network),
            (500, Cause::Peer),
        ];
        assert_eq!(bands(waits), [(0, 1_000, Cause::Network), (1_000, 2_000, Cause::Peer)]);
    }

    /// Each pixel (1 µs) has 700 ns of `Network`, 250 ns of `Pacing` and 50 ns of `Peer`. `Pacing` and `Peer` never
    /// have the most time in a pixel.
    #[test]
    fn pixels_add_up_to_the_time_of_each_cause_however_short_its_waits() {
        let pattern = [(350, Cause::Network), (50, Cause::Peer), (350, Cause::Network), (250, Cause::Pacing)];
        let many = || pattern.iter().copied().cycle().take(800);
        let found = bands(many().chain([(40_000, Cause::Timeout)]).chain(many()));
        assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].0), "adjacent");
        assert_eq!((found[0].0, found[found.len() - 1].1), (0, 440_000));
        for (cause, ns) in
            [(Cause::Network, 280_000), (Cause::Pacing, 100_000), (Cause::Peer, 20_000), (Cause::Timeout, 40_000)]
        {
            let drawn: i64 = found.iter().filter(|band| band.2 == cause).map(|band| band.1 - band.0).sum();
            assert!((drawn - ns).abs() <= 8_800, "{cause:?}: {drawn}"); // 2% of the total time
        }
    }
}
