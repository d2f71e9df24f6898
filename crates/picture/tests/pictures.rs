//! Whole pictures: well-formed whatever the names are, to scale, small, and the same each time.

use vramlab_picture::xml::{Element, read};
use vramlab_picture::{
    Chunk, ChunkState, Drawing, Map, Mark, MarkKind, Paper, Region, Samples, Series, Style,
    Timeline, Unit, colour,
};

const MIB: u64 = 1 << 20;

fn chunk(address: u64, bytes: u64, owner: &str) -> Chunk {
    let state = if owner.is_empty() { ChunkState::Free } else { ChunkState::Used };
    let requested = if owner.is_empty() { 0 } else { bytes };
    Chunk { address, bytes, requested, state, owner: owner.into(), note: String::new() }
}

fn region(name: &str, base: u64, sizes: &[(u64, &str)]) -> Region {
    let mut at = base;
    let mut chunks = Vec::new();
    for (bytes, owner) in sizes {
        chunks.push(chunk(at, *bytes, owner));
        at += bytes;
    }
    Region { name: name.into(), chunks }
}

fn elements(svg: &str) -> Vec<Element> {
    read(svg).unwrap_or_else(|wrong| panic!("{wrong}\n{svg}"))
}

/// Rectangles of a fill, each with its title.
fn titled(all: &[Element]) -> Vec<(&Element, &str)> {
    let rects = all.iter().enumerate().filter(|(_, element)| element.name == "rect");
    let title = |index: usize| all[index..].iter().find(|element| element.name == "title");
    rects.filter_map(|(index, rect)| Some((rect, title(index)?.text.as_str()))).collect()
}

#[test]
fn chunks_are_as_wide_as_they_are_large() {
    let regions = vec![
        region("region 1", 0x1000, &[(100 * MIB, "x"), (300 * MIB, "")]),
        region("region 2", 1 << 40, &[(200 * MIB, "params[0].w")]),
    ];
    let map = Map { title: "map".into(), regions };
    let all = elements(&map.svg(Paper::Page));
    let of = |owner: &str| {
        let fill = colour::of(owner);
        let found = titled(&all).into_iter().find(|(rect, title)| {
            rect.attribute("fill") == Some(&fill) && title.starts_with(owner)
        });
        found.unwrap_or_else(|| panic!("{owner} is drawn"))
    };
    let (x, title) = of("x");
    let (w, _) = of("params[0].w");
    let ratio = w.figure("width").unwrap() / x.figure("width").unwrap();
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
    assert!(title.contains("104857600 bytes") && title.contains("0x1000, region 1"), "{title}");
    assert!(map.summary().contains("300 MiB used, 0 B slack, 300 MiB free"), "{}", map.summary());
}

#[test]
fn slack_is_drawn_apart() {
    let mut chunks = vec![chunk(0, 100 * MIB, "x"), chunk(100 * MIB, 100 * MIB, "")];
    chunks[0].requested = 50 * MIB;
    let map = Map { title: String::new(), regions: vec![Region { name: "r".into(), chunks }] };
    let all = elements(&map.svg(Paper::Page));
    let fill = colour::of("x");
    let parts: Vec<&Element> =
        all.iter().filter(|rect| rect.attribute("fill") == Some(&fill)).collect();
    // Used, slack, and the legend's square.
    assert_eq!(parts.len(), 3);
    assert_eq!(parts[1].attribute("fill-opacity"), Some("0.4"));
    let widths = [parts[0].figure("width").unwrap(), parts[1].figure("width").unwrap()];
    assert!((widths[0] - widths[1]).abs() < 1.5, "{widths:?}");
    assert!(all.iter().any(|e| e.text.contains("asked 50 MiB (52428800 bytes), slack 50 MiB")));
}

#[test]
fn thousands_of_chunks_stay_a_small_picture() {
    let sizes: Vec<(u64, String)> = (0..40_000)
        .map(|n| (256 * (1 + n % 7), if n % 3 == 0 { String::new() } else { format!("v[{n}]") }))
        .collect();
    let sizes: Vec<(u64, &str)> = sizes.iter().map(|(bytes, owner)| (*bytes, &**owner)).collect();
    let many = (0..30_000).map(|n| region(&format!("region {n}"), n << 32, &[(2 * MIB, "s")]));
    let mut regions = vec![region("all", 0, &sizes)];
    regions.extend(many);
    let map = Map { title: String::new(), regions };
    let svg = map.svg(Paper::Page);
    let all = elements(&svg);
    assert!(svg.len() < 2_000_000 && all.len() < 20_000, "{} {}", svg.len(), all.len());
    assert!(all.iter().any(|element| element.text.contains("more regions are not drawn")));
    assert!(all.iter().any(|element| element.text.contains("chunks, ")), "runs are told");
    let one = Map { title: String::new(), regions: vec![region("all", 0, &sizes)] };
    let svg = one.svg(Paper::Page);
    let inside: f64 = elements(&svg)
        .iter()
        .filter(|e| e.name == "rect" && e.figure("height").is_some_and(|h| h > 11.5))
        .filter(|e| e.attribute("stroke").is_none() && e.attribute("fill") != Some("currentColor"))
        .map(|e| e.figure("width").unwrap() * e.figure("height").unwrap())
        .sum();
    // Two of three chunks are used, and they are of all sizes alike: so is the ink.
    let used: u64 = sizes.iter().filter(|(_, o)| !o.is_empty()).map(|(b, _)| b).sum();
    let total: u64 = sizes.iter().map(|(b, _)| b).sum();
    let (drawn, real) = (inside / (960.0 * 26.0), used as f64 / total as f64);
    assert!((drawn - real).abs() < 0.02, "{drawn} for {real}");
    assert!(svg.len() < 1_500_000, "{}", svg.len());
}

#[test]
fn addresses_without_memory_are_a_break() {
    let mut held = region("r", 0, &[(10 * MIB, "a")]);
    held.chunks.push(chunk(1 << 40, 10 * MIB, "b"));
    let map = Map { title: String::new(), regions: vec![held] };
    let all = elements(&map.svg(Paper::Alone));
    assert!(all.iter().any(|e| e.text.contains("of addresses without memory")));
    assert_eq!(all[0].attribute("color"), Some("#808080"));
}

#[test]
fn names_cannot_break_out() {
    let bad = "<script>&\"'</svg>\u{0}\u{1b}[0m\n]]>🦀";
    let mut held = region(bad, u64::MAX - 10, &[(5, bad), (5, "")]);
    held.chunks[0].note = bad.into();
    let map = Map { title: bad.into(), regions: vec![held] };
    let all = elements(&map.svg(Paper::Page));
    assert!(!all.iter().any(|element| element.name == "script"));
    let mut line = timeline(&[(0, 5)]);
    line.title = bad.into();
    line.marks[0].note = bad.into();
    line.marks[0].label = bad.into();
    line.series[0].name = bad.into();
    elements(&line.svg(Paper::Page));
}

#[test]
fn nothing_is_a_picture_too() {
    elements(&Map::default().svg(Paper::Page));
    elements(&Timeline::default().svg(Paper::Page));
    let empty = Region { name: "empty".into(), chunks: Vec::new() };
    elements(&Map { title: String::new(), regions: vec![empty.clone(), empty] }.svg(Paper::Page));
    elements(&timeline(&[(0, u64::MAX), (u64::MAX, 0)]).svg(Paper::Page));
}

#[test]
fn the_same_data_is_the_same_picture() {
    let map = Map { title: "m".into(), regions: vec![region("r", 0, &[(3, "a"), (9, "b")])] };
    assert_eq!(map.svg(Paper::Page), map.clone().svg(Paper::Page));
    let line = timeline(&[(0, 5), (9, 7)]);
    assert_eq!(line.svg(Paper::Page), line.clone().svg(Paper::Page));
}

#[test]
fn drawings_stand_one_below_the_other() {
    let map = Map { title: "m".into(), regions: vec![region("r", 0, &[(3, "a"), (9, "b")])] };
    let line = timeline(&[(0, 5), (9, 7)]);
    let all = elements(&vramlab_picture::sheet(&[&map, &line], Paper::Page));
    let second = all.iter().filter_map(|e| e.attribute("transform")).nth(1).expect("two");
    assert_eq!(second, format!("translate(0 {})", map.height() + 12.0));
    let whole = map.height() + line.height() + 12.0;
    assert_eq!(all[0].figure("height"), Some(whole));
    assert!(all[0].attribute("aria-label").expect("words").contains("arrays 7 B"));
    elements(&vramlab_picture::sheet(&[], Paper::Alone));
}

fn timeline(points: &[(u64, u64)]) -> Timeline {
    let samples: Samples = points.iter().copied().collect();
    let series = Series {
        name: "arrays".into(),
        colour: colour::ARRAYS.into(),
        style: Style::Area,
        samples,
    };
    let mark = Mark { x: 0, label: "[1]".into(), note: "cell 1".into(), kind: MarkKind::Cell };
    Timeline {
        title: String::new(),
        series: vec![series],
        marks: vec![mark],
        unit: Unit::Bytes,
        in_time: false,
        peak: Some((0, "peak".into())),
    }
}

#[test]
fn a_peak_of_one_event_is_drawn_at_its_height() {
    let points: Vec<(u64, u64)> =
        (0..200_000).map(|x| (x, if x == 77_777 { 512 * MIB } else { MIB })).collect();
    let line = timeline(&points);
    let svg = line.svg(Paper::Page);
    let all = elements(&svg);
    let peak = all.iter().find(|element| element.name == "circle").expect("a peak");
    // 512 MiB is the top of the axis: the top of the plot.
    assert_eq!(peak.figure("cy"), Some(18.0));
    let path = all.iter().find(|e| e.name == "path" && e.attribute("fill") == Some("none"));
    assert!(path.expect("a line").attribute("d").unwrap().contains("V18"), "the line reaches it");
    assert!(all.iter().any(|element| element.text == "peak 512 MiB"));
    assert!(svg.len() < 40_000, "{}", svg.len());
}

#[test]
fn a_far_bound_does_not_flatten_the_lines() {
    let mut line = timeline(&[(0, MIB), (10, 2 * MIB)]);
    line.series.push(Series {
        name: "limit".into(),
        colour: colour::LIMIT.into(),
        style: Style::Bound,
        samples: [(0, 1 << 40)].into_iter().collect(),
    });
    let all = elements(&line.svg(Paper::Page));
    assert!(all.iter().any(|e| e.text == "limit 1024 GiB, above the picture"));
    assert_eq!(all.iter().filter(|e| e.attribute("stroke-dasharray") == Some("6 4")).count(), 0);
    line.series[1].samples = [(0, 4 * MIB)].into_iter().collect();
    let all = elements(&line.svg(Paper::Page));
    assert_eq!(all.iter().filter(|e| e.attribute("stroke-dasharray") == Some("6 4")).count(), 1);
}

#[test]
fn many_cells_are_labelled_where_there_is_room() {
    let mut line = timeline(&[(0, 1), (10_000, 2)]);
    let mark = |x| Mark { x, label: format!("[{x}]"), note: String::new(), kind: MarkKind::Cell };
    line.marks = (0..5_000).map(|n| mark(2 * n)).collect();
    let all = elements(&line.svg(Paper::Page));
    let labels = all.iter().filter(|e| e.name == "text" && e.text.starts_with('[')).count();
    assert!((10..60).contains(&labels), "{labels}");
}
