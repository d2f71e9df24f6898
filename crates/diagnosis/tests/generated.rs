//! Texts of every kind, written by a generator that knows the right answers: sizes, order, units and what a paste does to
//! them vary; the figures and the verdict are computed and not read.

use vramlab_diagnosis::{Diagnosis, Kind, Name, diagnose};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A small generator of numbers: the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// What launchers and terminals make of a text of several lines.
fn pasted(text: &str, numbers: &mut Numbers) -> (String, String) {
    let prefixes = [
        "",
        "[rank3]: ",
        "12: ",
        "worker-3: ",
        "trainer-1  | ",
        "(Trainer pid=4242, ip=10.0.0.1) ",
        "2026-02-03T11:20:41.123456789Z stderr F ",
        "Feb 03 11:20:41 node7 python3[4242]: ",
        "[pod/trainer-0/main] ",
        "> ",
        "[1,0]<stderr>:",
        "ERROR:root:",
    ];
    let prefix = numbers.one(&prefixes);
    let width = numbers.one(&[0, 0, 0, 80, 100, 132, 60, 72]);
    let trimmed = numbers.below(2) == 0;
    let ending = numbers.one(&["\n", "\n", "\r\n"]);
    let coloured = numbers.below(4) == 0;
    let mut out = String::new();
    for line in text.lines() {
        let chars: Vec<char> = line.chars().collect();
        let pieces: Vec<String> = match width {
            0 => vec![line.to_string()],
            _ if chars.is_empty() => vec![String::new()],
            72 => filled(line, 72),
            width => chars.chunks(width).map(|piece| piece.iter().collect()).collect(),
        };
        for piece in pieces {
            let piece = if trimmed { piece.trim_end().to_string() } else { piece };
            let piece = match coloured {
                true => format!("\u{1b}[31m{piece}\u{1b}[0m"),
                false => piece,
            };
            out.push_str(&format!("{prefix}{piece}{ending}"));
        }
    }
    let json = numbers.below(8) == 0 && width == 0 && prefix.is_empty();
    if json {
        let lines = out.split_inclusive('\n').map(|line| {
            let line = serde_json::json!({"log": line, "stream": "stderr"});
            format!("{line}\n")
        });
        out = lines.collect();
    }
    (out, format!("prefix {prefix:?}, width {width}, coloured {coloured}, json {json}"))
}

/// Broken at spaces, as mail programs do.
fn filled(line: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.last_mut().expect("one line");
        if last.len() + word.len() >= width && !last.trim().is_empty() {
            lines.push(word.into());
        } else {
            last.push_str(if last.is_empty() { "" } else { " " });
            last.push_str(word);
        }
    }
    lines
}

/// Within the text's own tolerance of the truth, and with a tolerance that is no larger than the print's.
#[track_caller]
fn figure(d: &Diagnosis, name: Name, truth: u64, coarse: u64, text: &str) {
    let Some(found) = d.figures.get(name) else {
        panic!("{} is missing ({truth})\n{d}\n{text}", name.key());
    };
    assert!(
        found.bytes.abs_diff(truth) <= found.tolerance && found.tolerance <= coarse,
        "{}: {found:?} is not {truth}\n{d}\n{text}",
        name.key()
    );
}

/// As XLA prints bytes: `28B`, `1.8KiB`, `60.01MiB`.
fn human(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| bytes >> shift > 0) {
        None => format!("{bytes}B"),
        Some((unit, 10)) => format!("{:.1}{unit}", bytes as f64 / KIB as f64),
        Some((unit, shift)) => format!("{:.2}{unit}", bytes as f64 / (1u64 << shift) as f64),
    }
}

/// A pool as an allocator might leave it: regions of chunks, each used (with what its client asked) or free.
struct Pool {
    regions: Vec<Vec<(u64, Option<u64>)>>,
    limit: u64,
    asked: u64,
}

impl Pool {
    fn random(numbers: &mut Numbers) -> Pool {
        let count = numbers.within(1, 6);
        let regions = (0..count).map(|_| {
            let mut was_free = false;
            let count = numbers.within(1, 9);
            let chunks = (0..count).map(|_| {
                let shift = numbers.within(0, 19);
                let size = (numbers.within(1, 64) << shift) * 256;
                // Free neighbours would have joined.
                was_free = !was_free && numbers.below(2) == 0;
                let slack = if numbers.below(2) == 0 { 256 } else { size / 3 + 1 };
                let asked = size - numbers.below(slack);
                (size, (!was_free).then_some(asked.max(1)))
            });
            chunks.collect()
        });
        let regions: Vec<Vec<(u64, Option<u64>)>> = regions.collect();
        let mut pool = Pool { regions, limit: 0, asked: 0 };
        let grow = if numbers.below(2) == 0 { 0 } else { numbers.within(1, 4000) * 64 * KIB };
        pool.limit = pool.bytes() + grow;
        let lowest = pool.largest_free().max(grow) / 256 + 1;
        let above = 2 << numbers.within(2, 23);
        pool.asked = 256 * numbers.within(lowest, lowest + above);
        pool
    }

    fn bytes(&self) -> u64 {
        self.regions.iter().flatten().map(|(size, _)| size).sum()
    }

    fn in_use(&self) -> u64 {
        self.regions.iter().flatten().filter(|(_, used)| used.is_some()).map(|(size, _)| size).sum()
    }

    fn largest_free(&self) -> u64 {
        let free = self.regions.iter().flatten().filter(|(_, used)| used.is_none());
        free.map(|(size, _)| *size).max().unwrap_or(0)
    }

    fn bin(size: u64) -> usize {
        ((size / 256).ilog2() as usize).min(20)
    }

    fn verdict(&self) -> &'static str {
        match () {
            () if self.asked > self.limit => "too_big",
            () if self.asked <= self.limit - self.in_use() => "fragmented",
            () => "limit",
        }
    }

    /// The dump, line by line.
    fn text(&self, numbers: &mut Numbers) -> String {
        let name = numbers.one(&["GPU_0_bfc", "bfc_cpu_allocator_for_gpu", "xla_gpu_1_bfc"]);
        let dated = numbers.below(2) == 0;
        let by_op = numbers.below(2) == 0;
        let mut clock = 649_514u64;
        let mut log = |severity: char, text: String| {
            clock += 7;
            match dated {
                true => format!(
                    "2026-02-03 11:20:41.{clock:06}: {severity} external/local_xla/xla/tsl/framework/bfc_allocator.cc:1105] {text}\n"
                ),
                false => format!(
                    "{severity}0000 00:00:1796055200.{clock:06}   23385 bfc_allocator.cc:1105] {text}\n"
                ),
            }
        };
        let requested_by =
            if by_op { "requested by op Mul" } else { ".  Current allocation summary follows." };
        let mut out = log(
            'W',
            format!(
                "Allocator ({name}) ran out of memory trying to allocate {} (rounded to {}){requested_by}",
                human(self.asked),
                self.asked
            ),
        );
        out.push_str("If the cause is memory fragmentation maybe the environment variable 'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \nCurrent allocation summary follows.\n");
        out += &log('I', format!("BFCAllocator dump for {name}"));
        for bin in 0..21usize {
            let chunks = self.regions.iter().flatten().filter(|(size, _)| Pool::bin(*size) == bin);
            let chunks: Vec<_> = chunks.collect();
            let used = chunks.iter().filter(|(_, used)| used.is_some());
            out += &log(
                'I',
                format!(
                    "Bin ({}): \tTotal Chunks: {}, Chunks in use: {}. {} allocated for chunks. {} in use in bin. {} client-requested in use in bin.",
                    256u64 << bin,
                    chunks.len(),
                    used.clone().count(),
                    human(chunks.iter().map(|(size, _)| size).sum()),
                    human(used.clone().map(|(size, _)| size).sum()),
                    human(used.clone().filter_map(|(_, asked)| *asked).sum()),
                ),
            );
        }
        out += &log(
            'I',
            format!(
                "Bin for {} was {}, Chunk State: ",
                human(self.asked),
                human(256 << Pool::bin(self.asked))
            ),
        );
        let mut address = 0x7f7c_be1f_d040u64;
        for region in &self.regions {
            let size: u64 = region.iter().map(|(size, _)| size).sum();
            out += &log('I', format!("Next region of size {size}"));
            for (n, (size, used)) in region.iter().enumerate() {
                let word = if used.is_some() { "InUse" } else { "Free " };
                let next = if n + 1 == region.len() { u64::MAX } else { n as u64 + 1 };
                out += &log('I', format!("{word} at {address:x} of size {size} next {next}"));
                address += size;
            }
        }
        out += &log('I', "     Summary of in-use Chunks by size: ".into());
        for (size, _) in self.regions.iter().flatten().filter(|(_, used)| used.is_some()) {
            out += &log('I', format!("1 Chunks of size {size} totalling {}", human(*size)));
        }
        out += &log('I', format!("Sum Total of in-use chunks: {}", human(self.in_use())));
        out += &log(
            'I',
            format!(
                "Total size in pool: {} memory_limit_: {} available size: {} curr_region_allocation_bytes_: {}",
                human(self.bytes()),
                human(self.limit),
                human(self.limit - self.bytes()),
                human(self.limit)
            ),
        );
        out += &log('I', "Stats: ".into());
        out + &format!(
            "Limit:            {:>20}\nInUse:            {:>20}\nMaxInUse:         {:>20}\nNumAllocs:        {:>20}\nMaxAllocSize:     {:>20}\nReserved:         {:>20}\nPeakReserved:     {:>20}\nLargestFreeBlock: {:>20}\n\n",
            human(self.limit),
            human(self.in_use()),
            human(self.in_use()),
            14,
            human(self.in_use()),
            "0B",
            "0B",
            "0B"
        )
    }
}

#[test]
fn dumps_of_bfc_are_read_to_the_byte_however_they_were_pasted() {
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut verdicts = std::collections::BTreeMap::new();
    for round in 0..400 {
        let pool = Pool::random(&mut numbers);
        let (text, how) = pasted(&pool.text(&mut numbers), &mut numbers);
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}, {how}\n{text}");
        assert_eq!(d.kind, Kind::BfcDump, "{shown}");
        // The limit has two decimals; a request or a rest of its last digit cannot be judged.
        let near = |a: u64, b: u64| a.abs_diff(b) <= 11 * MIB;
        if !near(pool.asked, pool.limit) && !near(pool.asked, pool.limit - pool.in_use()) {
            assert_eq!(d.verdict.key(), pool.verdict(), "{shown}\n{d}");
            *verdicts.entry(pool.verdict()).or_insert(0) += 1;
        }
        figure(&d, Name::Asked, pool.asked, 0, &shown);
        figure(&d, Name::InUse, pool.in_use(), 0, &shown);
        figure(&d, Name::Reserved, pool.bytes(), 0, &shown);
        figure(&d, Name::Free, pool.bytes() - pool.in_use(), 0, &shown);
        figure(&d, Name::LargestFree, pool.largest_free(), 0, &shown);
        figure(&d, Name::Limit, pool.limit, 6 * MIB, &shown);
        let ours = pool.regions.iter().flatten().filter(|(size, _)| Pool::bin(*size) > 0);
        let requested: u64 = ours.filter_map(|(_, asked)| *asked).sum();
        figure(&d, Name::Requested, requested, 60 * MIB, &shown);
    }
    assert!(verdicts.len() == 3, "{verdicts:?}");
}

/// As PyTorch prints bytes.
fn torch(bytes: u64) -> String {
    match bytes {
        0..=1024 => format!("{bytes} bytes"),
        b if b <= MIB => format!("{:.2} KiB", b as f64 / KIB as f64),
        b if b <= GIB => format!("{:.2} MiB", b as f64 / MIB as f64),
        b => format!("{:.2} GiB", b as f64 / GIB as f64),
    }
}

struct Card {
    asked: u64,
    total: u64,
    free: u64,
    allocated: u64,
    idle: u64,
    private: u64,
    others: Vec<(u64, u64)>,
    own: u64,
    allowed: Option<u64>,
}

impl Card {
    fn random(numbers: &mut Numbers) -> Card {
        let total = numbers.within(4 * GIB, 140 * GIB);
        let share = |numbers: &mut Numbers, of: u64| of / 1000 * numbers.below(1000);
        let count = numbers.below(4);
        let others: Vec<(u64, u64)> = (0..count)
            .map(|n| {
                (20_000 + 1000 * n + numbers.below(999), share(numbers, total / 5) + 300 * MIB)
            })
            .collect();
        let beside: u64 = others.iter().map(|(_, bytes)| bytes).sum();
        let left = total - beside;
        let context = numbers.within(200 * MIB, 900 * MIB);
        let reserved = share(numbers, left - context);
        let allocated = share(numbers, reserved);
        let idle = reserved - allocated;
        let own = reserved + context;
        let free = left - own;
        let private = if numbers.below(3) == 0 { share(numbers, allocated) } else { 0 };
        let reach = [free, free + idle, free + idle + private, free + idle + beside, total];
        let asked = (numbers.one(&reach) + 2 * MIB + share(numbers, 2 * GIB)).max(free + 2 * MIB);
        let asked = asked.next_multiple_of(2 * MIB);
        Card { asked, total, free, allocated, idle, private, others, own, allowed: None }
    }

    fn beside(&self) -> u64 {
        self.others.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The rules of the answers, on the truth.
    fn verdict(&self) -> &'static str {
        let within = self.free + self.idle;
        match self.asked {
            asked if asked > self.total => "too_big",
            asked if asked <= within => "fragmented",
            asked if asked <= within + self.private => "cached",
            asked if asked <= within + self.beside() => "other_process",
            _ => "limit",
        }
    }

    /// Is the request too near a bound for figures of two decimals?
    fn close(&self) -> bool {
        let within = self.free + self.idle;
        let bounds = [self.total, within, within + self.private, within + self.beside()];
        bounds.iter().any(|bound| bound.abs_diff(self.asked) < 70 * MIB)
    }

    fn sentence(&self, numbers: &mut Numbers) -> String {
        let class = numbers.one(&[
            "torch.OutOfMemoryError: CUDA",
            "torch.cuda.OutOfMemoryError: CUDA",
            "RuntimeError: CUDA",
            "torch.OutOfMemoryError: HIP",
            "torch._C._OutOfMemoryError: CUDA",
        ]);
        let capacity = numbers.one(&["capacity", "capacty"]);
        let mut text = format!(
            "{class} out of memory. Tried to allocate {}. GPU {} has a total {capacity} of {} of which {} is free. ",
            torch(self.asked),
            numbers.below(8),
            torch(self.total),
            torch(self.free)
        );
        for (pid, bytes) in &self.others {
            text += &format!("Process {pid} has {} memory in use. ", torch(*bytes));
        }
        text += &format!(
            "Including non-PyTorch memory, this process has {} memory in use. ",
            torch(self.own)
        );
        if let Some(allowed) = self.allowed {
            text += &format!("{} allowed; ", torch(allowed));
        }
        text +=
            &format!("Of the allocated memory {} is allocated by PyTorch, ", torch(self.allocated));
        if self.private > 0 {
            text += &format!(
                "with {} allocated in private pools (e.g., CUDA Graphs), ",
                torch(self.private)
            );
        }
        text += &format!("and {} is reserved by PyTorch but unallocated. ", torch(self.idle));
        text += numbers.one(&[
            "",
            "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
            "If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
            "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
        ]);
        text + "\n"
    }
}

#[test]
fn sentences_of_pytorch_are_judged_by_their_figures() {
    let mut numbers = Numbers(0x0dd0_beef_1234_4321);
    let mut verdicts = std::collections::BTreeMap::new();
    for round in 0..1500 {
        let card = Card::random(&mut numbers);
        let before = numbers.one(&[
            "",
            "Traceback (most recent call last):\n  File \"train.py\", line 42, in <module>\n    loss = model(x)\n",
            "Epoch 3:  12%|#2        | 480/4000 [01:07<08:38,  6.79it/s, loss=2.31]\n",
        ]);
        let text = format!("{before}{}", card.sentence(&mut numbers));
        let (text, how) = pasted(&text, &mut numbers);
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}, {how}\n{text}");
        assert_eq!(d.kind, Kind::PytorchSentence, "{shown}");
        for (name, truth) in [
            (Name::Asked, card.asked),
            (Name::DeviceTotal, card.total),
            (Name::Free, card.free),
            (Name::InUse, card.allocated),
            (Name::IdleReserved, card.idle),
            (Name::OwnProcess, card.own),
        ] {
            figure(&d, name, truth, 6 * MIB, &shown);
        }
        figure(&d, Name::Reserved, card.allocated + card.idle, 12 * MIB, &shown);
        let pids: Vec<u64> = d.processes.iter().map(|p| p.pid).collect();
        let right: Vec<u64> = card.others.iter().map(|(pid, _)| *pid).collect();
        assert_eq!(pids, right, "{shown}");
        assert_eq!(
            d.figures.get(Name::OtherProcesses).is_some(),
            !right.is_empty(),
            "{shown}\n{d}"
        );
        if !card.close() {
            assert_eq!(d.verdict.key(), card.verdict(), "{shown}\n{d}");
            *verdicts.entry(card.verdict()).or_insert(0) += 1;
        }
    }
    assert!(verdicts.len() == 5, "{verdicts:?}");
}

#[test]
fn a_memory_summary_completes_the_sentence_beside_it() {
    let mut numbers = Numbers(0x5eed);
    for round in 0..200 {
        let card = Card::random(&mut numbers);
        let cell = |bytes: u64| match bytes {
            b if b < 768 * KIB => format!("{b} B"),
            b if b < 768 * MIB => format!("{} KiB", b >> 10),
            b => format!("{} MiB", b >> 20),
        };
        let peak = card.allocated + numbers.below(GIB);
        let row = |label: &str, now: u64, most: u64| {
            let (now, most) = (cell(now), cell(most));
            format!("| {label:<21} | {now:>10} | {most:>10} | {most:>10} | {now:>10} |\n")
        };
        let edge = format!("|{}|\n", "-".repeat(75));
        let table = format!(
            "|{}|\n|                  PyTorch CUDA memory summary, device ID 0                 |\n{edge}|            CUDA OOMs: 1            |        cudaMalloc retries: 2         |\n|{}|\n|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n{edge}{}{}{}{edge}{}{edge}{}{}{edge}",
            "=".repeat(75),
            "=".repeat(75),
            row("Allocated memory", card.allocated, peak),
            row("      from large pool", card.allocated, peak),
            row("      from small pool", 0, 0),
            row("Requested memory", card.allocated - 77, peak),
            row("GPU reserved memory", card.allocated + card.idle, peak + card.idle),
            row("Non-releasable memory", 1, 2),
        );
        let beside = numbers.below(2) == 0;
        let text = if beside { table + &card.sentence(&mut numbers) } else { table };
        let (text, how) = match beside {
            true => (text, "as it is".to_string()),
            false => (text.replace('\n', "\r\n"), "CRLF".to_string()),
        };
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}, {how}\n{text}");
        figure(&d, Name::InUse, card.allocated, 6 * MIB, &shown);
        figure(&d, Name::Reserved, card.allocated + card.idle, 12 * MIB, &shown);
        figure(&d, Name::PeakInUse, peak, 6 * MIB, &shown);
        figure(&d, Name::Requested, card.allocated - 77, 6 * MIB, &shown);
        match beside {
            true => assert_eq!(d.kind, Kind::PytorchSentence, "{shown}"),
            // An OOM was counted; of what, the table does not say.
            false => {
                assert_eq!((d.kind, d.verdict.key()), (Kind::Counters, "cannot_tell"), "{shown}")
            }
        }
    }
}

/// Cards with their processes, in the three forms that nvidia-smi prints.
#[test]
fn tables_of_nvidia_smi_in_all_forms() {
    let mut numbers = Numbers(0x7ab1e);
    for round in 0..300 {
        let total = numbers.within(8_000, 144_000);
        let used = numbers.within(500, total);
        let count = numbers.below(4);
        let processes: Vec<(u64, u64)> =
            (0..count).map(|n| (1000 * (n + 1) + numbers.below(999), used / 5 + n)).collect();
        let form = numbers.below(3);
        let text = match form {
            0 => {
                let mut text = format!(
                    "| NVIDIA-SMI 550.90.07   Driver Version: 550.90.07   CUDA Version: 12.4 |\n\
                     |   0  NVIDIA A10                    On  | 00000000:1B:00.0 Off |       0 |\n\
                     | N/A   41C    P0             98W / 400W | {used:>7}MiB / {total:>7}MiB |      0%      Default |\n\
                     |                                        |                      |     N/A |\n\
                     +----+\n| Processes:    |\n|  GPU   GI   CI        PID   Type   Process name       GPU Memory |\n|====|\n"
                );
                for (pid, bytes) in &processes {
                    text += &format!(
                        "|    0   N/A  N/A    {pid:>7}      C   /opt/conda/bin/python  {bytes:>7}MiB |\n"
                    );
                }
                text
            }
            1 => {
                let mut text = format!(
                    "==============NVSMI LOG==============\n\nAttached GPUs                             : 1\nGPU 00000000:1B:00.0\n    Product Name                          : NVIDIA A10\n    FB Memory Usage\n        Total                             : {total} MiB\n        Reserved                          : 300 MiB\n        Used                              : {used} MiB\n        Free                              : {} MiB\n    BAR1 Memory Usage\n        Total                             : 256 MiB\n        Used                              : 4 MiB\n        Free                              : 252 MiB\n    Processes\n",
                    total - used
                );
                for (pid, bytes) in &processes {
                    text += &format!(
                        "        GPU instance ID                   : N/A\n        Process ID                        : {pid}\n            Type                          : C\n            Name                          : python\n            Used GPU Memory               : {bytes} MiB\n"
                    );
                }
                text
            }
            _ => {
                let units = numbers.below(2) == 0;
                let unit = if units { " MiB" } else { "" };
                let mut text = format!(
                    "name, index, memory.used [MiB], memory.total [MiB], memory.free [MiB]\nNVIDIA A10, 0, {used}{unit}, {total}{unit}, {}{unit}\n",
                    total - used
                );
                text += "pid, process_name, used_gpu_memory [MiB]\n";
                for (pid, bytes) in &processes {
                    text += &format!("{pid}, python, {bytes}{unit}\n");
                }
                text
            }
        };
        let prefix =
            numbers.one(&["", "[rank0]: ", "trainer-1  | ", "2026-02-03T11:20:41.1Z stdout F "]);
        let text: String = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}\n{text}");
        assert_eq!((d.kind, d.verdict.key()), (Kind::DriverTable, "no_failure"), "{shown}\n{d}");
        figure(&d, Name::DeviceTotal, total * MIB, MIB, &shown);
        figure(&d, Name::InUse, used * MIB, MIB, &shown);
        figure(&d, Name::Free, (total - used) * MIB, 2 * MIB, &shown);
        let found: Vec<(u64, u64)> =
            d.processes.iter().map(|p| (p.pid, p.held.map_or(0, |q| q.bytes / MIB))).collect();
        assert_eq!(found, processes, "{shown}");
    }
}

/// XLA's own words for what a program needs.
#[test]
fn errors_of_xla_are_read() {
    let mut numbers = Numbers(0x71a);
    for round in 0..400 {
        let parts: Vec<u64> = (0..3).map(|_| numbers.within(1, 4000) * 4 * MIB).collect();
        let total: u64 = parts.iter().sum();
        let asked = parts[2];
        let printed = match numbers.below(3) {
            0 => format!("{asked} bytes"),
            1 => human(asked),
            _ => format!("{asked} bytes."),
        };
        let head = numbers.one(&[
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate ",
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate ",
            "XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for ",
            "RESOURCE_EXHAUSTED: Out of memory allocating ",
            "F external/xla/xla/pjrt/pjrt_stream_executor_client.cc:2] Check failed: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate ",
        ]);
        let statistics = format!(
            "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n             parameter allocation: {:>9}\n              constant allocation:        0B\n        maybe_live_out allocation: {:>9}\n     preallocated temp allocation: {:>9}\n                 total allocation: {:>9}\n",
            human(parts[0]),
            human(parts[1]),
            human(parts[2]),
            human(total)
        );
        let with = numbers.below(2) == 0;
        let text = format!("{head}{printed}\n{}", if with { &statistics } else { "" });
        let (text, how) = pasted(&text, &mut numbers);
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}, {how}\n{text}");
        assert_eq!((d.kind, d.verdict.key()), (Kind::JaxError, "cannot_tell"), "{shown}\n{d}");
        figure(&d, Name::Asked, asked, 6 * MIB, &shown);
        if with {
            for (name, truth) in [
                (Name::Argument, parts[0]),
                (Name::Output, parts[1]),
                (Name::Temp, parts[2]),
                (Name::Total, total),
            ] {
                figure(&d, name, truth, 6 * MIB, &shown);
            }
        }
    }
}

/// A plan, as `--xla_dump_to` writes it.
#[test]
fn plans_are_summed() {
    let mut numbers = Numbers(0x91a4);
    for round in 0..200 {
        let (mut argument, mut output, mut temp, mut constant) = (0, 0, 0, 0);
        let mut text = "BufferAssignment:\n".to_string();
        let count = numbers.within(1, 12);
        for n in 0..count {
            let size = numbers.within(1, 1 << 20) * 4;
            let words = match numbers.below(4) {
                0 => {
                    argument += size;
                    format!("parameter {n}, shape |f32[{}]| at ShapeIndex {{}}:", size / 4)
                }
                1 => {
                    output += size;
                    "maybe-live-out:".to_string()
                }
                2 => {
                    temp += size;
                    "preallocated-temp:".to_string()
                }
                _ => {
                    constant += size;
                    "constant:".to_string()
                }
            };
            text += &format!("allocation {n}: size {size}, {words}\n");
            text +=
                &format!(" value: <{n} v.{n} @0> (size={size},offset=0): f32[{}]{{0}}\n", size / 4);
        }
        text += &format!("\nTotal bytes used: {}\n", argument + output + temp + constant);
        if numbers.below(2) == 0 {
            text = text.replace('\n', "\r\n");
        }
        let d = diagnose(text.as_bytes());
        let shown = format!("round {round}\n{text}");
        assert_eq!((d.kind, d.verdict.key()), (Kind::BufferAssignment, "no_failure"), "{shown}");
        for (name, truth) in [
            (Name::Argument, argument),
            (Name::Output, output),
            (Name::Temp, temp),
            (Name::ConstantAndThreadLocal, constant),
            (Name::Total, argument + output + temp + constant),
        ] {
            figure(&d, name, truth, 0, &shown);
        }
    }
}

#[test]
fn encodings_change_nothing() {
    let mut numbers = Numbers(0xc0de);
    let text = Pool::random(&mut numbers).text(&mut numbers);
    let plain = diagnose(text.as_bytes());
    let little: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let big: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(text.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    let bare: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
    for (name, bytes) in [
        ("UTF-16 LE", little),
        ("UTF-16 BE", big),
        ("UTF-16 without a mark", bare),
        ("UTF-8 with a mark", marked),
    ] {
        let d = diagnose(&bytes);
        assert_eq!((d.figures, d.verdict), (plain.figures.clone(), plain.verdict), "{name}");
    }
}
