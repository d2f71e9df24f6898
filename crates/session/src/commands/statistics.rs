//! `%stats`: the allocator's figures under JAX's names, under PyTorch's, and in PyTorch's table.

use super::{Command, Completing, Effect, Refusal};
use crate::config::unknown;
use crate::event::{Content, Table};
use crate::session::Session;
use crate::sink::Sink;
use vramlab_array::ir::Engine;
use vramlab_memory::TorchStats;

pub static COMMANDS: &[Command] = &[Command {
    name: "stats",
    arguments: "[jax | torch | summary | reset]",
    help: "The allocator's statistics under JAX's names, PyTorch's names or in its table; reset begins peaks again.",
    example: "%stats summary",
    complete: Completing::Words(&VIEWS),
    action: stats,
    ..Command::BASE
}];

const VIEWS: [&str; 4] = ["jax", "torch", "summary", "reset"];

fn stats(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match arguments {
        "" | "jax" => sink.table(jax(session)),
        "torch" => sink.table(torch(session)),
        "summary" => sink.show(Content::of_text(summary(session))),
        "reset" => {
            session.context.reset_peak();
            sink.say("peaks begin again at the present values; totals stay");
        }
        other => return Err(Refusal::new(unknown("view of the statistics", other, VIEWS))),
    }
    Ok(Effect::Told)
}

/// As `device.memory_stats()` has them, and two of the allocator behind.
fn jax(session: &Session) -> Table {
    let stats = session.context.with_heap(|heap| heap.stats());
    let mut table = Table::new(&["name", ">value"]);
    for (name, value) in [
        ("num_allocs", stats.num_allocs),
        ("bytes_in_use", stats.bytes_in_use),
        ("peak_bytes_in_use", stats.peak_bytes_in_use),
        ("largest_alloc_size", stats.largest_alloc_size),
        ("bytes_limit", stats.bytes_limit),
        ("largest_free_block_bytes", stats.largest_free_block_bytes),
        ("pool_bytes", stats.pool_bytes),
        ("peak_pool_bytes", stats.peak_pool_bytes),
        ("requested_bytes", stats.requested_bytes),
        ("peak_requested_bytes", stats.peak_requested_bytes),
    ] {
        table.row([name.to_string(), value.to_string()]);
    }
    table.note("the last two are not JAX's: what the arrays asked for, without slack");
    table
}

fn torch_stats(session: &Session) -> TorchStats {
    let retries = session.context.report().retries;
    let mut stats = session.context.with_heap(|heap| heap.torch_stats());
    // Requests that the session's ladder saved were tried again too.
    stats.num_alloc_retries += retries;
    stats
}

fn torch(session: &Session) -> Table {
    let mut table = Table::new(&["name", ">value"]);
    for (name, value) in torch_stats(session).entries() {
        table.row([name, value.to_string()]);
    }
    note(session).into_iter().for_each(|note| table.note(note));
    table
}

fn summary(session: &Session) -> String {
    let title = format!(
        "vramlab memory summary in PyTorch's layout, device {}",
        session.context.device_name()
    );
    let mut text = torch_stats(session).summary(&title, false);
    note(session).into_iter().for_each(|note| text.push_str(&format!(" {note}\n")));
    text.trim_end().to_string()
}

/// What PyTorch's names cannot tell of the mode that answers.
fn note(session: &Session) -> Vec<String> {
    let now = session.context.report();
    let mut notes = Vec::new();
    if session.context.with_heap(|heap| heap.resource().torch_stats().is_none()) {
        notes.push(format!(
            "{} has no pools of small and large blocks: %mode caching counts all that PyTorch does",
            now.mode
        ));
    } else if !now.older_pools.is_empty() {
        notes.push(
            "an older pool still holds arrays; the figures are those of caching alone".into(),
        );
    }
    notes
}
