//! Who else is at the device: `%peers`, `%guest`.

use super::{Command, Completing, Effect, Refusal, nothing};
use crate::event::Table;
use crate::oom::wrapped;
use crate::report::{duration, mib, mib_short, size};
use crate::session::Session;
use crate::sink::Sink;
use std::time::{SystemTime, UNIX_EPOCH};
use vramlab_memory::oom::GuestReport;
use vramlab_memory::{RefusalCause, parse_bytes};
use vramlab_runtime::{Company, GuestAnswer, Peer, death_text};

pub static COMMANDS: &[Command] = &[
    Command {
        name: "peers",
        help: "The processes at the device: pid, mode, what each holds and how much of it lives.",
        example: "%peers",
        action: peers,
        ..Command::BASE
    },
    Command {
        name: "guest",
        arguments: "[SIZE | free [NUMBER]]",
        help: "Asks the driver for memory beside us, as another package in this process would.",
        example: "%guest 64MiB",
        complete: Completing::Words(&["64MiB", "free"]),
        check: Some(|arguments| parse(arguments).map(|_| ())),
        action: guest,
        ..Command::BASE
    },
];

fn peers(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    nothing("peers", arguments)?;
    let company = match session.context.company() {
        Some(company) => company.map_err(Refusal::new)?,
        None => Company { peers: vec![alone(session)], ..Company::default() },
    };
    sink.table(table(session, &company));
    Ok(Effect::Told)
}

/// The only process at a device of its own.
fn alone(session: &Session) -> Peer {
    let smi = session.context.smi();
    Peer {
        pid: smi.pid,
        name: session.process.clone(),
        mode: smi.mode,
        held: smi.held_bytes + smi.guest_bytes,
        live: smi.figures.requested_bytes,
        since: session.since,
        own: true,
    }
}

fn table(session: &Session, company: &Company) -> Table {
    let context = &session.context;
    let mut table = Table::new(&["", ">pid", "name", "mode", ">held", ">live", "since"]);
    for peer in &company.peers {
        let mark = if peer.own { "→" } else { "" };
        table.row([
            mark.to_string(),
            peer.pid.to_string(),
            peer.name.clone(),
            peer.mode.clone(),
            mib(peer.held),
            mib(peer.live),
            ago(peer.since),
        ]);
    }
    let smi = context.smi();
    table.note(format!(
        "{}: {} of {} MiB held, {} free   (→ this process; live: bytes of arrays)",
        context.device_name(),
        mib_short(smi.total_bytes - smi.free_bytes),
        mib_short(smi.total_bytes),
        mib(smi.free_bytes)
    ));
    if smi.guest_bytes > 0 {
        table.note(format!("{} of ours are guests' (%guest)", mib(smi.guest_bytes)));
    }
    if !context.is_shared() {
        table.note(
            "a device of this session alone; --device cpu:NAME makes one that sessions share",
        );
    }
    for death in &company.deaths {
        table.note(format!("{}   ({})", death_text(death), ago(death.noticed)));
    }
    if company.removed {
        table.note(
            "its ledger was removed by something else: sessions that start now do not meet us",
        );
    }
    table
}

/// How long ago that second was.
fn ago(second: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match now.saturating_sub(second) {
        0 => "just now".into(),
        seconds @ 1..120 => format!("{seconds} s ago"),
        seconds @ 120..7200 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3600),
    }
}

/// The others at a shared device in one line, for the greeting and `%device`; `None` for a device of our own.
pub(crate) fn company_line(session: &Session) -> Option<String> {
    let company = match session.context.company()? {
        Ok(company) => company,
        Err(why) => return Some(why),
    };
    let others: Vec<String> = company
        .peers
        .iter()
        .filter(|peer| !peer.own)
        .map(|peer| {
            let mode = if peer.mode.is_empty() { "starting" } else { &peer.mode };
            format!("pid {} {} ({mode}, holds {})", peer.pid, peer.name, mib(peer.held))
        })
        .collect();
    let name = session.context.device_name();
    Some(match others.is_empty() {
        true => format!("shared: the first one here; others join with --device {name}"),
        false => format!("shared with {}", others.join(", ")),
    })
}

enum Wanted {
    List,
    Invite(u64),
    Free(Option<u32>),
}

fn parse(arguments: &str) -> Result<Wanted, Refusal> {
    let (word, rest) = crate::parts::cut_word(arguments);
    match (word, rest) {
        ("", _) => Ok(Wanted::List),
        ("free", "" | "all") => Ok(Wanted::Free(None)),
        ("free", number) => match number.parse() {
            Ok(number) => Ok(Wanted::Free(Some(number))),
            Err(_) => {
                Err(Refusal::new(format!("%guest free takes a guest's number, so no `{number}`")))
            }
        },
        _ => match parse_bytes(arguments) {
            Ok(0) => Err(Refusal::new("a guest that asks for 0 bytes gets nothing")
                .help("write for example %guest 64MiB")),
            Ok(bytes) => Ok(Wanted::Invite(bytes)),
            Err(why) => {
                Err(Refusal::new(why).help("%guest lists guests, %guest free sends them away"))
            }
        },
    }
}

fn guest(session: &mut Session, arguments: &str, sink: &mut Sink) -> Result<Effect, Refusal> {
    match parse(arguments)? {
        Wanted::List => sink.table(list(session)),
        Wanted::Invite(bytes) => {
            let answer = session.context.invite(bytes).map_err(Refusal::new)?;
            answer_lines(&answer).into_iter().for_each(|line| sink.say(line));
        }
        Wanted::Free(number) => free(session, number, sink)?,
    }
    Ok(Effect::Told)
}

fn list(session: &Session) -> Table {
    let mut table = Table::new(&["guest", ">MiB", ">bytes", "here for"]);
    let guests = session.context.guests();
    for guest in &guests {
        table.row([
            guest.number.to_string(),
            mib(guest.bytes),
            guest.bytes.to_string(),
            duration(guest.age_ns),
        ]);
    }
    if guests.is_empty() {
        table.note("no guest holds memory beside us; %guest 64MiB asks for some");
    }
    table
}

fn free(session: &Session, number: Option<u32>, sink: &mut Sink) -> Result<(), Refusal> {
    let (count, bytes) = session.context.dismiss_guests(number);
    if let (0, Some(number)) = (count, number) {
        let guests = session.context.guests();
        let there: Vec<String> = guests.iter().map(|guest| guest.number.to_string()).collect();
        return Err(Refusal::new(match there.is_empty() {
            true => format!("there is no guest {number}, nor any other"),
            false => format!("there is no guest {number}; there are {}", there.join(", ")),
        }));
    }
    let plural = if count == 1 { "" } else { "s" };
    sink.say(format!("{count} guest{plural} left, {} returned to the driver", size(bytes)));
    Ok(())
}

fn answer_lines(answer: &GuestAnswer) -> Vec<String> {
    let report = &answer.report;
    let we_hold = format!(
        "driver free {}; we hold {}, of which {} live; others hold {}; device {}",
        mib(report.driver_free),
        mib(report.held),
        mib(report.live),
        mib(report.others),
        mib(report.device)
    );
    match answer.number {
        Some(number) => {
            vec![format!("guest {number} got {} from the driver", mib(report.asked)), we_hold]
        }
        None => {
            let asked = mib(report.asked);
            let mut lines = vec![format!("a guest asked {asked} of the driver and got nothing")];
            lines.push(we_hold);
            lines.extend(why_refused(report));
            lines.extend(remedies(report));
            lines
        }
    }
}

/// Where it is not for want of room.
fn why_refused(report: &GuestReport) -> Option<String> {
    match report.refusal.as_ref().map(|refusal| &refusal.cause) {
        Some(RefusalCause::Failed(why)) => Some(why.clone()),
        _ => None,
    }
}

fn remedies(report: &GuestReport) -> Vec<String> {
    if report.asked > report.device {
        return vec!["no mode leaves more than the device has".into()];
    }
    let mut lines = Vec::new();
    if report.driver_free < report.asked
        && report.driver_free.saturating_add(report.trimmable) >= report.asked
    {
        let empty = mib(report.trimmable);
        lines.push(format!("empty regions hold {empty}: %clear pool returns them, then it passes"));
    }
    let modes = report.passing.iter().chain(&report.modest);
    let modes: Vec<String> = modes.map(ToString::to_string).collect();
    if modes.is_empty() {
        lines.push("no other mode would have left it room (this session replayed in each)".into());
        return lines;
    }
    let passes = format!("it passes in {}  (this session replayed in each)", modes.join(" · "));
    let rows = wrapped(&passes).into_iter().enumerate();
    lines.extend(rows.map(|(at, row)| if at == 0 { row } else { format!("  {row}") }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_asked_for_in_words() {
        assert!(matches!(parse(""), Ok(Wanted::List)));
        assert!(matches!(parse("64MiB"), Ok(Wanted::Invite(67_108_864))));
        assert!(matches!(parse("1.5 GiB"), Ok(Wanted::Invite(1_610_612_736))));
        assert!(matches!(parse("free"), Ok(Wanted::Free(None))));
        assert!(matches!(parse("free 3"), Ok(Wanted::Free(Some(3)))));
        for (wrong, word) in
            [("0", "nothing"), ("much", "size"), ("free x", "number"), ("99999TiB9", "size")]
        {
            let refusal = parse(wrong).err().expect(wrong);
            assert!(refusal.message.contains(word), "{wrong}: {}", refusal.message);
        }
    }

    #[test]
    fn ages_are_rounded_down() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        assert_eq!(ago(now + 50), "just now");
        assert_eq!(ago(now - 7300), "2 h ago");
    }
}
