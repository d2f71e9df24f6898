//! The ledger of a shared device: seats within one process, which are strangers to each other as processes are, and
//! files that something else has had in hand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use vramlab_device::shared::{JoinError, Joined, Joining, Seat, SharedDriver, join};
use vramlab_memory::{
    Bfc, BfcOptions, Driver, Fake, GIB, MIB, Platform, RefusalCause, Region, Vmm, VmmOptions,
    conformance,
};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("vramlab-shared-{process}-{count}"));
        fs::create_dir_all(&path).expect("a temporary folder");
        Folder(path)
    }

    fn inner(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn ledger(&self) -> PathBuf {
        self.inner("own").join("cpu-lab.device")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn joining(folder: &Folder) -> Joining {
    Joining {
        name: "lab".into(),
        dry: false,
        capacity: None,
        usual_capacity: GIB,
        folders: vec![folder.inner("own")],
        process: "test".into(),
    }
}

fn seat(folder: &Folder) -> Seat {
    join(&joining(folder)).expect("a seat").seat
}

fn driver(folder: &Folder) -> SharedDriver {
    let seat = seat(folder);
    SharedDriver::new(Box::new(Fake::new(seat.capacity())), seat)
}

fn obtain(driver: &mut SharedDriver, bytes: u64) -> Region {
    driver.obtain(bytes).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

#[test]
fn what_one_holds_is_missing_for_the_other() {
    let folder = Folder::new();
    let (mut first, mut second) = (driver(&folder), driver(&folder));
    let large = obtain(&mut first, 768 * MIB);
    let figures = second.figures();
    assert_eq!((figures.total, figures.free), (GIB, 256 * MIB));
    assert_eq!((figures.held, figures.others), (0, 768 * MIB));
    let refusal = second.obtain(300 * MIB).expect_err("only 256 MiB are free");
    assert_eq!((refusal.free, &refusal.cause), (256 * MIB, &RefusalCause::Exhausted));
    let small = obtain(&mut second, 256 * MIB);
    assert_eq!(first.figures().free, 0);
    first.release(large);
    assert_eq!(second.figures().free, 768 * MIB);
    second.release(small);
    assert_eq!((second.figures().allocs, second.figures().refusals), (1, 1));
}

#[test]
fn a_shared_driver_is_a_driver() {
    let folder = Folder::new();
    let shared = || -> Box<dyn Driver> { Box::new(driver(&folder)) };
    conformance::driver(shared());
    conformance::random_events((Box::new(Platform::new(GIB)), shared()), 3000, 5);
    let ondemand = Bfc::new(BfcOptions::ondemand(768 * MIB, true));
    conformance::random_events((Box::new(ondemand), shared()), 3000, 6);
    let vmm = Vmm::new(VmmOptions::vmm(768 * MIB));
    conformance::random_events((Box::new(vmm), shared()), 3000, 7);
    assert_eq!(driver(&folder).figures().others, 0, "whoever ended holds nothing");
}

#[test]
fn granules_are_charged_when_they_are_mapped() {
    let folder = Folder::new();
    let (mut first, second) = (driver(&folder), driver(&folder));
    let memory = first.virtual_memory().expect("the leaf has it");
    let base = memory.reserve(GIB).expect("addresses cost nothing");
    assert_eq!(second.figures().others, 0);
    let memory = first.virtual_memory().expect("the leaf has it");
    memory.map(base, 4 * MIB).expect("all is free");
    assert_eq!(second.figures().others, 4 * MIB);
    let memory = first.virtual_memory().expect("the leaf has it");
    memory.unmap(base, 4 * MIB);
    memory.unreserve(base, GIB);
    assert_eq!(second.figures().others, 0);
}

#[test]
fn the_first_decides_the_size_and_the_last_takes_the_file_away() {
    let folder = Folder::new();
    let with = |capacity| Joining { capacity, ..joining(&folder) };
    let first = join(&with(Some(256 * MIB))).expect("made").seat;
    assert_eq!(fs::metadata(folder.ledger()).expect("there").permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(folder.inner("own")).expect("there").permissions().mode() & 0o777,
        0o700
    );
    let second = join(&with(None)).expect("joined").seat;
    assert_eq!(second.capacity(), 256 * MIB);
    assert!(join(&with(Some(256 * MIB))).is_ok(), "the same size contradicts nothing");
    let error = join(&with(Some(GIB))).expect_err("another size");
    let JoinError::Capacity { asked, has, .. } = &error else { panic!("{error:?}") };
    assert_eq!((*asked, *has), (GIB, 256 * MIB));
    assert!(error.to_string().contains("leave the capacity out"), "{error}");
    first.leave();
    assert!(folder.ledger().exists(), "somebody is left");
    drop(second);
    assert!(!folder.ledger().exists());
    assert_eq!(join(&with(Some(GIB))).expect("made anew").seat.capacity(), GIB);
}

#[test]
fn a_session_that_left_gets_nothing() {
    let folder = Folder::new();
    let mut driver = driver(&folder);
    let region = obtain(&mut driver, MIB);
    let company = seat(&folder).company().expect("readable");
    assert_eq!(company.peers.len(), 2);
    let again = seat(&folder);
    again.leave();
    let mut left = SharedDriver::new(Box::new(Fake::new(GIB)), again);
    let refusal = left.obtain(MIB).expect_err("it has left");
    assert!(matches!(refusal.cause, RefusalCause::Failed(_)), "{refusal:?}");
    driver.release(region);
}

#[test]
fn a_kept_share_is_nobody_elses() {
    let folder = Folder::new();
    let ours = seat(&folder);
    let mut first = SharedDriver::new(Box::new(Fake::new(GIB)), ours.clone());
    let mut second = driver(&folder);
    let region = obtain(&mut first, 768 * MIB);
    let kept = ours.keep_share();
    first.release(region);
    assert_eq!(first.figures().held, 0);
    second.obtain(300 * MIB).expect_err("it is kept");
    let region = obtain(&mut first, 700 * MIB);
    drop(kept);
    let rest = obtain(&mut second, 300 * MIB);
    second.release(rest);
    first.release(region);
}

#[test]
fn words_are_published_without_the_sum() {
    let folder = Folder::new();
    let (first, second) = (seat(&folder), seat(&folder));
    first.publish("ondemand gc=on", 12);
    let peers = second.company().expect("readable").peers;
    let told: Vec<(&str, u64, bool)> =
        peers.iter().map(|peer| (peer.mode.as_str(), peer.live, peer.own)).collect();
    assert!(
        told.contains(&("ondemand gc=on", 12, false)) && told.contains(&("", 0, true)),
        "{told:?}"
    );
    assert!(peers.iter().all(|peer| peer.pid == std::process::id() && peer.name == "test"));
}

#[test]
fn sixty_four_may_come_and_no_more() {
    let folder = Folder::new();
    let seats: Vec<Seat> = (0..64).map(|_| seat(&folder)).collect();
    let error = join(&joining(&folder)).expect_err("all slots are taken");
    assert!(matches!(error, JoinError::Crowded { .. }), "{error:?}");
    drop(seats);
    assert!(!folder.ledger().exists());
}

/// Threads with seats of their own take and give at random; nobody ever has more than there is.
#[test]
fn the_sum_is_right_while_many_take_and_give() {
    let folder = Folder::new();
    let watcher = seat(&folder);
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let folder = &folder;
            scope.spawn(move || {
                let mut driver = driver(folder);
                let mut held: Vec<Region> = Vec::new();
                let mut random = thread * 7919 + 1;
                for _ in 0..1000 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if random >> 63 == 0 || held.is_empty() {
                        held.extend(driver.obtain((random >> 40) % (64 * MIB) + 1).ok());
                    } else {
                        let at = (random >> 33) as usize % held.len();
                        driver.release(held.swap_remove(at));
                    }
                    let figures = driver.figures();
                    let own: u64 = held.iter().map(Region::bytes).sum();
                    assert_eq!(figures.held, own);
                    assert!(figures.held + figures.others + figures.free <= GIB, "{figures:?}");
                }
                held.into_iter().for_each(|region| driver.release(region));
            });
        }
        for _ in 0..200 {
            let held: u64 = watcher.company().expect("readable").peers.iter().map(|p| p.held).sum();
            assert!(held <= GIB, "{held} of {GIB}");
        }
    });
    let company = watcher.company().expect("readable");
    assert_eq!(company.peers.len(), 1);
    assert_eq!(company.deaths, []);
}

/// Many come and go at once: nobody is ever alone with a file that somebody else removed.
#[test]
fn coming_and_going_at_the_same_time() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let mut driver = driver(&folder);
                    let region = obtain(&mut driver, 256 * MIB);
                    driver.release(region);
                }
            });
        }
    });
    assert!(!folder.ledger().exists());
}

#[test]
fn damaged_files_nobody_uses_are_made_anew() {
    let folder = Folder::new();
    seat(&folder).leave();
    let whole = {
        let _seat = seat(&folder);
        fs::read(folder.ledger()).expect("readable")
    };
    let mut version = whole.clone();
    version[8] = 9;
    let mut header = whole.clone();
    header[24] ^= 255;
    for (bytes, note) in [
        (whole[..100].to_vec(), "damaged"),
        (whole[..20].to_vec(), "damaged"),
        (header, "damaged"),
        (version, "another version"),
        (Vec::new(), ""),
        (vec![0; 5000], ""),
    ] {
        fs::write(folder.ledger(), &bytes).expect("writable");
        let Joined { seat, notes } = join(&joining(&folder)).expect("made anew");
        assert_eq!(seat.capacity(), GIB);
        assert!(
            notes.iter().any(|told| told.contains(note)) || note.is_empty(),
            "{note}: {notes:?}"
        );
        assert_eq!(fs::metadata(folder.ledger()).expect("there").len(), whole.len() as u64);
    }
}

/// A ledger whose slots are in use and whose processes are gone, as SIGKILL leaves it.
#[test]
fn what_the_dead_held_comes_back_and_is_spoken_of() {
    let folder = Folder::new();
    let left_behind = {
        let mut dying = driver(&folder);
        let region = obtain(&mut dying, 512 * MIB);
        let bytes = fs::read(folder.ledger()).expect("readable");
        dying.release(region);
        bytes
    };
    fs::create_dir_all(folder.inner("own")).expect("writable");
    fs::write(folder.ledger(), &left_behind).expect("writable");
    let first = join(&joining(&folder)).expect("nobody lives there").seat;
    let company = first.company().expect("readable");
    assert_eq!(company.peers.len(), 1);
    let [death] = &company.deaths[..] else { panic!("{:?}", company.deaths) };
    assert_eq!((death.pid, death.held), (std::process::id(), 512 * MIB));
}

#[test]
fn a_ledger_damaged_under_living_sessions_is_an_error_in_words() {
    let folder = Folder::new();
    let mut driver = driver(&folder);
    let region = obtain(&mut driver, MIB);
    let whole = fs::read(folder.ledger()).expect("readable");
    for bytes in [b"rubbish".to_vec(), Vec::new(), whole[..50].to_vec(), vec![255; whole.len()]] {
        fs::write(folder.ledger(), &bytes).expect("writable");
        let refusal = driver.obtain(MIB).expect_err("the file is no ledger");
        let RefusalCause::Failed(why) = &refusal.cause else { panic!("{refusal:?}") };
        assert!(why.contains("damaged") && why.contains("end every session"), "{why}");
        let error = join(&joining(&folder)).expect_err("somebody uses it");
        assert!(error.to_string().contains("another name"), "{error}");
        assert_eq!(driver.figures().held, MIB, "what is ours is known all the same");
    }
    fs::write(folder.ledger(), &whole).expect("writable");
    let second = obtain(&mut driver, MIB);
    driver.release(second);
    driver.release(region);
}

#[test]
fn a_removed_ledger_is_noticed() {
    let folder = Folder::new();
    let first = seat(&folder);
    fs::remove_file(folder.ledger()).expect("removed");
    assert!(first.company().expect("readable").removed);
    let second = seat(&folder);
    drop(first);
    assert!(folder.ledger().exists(), "the newcomer's file is not the old one's to remove");
    drop(second);
}

#[test]
fn files_of_another_kind_are_left_alone() {
    let folder = Folder::new();
    fs::create_dir_all(folder.inner("own")).expect("writable");
    let refused = |word: &str| {
        let error = join(&joining(&folder)).expect_err(word);
        assert!(error.to_string().contains(word), "{error}");
    };
    fs::write(folder.ledger(), "my notes").expect("writable");
    refused("no ledger of vramlab's");
    assert_eq!(fs::read(folder.ledger()).expect("readable"), b"my notes");
    fs::remove_file(folder.ledger()).expect("removed");
    symlink("/etc/hostname", folder.ledger()).expect("a link");
    refused("link");
    fs::remove_file(folder.ledger()).expect("removed");
    fs::create_dir(folder.ledger()).expect("a folder");
    refused("is a folder");
}

#[test]
fn another_folder_serves_where_the_first_does_not() {
    let folder = Folder::new();
    let elsewhere = |first: &Path| Joining {
        folders: vec![first.to_path_buf(), folder.inner("other")],
        ..joining(&folder)
    };
    fs::write(folder.inner("file"), "").expect("writable");
    symlink(folder.inner("target"), folder.inner("link")).expect("a link");
    fs::create_dir(folder.inner("target")).expect("writable");
    for first in ["absent/own", "file", "file/own", "link"] {
        let joined = join(&elsewhere(&folder.inner(first))).expect(first);
        let [note] = &joined.notes[..] else { panic!("{first}: {:?}", joined.notes) };
        assert!(note.contains("because") && note.contains(first), "{note}");
        assert!(joined.seat.path().starts_with(folder.inner("other")));
    }
    let only = Joining { folders: vec![folder.inner("absent/own")], ..joining(&folder) };
    let error = join(&only).expect_err("no folder");
    assert!(
        matches!(&error, JoinError::NoFolder { reasons, .. } if reasons.len() == 1),
        "{error:?}"
    );
    assert!(error.to_string().contains("needs none"), "{error}");
}

/// The first process had to go elsewhere; the second finds it there although its own first choice would do by now.
#[test]
fn a_device_is_found_where_it_is() {
    let folder = Folder::new();
    let later = folder.inner("later");
    let two =
        Joining { folders: vec![later.join("own"), folder.inner("other")], ..joining(&folder) };
    let first = join(&two).expect("elsewhere").seat;
    fs::create_dir(&later).expect("writable");
    let second = join(&two).expect("joined").seat;
    assert_eq!(first.path(), second.path());
    assert_eq!(second.company().expect("readable").peers.len(), 2);
}

#[test]
fn rights_of_others_are_taken_away() {
    let folder = Folder::new();
    let own = folder.inner("own");
    fs::create_dir(&own).expect("writable");
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("ours");
    let _seat = seat(&folder);
    assert_eq!(fs::metadata(&own).expect("there").permissions().mode() & 0o777, 0o700);
}

#[test]
fn odd_names_are_refused_before_a_file_is_touched() {
    let folder = Folder::new();
    for name in ["", "..", "../up", "a/b", "a b", "läb", &"x".repeat(300)] {
        let error = join(&Joining { name: name.into(), ..joining(&folder) }).expect_err(name);
        assert!(matches!(error, JoinError::Name(_)), "{error:?}");
    }
    assert!(!folder.inner("own").exists());
}
