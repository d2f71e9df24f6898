//! Random bodies of typed expressions: what is inferred, what is refused, what is computed.

use super::corpus::Source;
use super::random::Dice;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    Bool,
    I32,
    I64,
    U8,
    Usize,
    F32,
    F64,
    /// A variable whose integer or float type its uses decide.
    SomeInt,
    SomeFloat,
    Text,
    Array,
    /// `Vec` of `i32`, `f64` and of a type that its uses decide.
    Ints,
    Floats,
    SomeInts,
    Maybe,
    Pair,
}

use Ty::*;

const SCALARS: [Ty; 7] = [Bool, I32, I64, U8, Usize, F32, F64];

pub struct Draw {
    dice: Dice,
    /// Percent of expressions that get another type than is wanted.
    mistakes: usize,
    text: String,
    variables: Vec<(String, Ty)>,
    made: usize,
}

/// The body with that number.
pub fn body(number: u64) -> Source {
    let mut draw = Draw {
        dice: Dice::new(number ^ 0x7e57),
        mistakes: [0, 0, 1, 3][number as usize % 4],
        text: String::new(),
        variables: Vec::new(),
        made: 0,
    };
    draw.whole();
    Source {
        name: format!("typed_{number}"),
        cells: vec![draw.text],
        expect: Default::default(),
        faults: false,
    }
}

impl Draw {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn next(&mut self, below: usize) -> usize {
        self.dice.next(below)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.dice.next(100) < percent
    }

    fn whole(&mut self) {
        self.line("fn half(x: f64) -> f64 { x / 2.0 }");
        self.line("fn twice(n: i32) -> i32 { n.wrapping_mul(2) }");
        self.line("fn total(v: &[i32]) -> i64 { let mut s = 0; for n in v { s += *n as i64; } s }");
        self.line(
            "fn pick(first: bool, a: usize, b: usize) -> usize { if first { a } else { b } }",
        );
        for _ in 0..5 + self.next(6) {
            self.statement();
        }
        for (name, ty) in self.variables.clone() {
            match ty {
                Array => self.line(&format!("println!(\"{{}} {{:?}}\", {name}, {name}.dtype());")),
                Text => self.line(&format!("println!(\"{{}}\", {name});")),
                _ => self.line(&format!("println!(\"{{:?}}\", {name});")),
            }
        }
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("x{}", self.made)
    }

    fn pick(&mut self, ty: Ty) -> Option<String> {
        let fits = |own: Ty| {
            own == ty
                || (own == SomeInt && matches!(ty, I32 | I64 | U8 | Usize))
                || (own == SomeFloat && matches!(ty, F32 | F64))
        };
        let names: Vec<String> = self
            .variables
            .iter()
            .filter(|(_, own)| fits(*own))
            .map(|(name, _)| name.clone())
            .collect();
        if names.is_empty() {
            return None;
        }
        let at = self.next(names.len()).max(self.next(names.len()));
        Some(names[at].clone())
    }

    fn scalar(&mut self) -> Ty {
        SCALARS[self.next(SCALARS.len())]
    }

    fn bind(&mut self, annotation: &str, value: &str, ty: Ty) {
        let name = self.fresh();
        self.line(&format!("let mut {name}{annotation} = {value};"));
        self.variables.push((name, ty));
    }

    fn statement(&mut self) {
        match self.next(18) {
            0 | 1 => {
                let value = self.next(9).to_string();
                self.bind("", &value, SomeInt);
            }
            2 => {
                let value = format!("{}.5", self.next(9));
                self.bind("", &value, SomeFloat);
            }
            3 | 4 => {
                let ty = self.scalar();
                let value = self.of(ty, 3);
                self.bind(&format!(": {}", name_of(ty)), &value, ty);
            }
            5 | 6 => {
                let ty = self.scalar();
                let value = self.of(ty, 3);
                self.bind("", &value, ty);
            }
            7 => {
                let (ty, value) = match self.next(4) {
                    0 => (Ints, format!("vec![{}, {}]", self.of(I32, 1), self.of(I32, 1))),
                    1 => (Floats, format!("vec![{}, {}, 0.5]", self.of(F64, 1), self.of(F64, 1))),
                    2 => (SomeInts, "Vec::new()".to_string()),
                    _ => (SomeInts, "vec![1, 2, 3]".to_string()),
                };
                self.bind("", &value, ty);
            }
            8 => {
                let value = self.array(2);
                self.bind("", &value, Array);
            }
            9 => {
                let value = self.string();
                self.bind("", &value, Text);
            }
            10 => {
                let value = match self.next(3) {
                    0 => "None".to_string(),
                    _ => format!("Some({})", self.of(I32, 2)),
                };
                self.bind("", &value, Maybe);
            }
            11 | 12 => {
                let ty = self.scalar();
                let Some(name) = self.pick(ty) else { return self.push() };
                let value = self.of(ty, 2);
                let op = match ty {
                    Bool => ["=", "|=", "&=", "^="][self.next(4)],
                    F32 | F64 => ["=", "+=", "-=", "*=", "/="][self.next(5)],
                    _ => ["=", "+=", "*=", "|=", "<<=", "%="][self.next(6)],
                };
                self.line(&format!("{name} {op} {value};"));
            }
            13 => self.push(),
            14 => {
                let ty = self.scalar();
                let name = self.fresh();
                let value = self.of(ty, 1);
                self.line(&format!(
                    "let {name} = |a| {};",
                    match ty {
                        Bool => format!("a && {value}"),
                        F32 | F64 => format!("a * {value}"),
                        _ => format!("{value} + a"),
                    }
                ));
                let argument = self.of(ty, 1);
                let made = self.fresh();
                self.line(&format!("let mut {made} = {name}({argument});"));
                self.variables.push((made, ty));
            }
            15 => {
                let (a, b) = (self.scalar(), self.scalar());
                let (first, second) = (self.of(a, 2), self.of(b, 2));
                if self.chance(50) {
                    let (x, y) = (self.fresh(), self.fresh());
                    self.line(&format!("let (mut {x}, mut {y}) = ({first}, {second});"));
                    self.variables.push((x, a));
                    self.variables.push((y, b));
                } else {
                    self.bind("", &format!("({first}, {second})"), Pair);
                }
            }
            16 => {
                let Some(name) = self.pick(SomeInt) else { return };
                let end = self.of(Usize, 1);
                self.line(&format!("for i in 0..({end}).min(3) {{ {name} += i; }}"));
            }
            _ => {
                let ty = self.scalar();
                let Some(name) = self.pick(ty) else { return };
                let (condition, value) = (self.of(Bool, 2), self.of(ty, 2));
                self.line(&format!("if {condition} {{ {name} = {value}; }}"));
            }
        }
    }

    fn push(&mut self) {
        let (list, value) = match self.next(3) {
            0 => (self.pick(Ints), self.of(I32, 2)),
            1 => (self.pick(Floats), self.of(F64, 2)),
            _ => {
                let ty = [I32, U8, Usize][self.next(3)];
                (self.pick(SomeInts), self.of(ty, 1))
            }
        };
        if let Some(list) = list {
            self.line(&format!("{list}.push({value});"));
        }
    }

    /// An expression of the type, or by mistake of another.
    fn of(&mut self, ty: Ty, depth: usize) -> String {
        if self.chance(self.mistakes) {
            let other = self.scalar();
            return self.right(other, depth);
        }
        self.right(ty, depth)
    }

    fn right(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.chance(20) {
            return self.leaf(ty);
        }
        let deeper = depth - 1;
        match self.next(10) {
            0 | 1 => self.leaf(ty),
            2 => {
                let condition = self.of(Bool, deeper);
                let (a, b) = (self.of(ty, deeper), self.of(ty, deeper));
                format!("if {condition} {{ {a} }} else {{ {b} }}")
            }
            3 => {
                let (on, a, b) = (self.of(I32, deeper), self.of(ty, deeper), self.of(ty, deeper));
                match self.next(3) {
                    0 => format!("match {on} {{ 0 | 1 => {a}, _ => {b} }}"),
                    1 => format!("match {on} {{ n if n > 3 => {a}, ..=3 => {b}, _ => {a} }}"),
                    _ => match self.pick(Maybe) {
                        Some(maybe) => format!("match {maybe} {{ Some(_) => {a}, None => {b} }}"),
                        None => a,
                    },
                }
            }
            4 => {
                let value = self.of(ty, deeper);
                format!("{{ let t = {value}; t }}")
            }
            _ => self.composed(ty, deeper),
        }
    }

    fn composed(&mut self, ty: Ty, depth: usize) -> String {
        match ty {
            Bool => match self.next(5) {
                0 => format!("({} && {})", self.of(Bool, depth), self.of(Bool, depth)),
                1 => format!("!({})", self.of(Bool, depth)),
                2 => format!("({} || {})", self.of(Bool, depth), self.of(Bool, depth)),
                _ => {
                    let of = self.scalar();
                    let (a, b) = (self.of(of, depth), self.of(of, depth));
                    let op = ["<", "<=", "==", "!=", ">", ">="][self.next(6)];
                    format!("(({a}) {op} ({b}))")
                }
            },
            F32 | F64 => match self.next(9) {
                0..=3 => {
                    let (a, b) = (self.of(ty, depth), self.of(ty, depth));
                    let op = ["+", "-", "*", "/"][self.next(4)];
                    format!("({a} {op} {b})")
                }
                4 => {
                    let from = self.scalar();
                    match from {
                        Bool => format!("({} as u8 as {})", self.of(Bool, depth), name_of(ty)),
                        from => format!("(({}) as {})", self.of(from, depth), name_of(ty)),
                    }
                }
                5 => format!("(-({}))", self.of(ty, depth)),
                6 if ty == F64 => format!("half({})", self.of(F64, depth)),
                7 => match self.pick(ty) {
                    Some(name) => {
                        let value = self.of(ty, depth);
                        format!("{name}.max({value})")
                    }
                    None => self.leaf(ty),
                },
                _ if ty == F64 => match self.pick(Floats) {
                    Some(list) => match self.next(3) {
                        0 => format!("{list}[0]"),
                        1 => format!("{list}.iter().sum::<f64>()"),
                        _ => format!("{list}.iter().map(|e| e * 2.0).fold(0.0, |a, b| a + b)"),
                    },
                    None => "ones([3]).sum().item()".to_string(),
                },
                _ => self.leaf(ty),
            },
            I32 | I64 | U8 | Usize => match self.next(11) {
                0..=3 => {
                    let (a, b) = (self.of(ty, depth), self.of(ty, depth));
                    let op = ["+", "*", "&", "|", "^", "%", "/", "-"][self.next(8)];
                    format!("({a} {op} {b})")
                }
                4 => {
                    let from = self.scalar();
                    format!("(({}) as {})", self.of(from, depth), name_of(ty))
                }
                5 => {
                    let (a, by) = (self.of(ty, depth), self.next(4));
                    let by = match self.chance(50) {
                        true => by.to_string(),
                        false => self.pick(Usize).unwrap_or(by.to_string()),
                    };
                    format!("(({a}) {} {by})", [">>", "<<"][self.next(2)])
                }
                6 if matches!(ty, I32 | I64) => format!("(-({}))", self.of(ty, depth)),
                6 => format!("(!({}))", self.of(ty, depth)),
                7 if ty == I32 => format!("twice({})", self.of(I32, depth)),
                7 if ty == I64 => match self.pick(Ints) {
                    Some(list) => format!("total(&{list})"),
                    None => self.leaf(ty),
                },
                7 if ty == Usize => format!(
                    "pick({}, {}, {})",
                    self.of(Bool, depth),
                    self.of(Usize, depth),
                    self.of(Usize, depth)
                ),
                8 if ty == I32 => match self.pick(Ints) {
                    Some(list) => match self.next(4) {
                        0 => format!("{list}[{}]", self.next(2)),
                        1 => format!("{list}.iter().sum::<i32>()"),
                        2 => format!("*{list}.iter().max().unwrap()"),
                        _ => format!("{list}.iter().map(|e| e * 2).sum::<i32>()"),
                    },
                    None => self.leaf(ty),
                },
                8 if ty == Usize => {
                    let of = [Ints, Floats, SomeInts, Text, Array][self.next(5)];
                    match self.pick(of) {
                        Some(name) => format!("{name}.len()"),
                        None => self.leaf(ty),
                    }
                }
                9 => match self.pick(ty) {
                    Some(name) => format!("{name}.min({})", self.of(ty, depth)),
                    None => self.leaf(ty),
                },
                10 if ty == I32 => match self.pick(Maybe) {
                    Some(name) => format!("{name}.unwrap_or({})", self.of(I32, depth)),
                    None => self.leaf(ty),
                },
                _ => match self.pick(SomeInts) {
                    Some(list) if self.chance(40) => format!("{list}[0]"),
                    _ => self.leaf(ty),
                },
            },
            _ => self.leaf(ty),
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        if self.chance(55)
            && let Some(name) = self.pick(ty)
        {
            return name;
        }
        let suffix = if self.chance(25) { name_of(ty) } else { "" };
        match ty {
            Bool => ["true", "false"][self.next(2)].to_string(),
            F32 | F64 => format!("{}.{}{suffix}", self.next(9), self.next(10)),
            _ => format!("{}{suffix}", self.next(12)),
        }
    }

    fn string(&mut self) -> String {
        let ty = self.scalar();
        let value = self.of(ty, 2);
        match self.next(4) {
            0 => format!("format!(\"{{:?}}\", {value})"),
            1 => format!("format!(\"[{{:>6}}]\", {value})"),
            2 => format!("({value}).to_string()"),
            _ => "String::from(\"text\")".to_string(),
        }
    }

    fn array(&mut self, depth: usize) -> String {
        let new = ["ones([2])", "ones_as(I32, [2])", "array([1.5, 2.5])", "full([2], 3)"]
            [self.next(4)]
        .to_string();
        if depth == 0 || self.chance(25) {
            return match self.pick(Array) {
                Some(name) if self.chance(60) => format!("{name}.clone()"),
                _ => new,
            };
        }
        let a = match self.pick(Array) {
            Some(name) if self.chance(50) => format!("&{name}"),
            _ => format!("({})", self.array(depth - 1)),
        };
        let op = ["+", "-", "*", "/"][self.next(4)];
        match self.next(6) {
            0 | 1 => format!("{a} {op} {}", self.of(F64, 1)),
            2 => format!("{a} {op} ({})", self.of(I32, 1)),
            3 => format!("({}) {op} {a}", self.of(F64, 1)),
            4 => format!("-({a}) {op} ({})", self.array(depth - 1)),
            _ => format!("({a}).maximum({})", self.of(F64, 1)),
        }
    }
}

fn name_of(ty: Ty) -> &'static str {
    match ty {
        Bool => "bool",
        I32 => "i32",
        I64 => "i64",
        U8 => "u8",
        Usize => "usize",
        F32 => "f32",
        _ => "f64",
    }
}
