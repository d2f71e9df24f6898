//! A trace as one HTML page that needs nothing else: figures, the timeline, the address map at the peak, owners,
//! segments. Pictures are `picture`'s; hovering names the owner.

use crate::text::{count, part, seconds};
use crate::trace::Trace;
use crate::view::{Moment, Owned, SegmentView, View};
use std::fmt::Write as _;
use vramlab_memory::format_bytes;
use vramlab_picture::xml::escape;
use vramlab_picture::{
    Chunk, ChunkState, Map, Mark, MarkKind, Paper, Region, Series, Style, Timeline, colour,
};

/// How many owners and segments the page lists.
const MOST_ROWS: usize = 200;

const HEAD: &str = "<style>
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;max-width:1040px;margin:24px auto;padding:0 16px;
 background:light-dark(#fff,#14171c);color:light-dark(#1d2129,#d8dde6)}
h1{font-size:20px;margin:0 0 4px}h2{font-size:16px;margin:28px 0 6px}
p{margin:2px 0 10px}.dim{opacity:.7}
table{border-collapse:collapse;width:100%}td,th{padding:3px 8px;text-align:right;vertical-align:top;
 border-bottom:1px solid light-dark(#e2e5ea,#2a2f38)}th{font-weight:600}
td.l,th.l{text-align:left;font-family:ui-monospace,monospace;font-size:12px;overflow-wrap:anywhere}
figure{margin:0;overflow:hidden;border:1px solid light-dark(#e2e5ea,#2a2f38);border-radius:6px;padding:8px}
figure svg{width:100%;height:auto;cursor:grab;touch-action:none}
summary{cursor:pointer}
</style>
";

/// Ctrl and the wheel look closer at a picture, dragging moves it, a double click shows all of it again.
const SCRIPT: &str = "<script>
for(const svg of document.querySelectorAll('figure svg')){
 const box=svg.viewBox.baseVal,all=[box.x,box.y,box.width,box.height];let from=null;
 const at=e=>{const r=svg.getBoundingClientRect();
  return[box.x+(e.clientX-r.left)/r.width*box.width,box.y+(e.clientY-r.top)/r.height*box.height]};
 const set=(x,y,w,h)=>{box.width=w;box.height=h;
  box.x=Math.min(Math.max(x,all[0]),all[0]+all[2]-w);box.y=Math.min(Math.max(y,all[1]),all[1]+all[3]-h)};
 svg.addEventListener('wheel',e=>{if(!e.ctrlKey&&!e.metaKey)return;
  e.preventDefault();const[x,y]=at(e),k=Math.min(Math.max(Math.exp(e.deltaY/400),all[2]/60/box.width),all[2]/box.width);
  set(x-(x-box.x)*k,y-(y-box.y)*k,box.width*k,box.height*k)},{passive:false});
 svg.addEventListener('pointerdown',e=>{from=at(e);svg.setPointerCapture(e.pointerId)});
 svg.addEventListener('pointermove',e=>{if(!from)return;const to=at(e);
  set(box.x+from[0]-to[0],box.y+from[1]-to[1],box.width,box.height)});
 svg.addEventListener('pointerup',()=>from=null);
 svg.addEventListener('dblclick',()=>set(...all));
}
</script>
";

/// The pages of a file's devices, one after the other, as one document.
pub fn page(all: &[(Trace, View)]) -> String {
    let mut html =
        String::from("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>");
    let file = all.first().map_or("", |(trace, _)| &trace.file);
    escape(&format!("{file} – memory"), &mut html);
    html.push_str("</title>\n");
    html.push_str(HEAD);
    for (trace, view) in all {
        device(trace, view, &mut html);
    }
    html.push_str(SCRIPT);
    html.push_str("</html>\n");
    html
}

fn device(trace: &Trace, view: &View, html: &mut String) {
    element("h1", &format!("{}, device {}", view.file, view.device), html);
    element("p", &headline(view), html);
    for note in &view.notes {
        element("p", &format!("Note: {note}"), html);
    }
    element("h2", "Over the events", html);
    figure(&timeline(view).svg(Paper::Page), html);
    html.push_str("<p class=\"dim\">Hover for figures; Ctrl and the wheel look closer, dragging moves, a double click shows all.</p>\n");
    if !view.peak.segments.is_empty() {
        element("h2", "Addresses at the peak", html);
        figure(&map(trace, &view.peak).svg(Paper::Page), html);
    }
    owners(view, html);
    segments(&view.peak, html);
}

fn headline(view: &View) -> String {
    let mut line = format!(
        "{}: {} events over {}. Peak {} at event {}",
        view.format.words(),
        count(view.events),
        seconds(view.time_ns.1.saturating_sub(view.time_ns.0)),
        format_bytes(view.peak.requested),
        count(view.peak.event),
    );
    if view.peak_reserved > 0 {
        let _ = write!(line, ", at most {} reserved", format_bytes(view.peak_reserved));
    }
    if let Some(fragmentation) = view.peak.fragmentation {
        let _ = write!(line, ", fragmentation at the peak {}", part(fragmentation));
    }
    if let Some(fragmentation) = view.end.fragmentation {
        let _ = write!(line, ", at the end {}", part(fragmentation));
    }
    line.push('.');
    line
}

fn element(name: &str, text: &str, html: &mut String) {
    let _ = write!(html, "<{name}>");
    escape(text, html);
    let _ = writeln!(html, "</{name}>");
}

fn figure(svg: &str, html: &mut String) {
    let _ = writeln!(html, "<figure>{svg}</figure>");
}

/// What was asked for and held, over the events.
pub fn timeline(view: &View) -> Timeline {
    let series = |name: &str, colour: &str, style, samples: &vramlab_picture::Samples| Series {
        name: name.to_string(),
        colour: colour.to_string(),
        style,
        samples: samples.clone(),
    };
    let mut all = Vec::new();
    if view.peak_reserved > 0 {
        all.push(series("reserved", colour::POOL, Style::Line, &view.reserved));
    }
    all.push(series("asked for", colour::ARRAYS, Style::Area, &view.requested));
    let mark = |(x, label): &(u64, String)| Mark {
        x: *x,
        label: label.clone(),
        note: format!("event {}: {label}", count(*x)),
        kind: MarkKind::Cell,
    };
    let mut marks: Vec<Mark> = view.marks.iter().map(mark).collect();
    if let Some((event, bytes)) = view.first_oom {
        marks.push(Mark {
            x: event,
            label: "failed".to_string(),
            note: format!("event {}: {} failed", count(event), format_bytes(bytes)),
            kind: MarkKind::Failure,
        });
        marks.sort_by_key(|mark| mark.x);
    }
    Timeline {
        title: String::new(),
        peak: Some((all.len() - 1, "peak".to_string())),
        series: all,
        marks,
        ..Timeline::default()
    }
}

/// The segments of a moment with their blocks and holes.
pub fn map(trace: &Trace, moment: &Moment) -> Map {
    let region = |segment: &SegmentView| {
        let mut chunks = Vec::new();
        let free = |from: u64, to: u64| Chunk {
            address: from,
            bytes: to - from,
            requested: 0,
            state: ChunkState::Free,
            owner: String::new(),
            note: String::new(),
        };
        let mut reached = segment.base;
        for block in &segment.blocks {
            if block.address > reached {
                chunks.push(free(reached, block.address));
            }
            chunks.push(Chunk {
                address: block.address,
                bytes: block.bytes,
                requested: block.requested.min(block.bytes),
                state: ChunkState::Used,
                owner: trace.owners.label(block.owner),
                note: trace.owners.lines(block.owner).iter().skip(1).take(6).fold(
                    String::new(),
                    |note, line| {
                        if note.is_empty() { line.clone() } else { note + "\n" + line }
                    },
                ),
            });
            reached = block.address + block.bytes;
        }
        let end = segment.base + segment.bytes;
        if end > reached {
            chunks.push(free(reached, end));
        }
        Region { name: format!("{:#x}", segment.base), chunks }
    };
    Map { title: String::new(), regions: moment.segments.iter().map(region).collect() }
}

fn owners(view: &View, html: &mut String) {
    element("h2", "Owners at the peak", html);
    html.push_str(
        "<table><tr><th>bytes</th><th>share</th><th>blocks</th><th class=\"l\">made in</th></tr>\n",
    );
    for owned in view.peak.owners.iter().take(MOST_ROWS) {
        let share = owned.bytes as f64 / view.peak.requested.max(1) as f64;
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"l\">",
            format_bytes(owned.bytes),
            part(share),
            count(owned.blocks)
        );
        stack(owned, html);
        html.push_str("</td></tr>\n");
    }
    html.push_str("</table>\n");
    more(view.peak.owners.len(), html);
}

fn stack(owned: &Owned, html: &mut String) {
    let first = owned.lines.first().map_or("(not told)", |line| line);
    if owned.lines.len() < 2 {
        return escape(first, html);
    }
    html.push_str("<details><summary>");
    escape(first, html);
    html.push_str("</summary>");
    for line in &owned.lines[1..] {
        escape(line, html);
        html.push_str("<br>");
    }
    html.push_str("</details>");
}

fn segments(moment: &Moment, html: &mut String) {
    if moment.segments.is_empty() {
        return;
    }
    element("h2", "Segments at the peak, most free first", html);
    html.push_str(
        "<table><tr><th class=\"l\">address</th><th>size</th><th>in use</th><th>free</th><th>largest hole</th>\
         <th>blocks</th></tr>\n",
    );
    for segment in moment.by_free().into_iter().take(MOST_ROWS) {
        let _ = writeln!(
            html,
            "<tr><td class=\"l\">{:#x}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            segment.base,
            format_bytes(segment.bytes),
            format_bytes(segment.in_use),
            format_bytes(segment.bytes - segment.in_use),
            format_bytes(segment.largest_free),
            count(segment.blocks.len() as u64)
        );
    }
    html.push_str("</table>\n");
    more(moment.segments.len(), html);
}

fn more(all: usize, html: &mut String) {
    if all > MOST_ROWS {
        element("p", &format!("and {} more", count((all - MOST_ROWS) as u64)), html);
    }
}
