use super::*;

fn fragment(offset: u16, data: &[u8], more: bool) -> Fragment<'_> {
    Fragment {
        facts: IpFacts::default(),
        endpoints: IpEndpoints::default(),
        place: FragmentPlace { identification: 7, protocol: 6, offset, more },
        data,
        wire_bytes: data.len(),
    }
}

#[test]
fn fragments_in_any_order_become_the_datagram() {
    let mut reassembler = Reassembler::default();
    assert!(reassembler.add(&fragment(16, b"last", false), 1, Some(0)).is_none());
    assert!(reassembler.add(&fragment(0, b"first 8.", true), 2, Some(1)).is_none());
    let whole = reassembler.add(&fragment(8, b"second 8", true), 3, Some(2)).unwrap();
    assert_eq!(whole.data, b"first 8.second 8last");
    assert_eq!(whole.wire_bytes, 20);
    assert!(reassembler.finish().incomplete.is_none());
}

/// Reassembles IPv4 fragments, each given as (offset, length, more fragments). Returns the lengths of the complete
/// datagrams, and the dropped datagrams.
fn read(parts: &[(u16, usize, bool)]) -> (Vec<usize>, GivenUp) {
    read_of(false, parts)
}

fn read_of(v6: bool, parts: &[(u16, usize, bool)]) -> (Vec<usize>, GivenUp) {
    let mut reassembler = Reassembler::default();
    let data = [7; 1000];
    let wholes = parts.iter().zip(1..).filter_map(|((offset, bytes, more), frame)| {
        let mut fragment = fragment(*offset, &data[..*bytes], *more);
        fragment.endpoints.v6 = v6;
        reassembler.add(&fragment, frame, Some(0)).map(|whole| whole.data.len())
    });
    (wholes.collect(), reassembler.finish())
}

#[test]
fn a_copy_of_a_fragment_is_ignored() {
    let (wholes, given_up) = read(&[(0, 16, true), (0, 16, true), (16, 4, false)]);
    assert_eq!((wholes, given_up.overlapping, given_up.incomplete), (vec![20], None, None));
}

#[test]
fn a_fragment_within_neighbours_that_came_in_order_is_ignored() {
    let (wholes, given_up) = read(&[(0, 16, true), (16, 16, true), (8, 16, true), (32, 8, false)]);
    assert_eq!((wholes, given_up.overlapping), (vec![40], None));
}

#[test]
fn a_fragment_over_neighbours_that_came_out_of_order_overlaps() {
    let (wholes, given_up) = read(&[(32, 8, false), (0, 16, true), (8, 24, true), (16, 16, true)]);
    assert_eq!((wholes, given_up.overlapping, given_up.incomplete), (vec![], Some((1, 1)), Some((4, 1))));
    let (wholes, given_up) = read(&[(32, 8, false), (16, 8, true), (0, 16, true), (8, 16, true)]);
    assert_eq!((wholes, given_up.overlapping), (vec![], Some((1, 1))), "neighbours, but no run");
}

#[test]
fn an_overlap_gives_the_datagram_up_and_what_comes_later_begins_anew() {
    for overlap in [(8, 16, true), (0, 24, true)] {
        let (wholes, given_up) = read(&[(0, 16, true), overlap, (16, 8, false)]);
        assert_eq!(wholes, [0; 0], "{overlap:?}");
        assert_eq!(given_up.incomplete, Some((3, 1)), "{overlap:?}");
    }
}

#[test]
fn a_second_end_or_bytes_behind_the_end_give_the_datagram_up() {
    for (first, second) in
        [((16, 8, false), (24, 8, false)), ((16, 8, false), (24, 8, true)), ((24, 8, true), (8, 8, false))]
    {
        let (wholes, given_up) = read(&[first, second]);
        assert_eq!((wholes, given_up.impossible), (vec![], Some((1, 1))), "{first:?} {second:?}");
    }
}

#[test]
fn an_empty_fragment_gives_the_datagram_up() {
    let (wholes, given_up) = read(&[(0, 16, true), (16, 0, true), (16, 8, false)]);
    assert_eq!((wholes, given_up.impossible, given_up.incomplete), (vec![], Some((1, 1)), Some((3, 1))));
}

#[test]
fn what_is_more_than_whole_units_is_cut_off_of_ipv4_and_ignored_of_ipv6() {
    let parts = [(0, 21, true), (16, 8, false)];
    let (wholes, given_up) = read_of(false, &parts);
    assert_eq!((wholes, given_up.impossible, given_up.incomplete), (vec![24], None, None));
    let (wholes, given_up) = read_of(true, &parts);
    assert_eq!((wholes, given_up.impossible, given_up.incomplete), (vec![], Some((1, 1)), Some((2, 1))));
}

#[test]
fn a_fragment_past_the_largest_datagram_gives_an_ipv4_datagram_up_and_is_ignored_of_ipv6() {
    let parts = [(0, 8, true), (65_528, 8, false), (8, 8, false)];
    let (wholes, given_up) = read_of(false, &parts);
    assert_eq!((wholes, given_up.impossible, given_up.incomplete), (vec![], Some((1, 1)), Some((3, 1))));
    let (wholes, given_up) = read_of(true, &parts);
    assert_eq!((wholes, given_up.impossible, given_up.incomplete), (vec![16], Some((2, 1)), None));
}

#[test]
fn congestion_that_one_fragment_met_is_that_of_the_whole() {
    let mut reassembler = Reassembler::default();
    let mut first = fragment(0, b"first 8.", true);
    first.facts.ecn = Ecn(2);
    let mut last = fragment(8, b"last", false);
    last.facts.ecn = Ecn(Ecn::CE);
    assert!(reassembler.add(&first, 1, None).is_none());
    assert_eq!(reassembler.add(&last, 2, None).unwrap().facts.ecn, Ecn(Ecn::CE));
}

#[test]
fn a_fragment_waits_for_the_rest_for_thirty_seconds_of_ipv4_and_sixty_of_ipv6() {
    for (v6, max_age_ns) in [(false, 30_000_000_000), (true, 60_000_000_000)] {
        for (late_ns, expected) in [(0, None), (1, Some((1, 2)))] {
            let mut reassembler = Reassembler::default();
            let mut first = fragment(0, b"first 8.", true);
            let mut last = fragment(8, b"late", false);
            (first.endpoints.v6, last.endpoints.v6) = (v6, v6);
            reassembler.add(&first, 1, Some(5));
            let whole = reassembler.add(&last, 2, Some(5 + max_age_ns + late_ns));
            assert_eq!(whole.is_some(), expected.is_none());
            assert_eq!(reassembler.finish().incomplete, expected);
        }
    }
}

#[test]
fn an_old_datagram_behind_one_that_may_still_wait_is_not_gone_on_with() {
    let mut reassembler = Reassembler::default();
    let mut v6 = fragment(0, b"first 8.", true);
    v6.endpoints.v6 = true;
    reassembler.add(&v6, 1, Some(0));
    reassembler.add(&fragment(0, b"first 8.", true), 2, Some(0));
    assert!(reassembler.add(&fragment(8, b"late", false), 3, Some(MAX_AGE_NS + 1)).is_none());
    assert_eq!(reassembler.finish().incomplete, Some((2, 3)));
}

#[test]
fn a_flood_of_first_fragments_stays_within_its_bounds() {
    let mut reassembler = Reassembler::default();
    let part = [0; 8 * 1024];
    for identification in 0..10_000 {
        let mut fragment = fragment(0, &part, true);
        fragment.place.identification = identification;
        reassembler.add(&fragment, u64::from(identification), Some(0));
        assert!(reassembler.waiting.len() <= MAX_DATAGRAMS);
        assert!(reassembler.waiting_bytes <= MAX_BYTES + PART_BYTES + part.len());
    }
}
