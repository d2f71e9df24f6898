//! The map, the timeline and fragmentation: their figures are the session's, and the pictures hold them too.

use super::{MIB, fails, ok, session};
use crate::Session;
use crate::event::{Content, Event, MEMORY_DISPLAY, Status, Watch};
use vramlab_picture::xml::{Element, read};

/// What a command shows, in all its forms.
#[track_caller]
fn shown(session: &mut Session, cell: &str) -> Content {
    let mut contents = Vec::new();
    let result = session.execute(cell, &mut |event| {
        if let Event::Display { content, .. } = event {
            contents.push(content);
        }
    });
    assert_eq!((result.status, contents.len()), (Status::Ok, 1), "{cell}: {:?}", result.error);
    contents.remove(0)
}

#[track_caller]
fn picture(content: &Content) -> Vec<Element> {
    let svg = content.svg.as_ref().expect("a picture");
    let html = content.html.as_ref().expect("a page");
    assert!(html.contains("<svg"), "the page holds the picture, since hovering needs it");
    read(svg).unwrap_or_else(|wrong| panic!("{wrong}\n{svg}"))
}

fn titles(elements: &[Element]) -> Vec<&str> {
    elements.iter().filter(|e| e.name == "title").map(|e| e.text.as_str()).collect()
}

#[test]
fn the_map_tells_used_slack_and_free_apart() {
    let mut session = session(&[("mode", "ondemand")]);
    ok(&mut session, "let free = zeros([64, 1024, 256]);\nlet x = zeros([30, 1024, 256]);");
    ok(&mut session, "drop(free); let weights = zeros([40, 1024, 256]);");
    let content = shown(&mut session, "%mem map");
    // 40 of the chunk of 64 that came free: not split, so 24 are slack.
    let row = content.text.lines().find(|line| line.trim_start().starts_with("1 ")).expect("a row");
    assert!(row.contains("64  40.0   24.0") || row.contains("40.0   24.0"), "{}", content.text);
    assert!(row.contains('█') && row.contains('▒') && !row.contains('·'), "{row}");
    let second = content
        .text
        .lines()
        .find(|line| line.trim_start().starts_with("2 "))
        .expect("a second row");
    assert!(second.contains('█') && second.contains('·'), "{second}");
    let elements = picture(&content);
    let titles = titles(&elements);
    let buffer =
        session.context.buffers().into_iter().find(|b| b.owner == "weights").expect("held");
    let told = titles.iter().find(|title| title.starts_with("weights\n")).expect("weights");
    for part in [
        "64 MiB (67108864 bytes)",
        "asked 40 MiB (41943040 bytes), slack 24 MiB",
        &format!("at {:#x}, region 1", buffer.address),
        "made in cell 2, line 1",
    ] {
        assert!(told.contains(part), "{part} is missing in {told}");
    }
}

#[test]
fn a_map_of_many_arrays_is_small_and_its_text_short() {
    let mut session = session(&[]);
    ok(&mut session, "let mut v = vec![]; for n in 0..3000 { v.push(zeros([n + 1])); }");
    let content = shown(&mut session, "%mem map");
    assert!(content.text.lines().count() < 60, "{}", content.text);
    assert!(content.text.contains("largest of 3001 chunks"), "{}", content.text);
    assert!(content.svg.as_ref().expect("a picture").len() < 600_000);
    let elements = picture(&content);
    assert!(titles(&elements).iter().any(|title| title.contains(" chunks, ")));
}

#[test]
fn the_map_is_drawn_in_every_mode() {
    let modes =
        ["vmm", "cuda_async", "caching", "caching expandable_segments=on", "platform", "ondemand"];
    for mode in modes {
        let mut session = session(&[("mode", mode)]);
        assert!(shown(&mut session, "%mem map").text.contains("the pool is empty"));
        ok(&mut session, "let a = zeros([3, 1024, 256]); let b = zeros([30, 1024, 256]); drop(a);");
        let content = shown(&mut session, "%mem map");
        let elements = picture(&content);
        assert!(titles(&elements).iter().any(|t| t.starts_with("b\n3")), "{mode}");
    }
}

#[test]
fn the_timeline_has_the_figures_of_the_cells() {
    let mut session = session(&[]);
    ok(&mut session, "let a = zeros([10, 1024, 256]);");
    ok(&mut session, "1 + 1");
    ok(&mut session, "{ let t = zeros([90, 1024, 256]); }\nlet b = zeros([20, 1024, 256]);");
    let content = shown(&mut session, "%mem timeline");
    let text = &content.text;
    assert!(text.contains("cells 1 to 3 that changed memory"), "{text}");
    // Cell 2 did nothing to memory, so it has no place on the axis.
    assert!(text.contains("[1]") && !text.contains("[2]"), "{text}");
    let arrays = text.lines().find(|line| line.starts_with(" arrays")).expect("arrays");
    assert!(arrays.contains("now    30.0") && arrays.contains("peak 100.0 in [3]"), "{arrays}");
    assert!(arrays.contains('█') && arrays.contains('·'), "{arrays}");
    assert!(text.contains("within cell 3, event by event (3 events)"), "{text}");
    assert!(text.contains("2 allocations, 1 frees"), "{text}");
    let elements = picture(&content);
    assert!(elements.iter().any(|element| element.text == "peak 100 MiB"));
    let titles = titles(&elements);
    let cell = titles.iter().find(|title| title.starts_with("cell 3:")).expect("cell 3");
    assert!(cell.contains("arrays 10.0 → 30.0 MiB, peak 100.0, pool 768.0"), "{cell}");
    assert!(cell.contains("zeros([90, 1024, 256])"), "{cell}");
    let words = elements[0].attribute("aria-label").expect("words");
    assert!(words.contains("limit 768 MiB"), "{words}");
}

#[test]
fn the_timeline_of_an_earlier_cell_by_events_or_time() {
    let mut session = session(&[("mode", "platform")]);
    ok(&mut session, "let a = zeros([256]);\nlet b = zeros([512]);");
    ok(&mut session, "drop(a);");
    let text = shown(&mut session, "%mem timeline 1").text;
    assert!(text.contains("within cell 1, event by event (4 events)"), "{text}");
    let content = shown(&mut session, "%mem timeline [1] time");
    assert!(content.text.contains("within cell 1, over time"), "{}", content.text);
    let lines: Vec<String> = picture(&content).into_iter().map(|element| element.text).collect();
    assert!(lines.iter().any(|text| text == "line 2"), "marks tell the line");
    let text = fails(&mut session, "%mem timeline 99", "command");
    assert!(text.contains("cell 99 changed no memory; the last that did are 1, 2"), "{text}");
    fails(&mut session, "%mem timeline soon", "command");
    fails(&mut session, "%mem tiemline", "command");
}

#[test]
fn a_failure_and_a_switch_are_marked() {
    let mut session = session(&[]);
    assert!(ok(&mut session, "%mem timeline").contains("nothing has touched"));
    assert!(ok(&mut session, "%mem fragmentation").contains("nothing has touched"));
    ok(&mut session, "%mode ondemand");
    fails(
        &mut session,
        "for n in (20..=200).step_by(20) { zeros([n, 1024, 256]); }\nlet big = zeros([400, 1024, 256]);",
        "OOM",
    );
    let content = shown(&mut session, "%mem timeline");
    assert!(content.text.contains("OOM 400.0 MiB failed at event"), "{}", content.text);
    assert!(content.text.contains("limit 768"), "{}", content.text);
    let elements = picture(&content);
    assert!(elements.iter().any(|element| element.text == "OOM 400.0 MiB"));
    // 480 free in regions of 32, 64, 128 and 256.
    let content = shown(&mut session, "%mem fragmentation");
    assert!(content.text.contains("now 46.67 %"), "{}", content.text);
    assert!(
        content.text.contains("free 480.0 of pool 480, largest 256.0: 224.0 of it lies elsewhere"),
        "{}",
        content.text
    );
    assert!(picture(&content).iter().any(|element| element.text.starts_with("most ")));
    ok(&mut session, "%mode platform");
    ok(&mut session, "let a = zeros([256]);");
    let elements = picture(&shown(&mut session, "%mem timeline"));
    assert!(elements.iter().any(|element| element.text == "platform"), "the switch is marked");
}

#[test]
fn strips_and_sparklines_have_the_width_of_the_face() {
    let mut session = session(&[]);
    ok(&mut session, "let a = zeros([1024]);");
    for columns in [60, 100, 160] {
        session.set_columns(columns);
        for cell in ["%mem map", "%mem timeline", "%mem fragmentation"] {
            let text = shown(&mut session, cell).text;
            let drawn = |line: &&str| line.contains(['█', '·']);
            let widest = text
                .lines()
                .filter(drawn)
                .map(|line| line.chars().count())
                .max()
                .expect("drawn lines");
            // The figures beside have their own width; below 90 columns the least strip may stick out.
            assert!(widest <= columns.max(90), "{columns}: {widest}\n{text}");
        }
    }
    session.set_columns(0);
    ok(&mut session, "%mem map\n%mem timeline");
}

#[test]
fn a_live_watch_pins_one_display_with_the_map() {
    let mut session = session(&[]);
    let mut displays = Vec::new();
    session.execute("%watch live", &mut |event| displays.push(event));
    let [Event::Display { content, id, update }] = &displays[..] else {
        panic!("one display: {displays:?}")
    };
    assert_eq!((id.as_deref(), *update), (Some(MEMORY_DISPLAY), false));
    assert!(content.html.as_ref().is_some_and(|html| html.contains("<svg")));
    let mut reports = Vec::new();
    session.execute("let weights = zeros([64, 1024, 256]);", &mut |event| {
        if let Event::Memory(report) = event {
            reports.push(report);
        }
    });
    let report = &reports[0];
    assert_eq!(report.watch, Watch::Live);
    assert!(read(&report.picture).is_ok() && report.picture.contains("weights"));
    let page = crate::report::content(report).html.expect("a page");
    assert!(page.contains("64.0") && page.contains("<svg"), "{page}");
    // A terminal shows the table and a line of the pool.
    let text: Vec<String> =
        crate::report::tables(report, 80).iter().map(crate::table::plain).collect();
    assert!(text.len() == 2 && text[1].contains('█') && text[1].contains('·'), "{text:?}");
    ok(&mut session, "%watch brief");
    let mut pictures = 0;
    session.execute("let b = zeros([4]);", &mut |event| {
        if let Event::Memory(report) = event {
            pictures += report.picture.len();
        }
    });
    assert_eq!(pictures, 0, "nothing is drawn that nobody sees");
}

#[test]
fn a_map_holds_the_same_bytes_as_the_table() {
    let mut session = session(&[("mode", "caching")]);
    for n in [1, 30, 200, 5, 77] {
        ok(&mut session, &format!("let v{n} = zeros([{n}, 1024, 32]);"));
    }
    ok(&mut session, "drop(v30);");
    let map = crate::pictures::map(&session.context);
    let bytes: u64 = map.regions.iter().map(vramlab_picture::Region::bytes).sum();
    let now = session.context.report().figures;
    assert_eq!(bytes, now.pool_bytes);
    let used: u64 = map
        .regions
        .iter()
        .flat_map(|region| &region.chunks)
        .filter(|chunk| chunk.state == vramlab_picture::ChunkState::Used)
        .map(|chunk| chunk.bytes)
        .sum();
    assert_eq!(used, now.bytes_in_use);
    assert!(now.bytes_in_use > 35 * MIB);
}
