//! One thread pool: workers spin for a moment after each job, then park.
//!
//! A job is a number of tasks that may run in any order on any thread; whoever comes takes the next one. What a task
//! computes never depends on which thread runs it or on how many there are.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// How long a worker looks for the next job before it parks. Waking a parked one costs about 50 µs.
const SPIN: Duration = Duration::from_micros(50);

/// One for each processor that this process may use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, |n| n.get())
}

/// Threads that run the tasks of one job at a time together with the caller.
#[derive(Debug)]
pub struct Pool {
    threads: usize,
    shared: Arc<Shared>,
    /// Held for the length of a job: callers take turns.
    turn: Mutex<()>,
    started: AtomicBool,
}

#[derive(Debug)]
struct Shared {
    /// Counts jobs; a worker that sees a new number has a job to join.
    generation: AtomicUsize,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    job: Option<Arc<Job>>,
    stop: bool,
}

#[derive(Debug)]
struct Job {
    work: Work,
    tasks: usize,
    next: AtomicUsize,
    /// Workers that are inside `run`.
    inside: AtomicUsize,
    panicked: AtomicBool,
}

/// A borrowed closure whose lifetime the job outlives only in type: see `Pool::run`.
struct Work(*const (dyn Fn(usize) + Sync));

// SAFETY: the closure is `Sync`, so it may be called from several threads at once.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Work")
    }
}

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool of `threads`, the caller's included. Workers start with the first job that has use for them.
    pub fn new(threads: usize) -> Pool {
        let shared = Shared {
            generation: AtomicUsize::new(0),
            state: Mutex::new(State::default()),
            wake: Condvar::new(),
        };
        Pool {
            threads: threads.clamp(1, 1024),
            shared: Arc::new(shared),
            turn: Mutex::new(()),
            started: AtomicBool::new(false),
        }
    }

    /// Threads that compute, the caller's included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs `work(0)` … `work(tasks - 1)` and returns when all have ended. A panic in one is passed on.
    pub fn run(&self, tasks: usize, work: &(dyn Fn(usize) + Sync)) {
        if tasks <= 1 || self.threads == 1 || WITHIN.get() {
            (0..tasks).for_each(work);
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.start_workers();
        // SAFETY: only the lifetime changes. Workers call the closure only between entering and leaving the job, and
        // `finish` returns after the last one has left, while `work` is still borrowed.
        let work: &'static (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(work) };
        let job = Arc::new(Job {
            work: Work(work),
            tasks,
            next: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
        });
        self.shared.publish(job.clone());
        let outcome = catch_unwind(AssertUnwindSafe(|| job.take_tasks()));
        if outcome.is_err() {
            job.next.store(job.tasks, Ordering::SeqCst);
        }
        self.shared.finish(&job);
        match outcome {
            Err(panic) => resume_unwind(panic),
            Ok(()) if job.panicked.load(Ordering::SeqCst) => {
                panic!("a task on another thread panicked")
            }
            Ok(()) => {}
        }
    }

    fn start_workers(&self) {
        if self.started.swap(true, Ordering::SeqCst) {
            return;
        }
        for index in 1..self.threads {
            let shared = self.shared.clone();
            let named = thread::Builder::new().name(format!("vramlab-cpu-{index}"));
            // A system that gives no more threads leaves the job to those there are.
            let _ = named.spawn(move || shared.work());
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stop = true;
        self.shared.generation.fetch_add(1, Ordering::SeqCst);
        self.shared.wake.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn publish(&self, job: Arc<Job>) {
        // Under the lock, or a worker between its last look and its sleep would miss the call.
        let mut state = self.lock();
        state.job = Some(job);
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.wake.notify_all();
    }

    /// Takes the job down, so that nobody enters any more, and waits for those inside.
    fn finish(&self, job: &Job) {
        self.lock().job = None;
        let mut spins = 0u32;
        while job.inside.load(Ordering::SeqCst) != 0 {
            spins += 1;
            if spins < 10_000 { std::hint::spin_loop() } else { thread::yield_now() }
        }
    }

    fn work(&self) {
        WITHIN.set(true);
        let mut seen = 0;
        loop {
            let Some(generation) = self.wait(seen) else { return };
            seen = generation;
            // Entering happens under the lock, so `finish` either sees us inside or we see no job.
            let job = {
                let state = self.lock();
                if state.stop {
                    return;
                }
                let job = state.job.clone();
                if let Some(job) = &job {
                    job.inside.fetch_add(1, Ordering::SeqCst);
                }
                job
            };
            let Some(job) = job else { continue };
            if catch_unwind(AssertUnwindSafe(|| job.take_tasks())).is_err() {
                job.panicked.store(true, Ordering::SeqCst);
                job.next.store(job.tasks, Ordering::SeqCst);
            }
            job.inside.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Waits for a generation other than `seen`; `None` when the pool stops.
    fn wait(&self, seen: usize) -> Option<usize> {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            for _ in 0..64 {
                let generation = self.generation.load(Ordering::SeqCst);
                if generation != seen {
                    return Some(generation);
                }
                std::hint::spin_loop();
            }
        }
        let mut state = self.lock();
        loop {
            if state.stop {
                return None;
            }
            let generation = self.generation.load(Ordering::SeqCst);
            if generation != seen {
                return Some(generation);
            }
            state = self.wake.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

impl Job {
    fn take_tasks(&self) {
        // SAFETY: `Pool::run` keeps the closure borrowed until everybody has left this job.
        let work = unsafe { &*self.work.0 };
        loop {
            let task = self.next.fetch_add(1, Ordering::SeqCst);
            if task >= self.tasks {
                return;
            }
            work(task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn every_task_runs_once_whatever_the_number_of_threads() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 7, 1000] {
                let counts: Vec<AtomicU64> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
                pool.run(tasks, &|task| {
                    counts[task].fetch_add(1, Ordering::SeqCst);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::SeqCst) == 1));
            }
        }
    }

    #[test]
    fn jobs_follow_each_other_after_the_workers_parked() {
        let pool = Pool::new(3);
        let sum = AtomicU64::new(0);
        for round in 0..40 {
            if round % 10 == 9 {
                thread::sleep(Duration::from_millis(2));
            }
            pool.run(50, &|task| {
                sum.fetch_add(task as u64, Ordering::SeqCst);
            });
        }
        assert_eq!(sum.load(Ordering::SeqCst), 40 * (49 * 50 / 2));
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_the_pool_lives_on() {
        let pool = Pool::new(2);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.run(100, &|task| assert!(task != 57, "the task that fails"));
        }));
        assert!(outcome.is_err());
        let sum = AtomicU64::new(0);
        pool.run(10, &|task| {
            sum.fetch_add(task as u64, Ordering::SeqCst);
        });
        assert_eq!(sum.load(Ordering::SeqCst), 45);
    }
}
