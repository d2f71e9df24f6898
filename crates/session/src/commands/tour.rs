//! `%tour`: pages of cells that really run, in the session at hand.

use super::{Command, Completing, Effect, Refusal};
use crate::event::{Content, Event};
use crate::session::Session;
use crate::sink::Sink;

pub static COMMANDS: &[Command] = &[Command {
    name: "tour",
    arguments: "[PAGE]",
    help: "A guided tour: each page says something, runs its cells, and shows what they did.",
    example: "%tour 1",
    complete: Completing::Words(PAGE_NUMBERS),
    changes_names: true,
    action: tour,
    ..Command::BASE
}];

/// One page: a thought, and the cells that show it.
struct Page {
    title: &'static str,
    text: &'static str,
    cells: &'static [&'static str],
    /// What to try next by oneself.
    then: &'static str,
}

const PAGE_NUMBERS: &[&str] = &["1", "2", "3", "4", "5", "6"];

/// The pages, in their order. Their variables begin with `tour_`, so that they meet nobody's own.
static PAGES: &[Page] = &[
    Page {
        title: "Arrays and the table after each cell",
        text: "Cells are Rust. Arrays live on the device. `arrays` is what you asked for, `in use` what the allocator\n\
               handed out, `pool` what it holds from the device, each within the next.",
        cells: &[
            "let tour_a = zeros([1024, 1024]);",
            "let tour_b = tanh(&tour_a) + 1.0;",
            "%mem vars",
        ],
        then: "drop(tour_b) frees its 4 MiB at once; the pool keeps them for the next array",
    },
    Page {
        title: "Reserved is not used",
        text: "A tool outside sees the pool, not the arrays. In mode platform both are the same; a switch moves what is\n\
               alive and says what it costs.",
        cells: &["let tour_a = zeros([1024, 1024]);", "%smi", "%mode platform dry", "%whatif"],
        then: "%mode platform, then %smi again; %mode lists all modes",
    },
    Page {
        title: "A value moves, or it is borrowed",
        text: "`&x` lends an array; `x` alone gives it away, and its memory is free as soon as it was used.",
        cells: &[
            "let tour_x = ones([512, 1024]);",
            "let tour_y = exp(&tour_x);",
            "let tour_z = exp(tour_x);",
            "%who",
        ],
        then: "name tour_x now: the error says which cell moved it",
    },
    Page {
        title: "Eager and jitted",
        text: "One op at a time stores every intermediate. A jitted function is planned as a whole: fewer kernels,\n\
               fewer bytes, a lower peak.",
        cells: &[
            "let tour_x = ones([1024, 1024]);",
            "%compare tanh(exp(sin(&tour_x)))",
            "let tour_f = jit(|[x]| tanh(exp(sin(x))));",
            "let tour_y = tour_f([&tour_x]);",
            "%explain tour_f plan",
        ],
        then: "tour_f.call((tour_x,)) moves the argument in: its buffer becomes the result's",
    },
    Page {
        title: "What is cached, and how it goes",
        text: "Every shape compiles once. The pool, the compile cache and the kept outputs can each be cleared, and say\n\
               exactly what went.",
        cells: &[
            "let tour_f = jit(|[x]| (x * 2.0).tanh());",
            "let tour_y = (tour_f([&ones([64])]), tour_f([&ones([128])]));",
            "%caches why tour_f",
            "%clear",
        ],
        then: "%clear caches, and call tour_f again: one miss",
    },
    Page {
        title: "Out of memory, explained",
        text: "Nothing is lost when memory runs out: the report says why, who holds the memory, and which mode would\n\
               have passed, proved by replay. This page asks for more than any device has.",
        cells: &["zeros([1048576, 1048576])", "%why"],
        then: "vramlab why FILE explains the message of a PyTorch or JAX run in the same words",
    },
];

fn tour(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    let number = match arguments {
        "" => return contents(sink),
        text => text.parse::<usize>().ok().filter(|number| (1..=PAGES.len()).contains(number)),
    };
    let Some(number) = number else {
        return Err(Refusal::new(format!("no page `{arguments}`; there are 1 to {}", PAGES.len())));
    };
    let page = &PAGES[number - 1];
    sink.say(format!("{number}/{}  {}", PAGES.len(), page.title));
    sink.line(page.text);
    let mut ran = Effect::Told;
    for cell in page.cells {
        sink.show(Content::of_text(format!("\n> {cell}")));
        match session.run_nested(cell, sink) {
            Ok(Effect::Ran) => ran = Effect::Ran,
            Ok(Effect::Told) => {}
            Err(refusal) => told(session, refusal, sink)?,
        }
    }
    sink.say(format!("then: {}", page.then));
    if number < PAGES.len() {
        sink.say(format!("next: %tour {}", number + 1));
    }
    Ok(ran)
}

fn contents(sink: &mut Sink) -> Result<Effect, Refusal> {
    for (index, page) in PAGES.iter().enumerate() {
        sink.say(format!("%tour {}   {}", index + 1, page.title));
    }
    Ok(Effect::Told)
}

/// A page may show a failure; that of a user who asked to stop ends it.
fn told(session: &mut Session, refusal: Refusal, sink: &mut Sink) -> Result<(), Refusal> {
    match refusal.from_code {
        Some(failed) if !session.interrupt.is_raised() => {
            session.keep_error(&failed.error, failed.ran);
            sink.send(Event::Stdout(format!("{}\n", failed.error.rendered)));
            Ok(())
        }
        from_code => Err(Refusal { from_code, ..refusal }),
    }
}
