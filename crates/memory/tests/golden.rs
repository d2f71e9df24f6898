//! `bfc-golden`: every row of the traces recorded from the real allocator, regions and figures included.

use std::collections::HashMap;
use std::path::Path;
use vramlab_memory::{
    Bfc, BfcOptions, Block, Driver, DriverFigures, Fake, FakeOptions, MemoryResource, Refusal,
    Region, Stream, VirtualMemory,
};

/// A driver that writes its calls down as the rows of a trace.
struct Scribe {
    fake: Fake,
    made: Vec<(u64, u64)>,
    rows: Vec<String>,
    calls: u64,
}

impl Driver for Scribe {
    fn obtain(&mut self, bytes: u64) -> Result<Region, Refusal> {
        let result = self.fake.obtain(bytes);
        self.calls += 1;
        match &result {
            Ok(region) => {
                self.rows.push(format!("region,{},{bytes},{}", self.made.len(), region.base()));
                self.made.push((region.base(), bytes));
            }
            Err(_) => self.rows.push(format!("subfail,{},{bytes},FAIL", self.calls)),
        }
        result
    }

    fn release(&mut self, region: Region) {
        let made = self.made.iter().position(|(base, _)| *base == region.base());
        let ordinal = made.expect("a region was made before it is released");
        self.rows.push(format!("regionfree,{ordinal},{},{}", region.bytes(), region.base()));
        self.fake.release(region);
    }

    fn figures(&self) -> DriverFigures {
        self.fake.figures()
    }

    fn describe(&self) -> String {
        self.fake.describe()
    }

    fn virtual_memory(&mut self) -> Option<&mut dyn VirtualMemory> {
        None
    }
}

struct Trace {
    options: HashMap<String, String>,
    rows: Vec<String>,
}

fn read(path: &Path) -> Trace {
    let text = std::fs::read_to_string(path).expect("a golden trace is readable");
    let line = text.lines().find(|line| line.starts_with("# options:")).expect("options are named");
    let pairs = line.trim_start_matches("# options:").split_whitespace();
    let options = pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect();
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1).map(String::from);
    Trace { options, rows: rows.collect() }
}

fn replay(path: &Path) {
    let trace = read(path);
    let number = |name: &str| trace.options[name].parse::<u64>().unwrap_or(1 << 50);
    let options = BfcOptions {
        limit: number("limit"),
        growth: number("growth") == 1,
        gc: number("gc") == 1,
        fragmentation_fraction: trace.options["frac"].parse().expect("a number"),
        coalesce: number("coalesce") == 1,
    };
    let fake = FakeOptions {
        granularity: number("gran"),
        gap: number("gap"),
        ..FakeOptions::of(number("device"))
    };
    let fake = Fake::with_options(fake);
    let mut driver = Scribe { fake, made: Vec::new(), rows: Vec::new(), calls: 0 };
    let mut bfc = Bfc::new(options);
    let mut live: HashMap<String, Block> = HashMap::new();
    let mut next = 0;
    while next < trace.rows.len() {
        // The driver's rows come before the row of the call that caused them.
        let caused = (next..).find(|row| {
            let row = &trace.rows[*row];
            ["alloc", "free,", "stats"].iter().any(|event| row.starts_with(event))
        });
        let at = caused.expect("a trace ends with a call");
        let row: Vec<&str> = trace.rows[at].splitn(4, ',').collect();
        let result = step(&mut bfc, &mut driver, &mut live, &row);
        driver.rows.push(result);
        let expected = &trace.rows[next..=at];
        for (expected, got) in expected.iter().zip(&driver.rows) {
            assert!(same(expected, got), "{}: {expected} but {got}", path.display());
        }
        assert_eq!(expected.len(), driver.rows.len(), "{}: {:?}", path.display(), driver.rows);
        driver.rows.clear();
        assert_eq!(bfc.check(), Ok(()));
        next = at + 1;
    }
}

fn step(
    bfc: &mut Bfc,
    driver: &mut Scribe,
    live: &mut HashMap<String, Block>,
    row: &[&str],
) -> String {
    let result = match row[0] {
        "alloc" => {
            let bytes = row[2].parse().expect("a size");
            match bfc.allocate(bytes, Stream(0), driver) {
                // The real allocator answers zero bytes with a null pointer.
                Ok(block) if block.is_empty() => "FAIL".to_string(),
                Ok(block) => {
                    let at = block.address();
                    live.insert(row[1].to_string(), block);
                    let inside = |(base, bytes): &(u64, u64)| *base <= at && at - base < *bytes;
                    let region = driver.made.iter().rposition(inside).expect("in a region");
                    format!("{region}:{}", at - driver.made[region].0)
                }
                Err(_) => "FAIL".to_string(),
            }
        }
        "free" => {
            let block = live.remove(row[1]).expect("a live block is freed");
            bfc.deallocate(block, Stream(0), driver);
            "ok".to_string()
        }
        _ => {
            let stats = bfc.stats();
            let (in_use, pool) = (stats.bytes_in_use, stats.pool_bytes);
            format!("{in_use}/{pool}/{}", stats.fragmentation())
        }
    };
    format!("{},{},{},{result}", row[0], row[1], row[2])
}

/// Equal, except that fragmentation is compared to 2e-7, and the real figure of a full pool is not a number.
fn same(expected: &str, got: &str) -> bool {
    if !expected.starts_with("stats") {
        return expected == got;
    }
    let (expected, theirs) = expected.rsplit_once('/').expect("three figures");
    let (got, ours) = got.rsplit_once('/').expect("three figures");
    let ours: f64 = ours.parse().expect("a number");
    let theirs: f64 = theirs.parse().expect("a number or nan");
    let equal = if theirs.is_nan() { ours == 0.0 } else { (theirs - ours).abs() < 2e-7 };
    expected == got && equal
}

macro_rules! golden {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
            replay(&folder.join(concat!(stringify!($name), ".csv")));
        }
    )* };
}

mod bfc_golden {
    use super::*;

    golden! { gc_pins mixed_small near_limit near_limit_coalesce near_limit_gc prealloc_backoff random60 refused_growth rule_edges sawtooth }

    #[test]
    fn no_trace_is_left_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let files = std::fs::read_dir(folder).expect("the folder of golden traces");
        let traces = files.filter(|file| {
            let name = file.as_ref().expect("an entry").file_name();
            name.to_string_lossy().ends_with(".csv")
        });
        assert_eq!(traces.count(), 10);
    }
}
