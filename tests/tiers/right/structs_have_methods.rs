#[derive(Debug, Clone)]
struct Counter {
    count: usize,
    log: Vec<String>,
}

impl Counter {
    const LIMIT: usize = 3;
    const NAMES: [&str; 2] = ["a", "b"];

    fn new() -> Self {
        Self { count: 0, log: Vec::new() }
    }

    fn with(count: usize) -> Counter {
        Counter { count, ..Self::new() }
    }

    fn bump(&mut self) -> usize {
        self.count += 1;
        self.log.push(format!("to {}", self.count));
        self.count
    }

    fn bump_by(&mut self, n: usize) {
        for _ in 0..n {
            self.bump();
        }
    }

    fn is_full(&self) -> bool {
        self.count >= Self::LIMIT
    }

    fn last(&self) -> Option<&String> {
        self.log.last()
    }

    fn into_log(self) -> Vec<String> {
        self.log
    }

    fn consumed(mut self) -> usize {
        self.count += 100;
        self.count
    }
}
let mut c = Counter::new();
println!("{} {}", c.bump(), c.is_full());
c.bump_by(2);
println!("{} {:?} {}", c.is_full(), c.last(), Counter::LIMIT);
println!("{}", Counter::NAMES[1]);
// %%
let d = Counter::with(7);
println!("{:?}", d);
println!("{}", d.consumed());
println!("{}", Counter::is_full(&c));
Counter::bump(&mut c);
println!("{:?}", c.into_log());
// %%
struct Meters(f64);
impl Meters {
    fn double(&self) -> Meters {
        Self(self.0 * 2.0)
    }
    fn add(self, other: Meters) -> Meters {
        Meters(self.0 + other.0)
    }
    fn scale(&mut self, by: f64) -> &mut Meters {
        self.0 *= by;
        self
    }
}
let m = Meters(1.5).double().add(Meters(1.0));
println!("{}", m.0);
let mut m = m;
m.scale(2.0).scale(3.0);
println!("{}", m.0);
// %%
impl Meters {
    fn halved(&self) -> f64 {
        self.0 / 2.0
    }
}
println!("{}", m.halved());
// %%
let all: Vec<Meters> = vec![1.0, 2.0].into_iter().map(Meters).collect();
println!("{}", all.iter().map(|m| m.0).sum::<f64>());
let made: Vec<Counter> = (1..3).map(Counter::with).collect();
println!("{:?}", made);
// %%
let r = &mut m;
r.scale(0.5);
println!("{}", r.halved());
let b = Box::new(Meters(8.0));
println!("{} {}", b.0, b.halved());
