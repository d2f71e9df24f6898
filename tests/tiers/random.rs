//! Random bodies whose types are right by construction, so that what is wrong with them is
//! ownership: moves, borrows, mutability, initialisation. rustc decides about each.

use super::corpus::Source;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ty {
    Number,
    /// `String` or `Array`, by the body's flavour.
    Owned,
    Pair,
    List,
    Maybe,
    Ref,
    Mut,
    ListRef,
    ListMut,
    /// `|| … -> usize`
    Reader,
    /// `|| …`, changes something
    Writer,
}

const VALUES: [Ty; 5] = [Ty::Number, Ty::Owned, Ty::Pair, Ty::List, Ty::Maybe];

#[derive(Clone, Debug)]
struct Variable {
    name: String,
    ty: Ty,
}

/// Numbers from a seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

/// Draws bodies.
pub struct Draw {
    dice: Dice,
    arrays: bool,
    /// Pairs are structs with methods, not tuples.
    structs: bool,
    /// Percent of moves that are made as clones, and of bindings that are mutable beyond need.
    care: usize,
    text: String,
    indent: usize,
    variables: Vec<Variable>,
    made: usize,
    in_loop: bool,
}

/// The body with that number.
pub fn body(number: u64) -> Source {
    drawn(number, false, Dice::new(number))
}

/// The body with that number, with structs in it.
pub fn body_with_structs(number: u64) -> Source {
    drawn(number, true, Dice::new(number ^ 0x57c7))
}

fn drawn(number: u64, structs: bool, dice: Dice) -> Source {
    let mut draw = Draw {
        dice,
        arrays: number.is_multiple_of(3),
        structs,
        care: [0, 60, 90, 97][number as usize % 4],
        text: String::new(),
        indent: 0,
        variables: Vec::new(),
        made: 0,
        in_loop: false,
    };
    draw.whole();
    Source {
        name: format!("{}_{number}", if structs { "structs" } else { "body" }),
        cells: vec![draw.text],
        expect: Default::default(),
        faults: false,
    }
}

impl Draw {
    fn next(&mut self, below: usize) -> usize {
        self.dice.next(below)
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.next(100) < percent
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.indent));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// The struct that stands for a pair.
    fn declare_pair(&mut self) {
        let owned = self.owned_type();
        self.line(&format!("struct Pair {{ a: {owned}, b: {owned}, n: usize }}"));
        self.line("impl Pair {");
        self.line(&format!(
            "    fn new(a: {owned}, b: {owned}) -> Self {{ Pair {{ a, b, n: 1 }} }}"
        ));
        self.line("    fn size(&self) -> usize { self.a.len() + self.b.len() + self.n }");
        self.line(&format!("    fn first(&self) -> &{owned} {{ &self.a }}"));
        self.line(&format!("    fn first_mut(&mut self) -> &mut {owned} {{ &mut self.a }}"));
        self.line(&format!("    fn into_first(self) -> {owned} {{ self.a }}"));
        self.line(
            "    fn swap(&mut self) { std::mem::swap(&mut self.a, &mut self.b); self.n += 1; }",
        );
        self.line(&format!("    fn put(&mut self, b: {owned}) -> usize {{ self.b = b; self.n }}"));
        self.line("}");
    }

    /// How a field of a pair is written.
    fn field(&self, at: usize) -> &'static str {
        match (self.structs, at) {
            (true, 0) => "a",
            (true, _) => "b",
            (false, 0) => "0",
            (false, _) => "1",
        }
    }

    fn whole(&mut self) {
        if self.structs {
            self.declare_pair();
        }
        for ty in [Ty::Owned, Ty::List, Ty::Number] {
            self.bind(ty);
        }
        let count = 4 + self.next(7);
        for _ in 0..count {
            self.statement(2);
        }
    }

    fn fresh(&mut self) -> String {
        self.made += 1;
        format!("x{}", self.made)
    }

    fn pick(&mut self, ty: Ty) -> Option<String> {
        let of: Vec<&Variable> = self.variables.iter().filter(|own| own.ty == ty).collect();
        if of.is_empty() {
            return None;
        }
        let count = of.len();
        let names: Vec<String> = of.iter().map(|own| own.name.clone()).collect();
        // Recent ones more often.
        let at = self.next(count).max(self.next(count));
        Some(names[at].clone())
    }

    fn owned_type(&self) -> &'static str {
        if self.arrays { "Array" } else { "String" }
    }

    fn type_name(&self, ty: Ty) -> String {
        let owned = self.owned_type();
        match ty {
            Ty::Number => "i32".into(),
            Ty::Owned => owned.into(),
            Ty::Pair if self.structs => "Pair".into(),
            Ty::Pair => format!("({owned}, {owned})"),
            Ty::List => format!("Vec<{owned}>"),
            Ty::Maybe => format!("Option<{owned}>"),
            Ty::Ref => format!("&{owned}"),
            Ty::Mut => format!("&mut {owned}"),
            Ty::ListRef => format!("&Vec<{owned}>"),
            Ty::ListMut => format!("&mut Vec<{owned}>"),
            Ty::Reader | Ty::Writer => unreachable!("closures have no name"),
        }
    }

    fn bind(&mut self, ty: Ty) {
        let value = self.value(ty, 2);
        let name = self.fresh();
        let mutable = if self.chance(65.max(self.care)) { "mut " } else { "" };
        self.line(&format!("let {mutable}{name} = {value};"));
        self.variables.push(Variable { name, ty });
    }

    fn block(&mut self, head: &str, depth: usize) {
        self.line(&format!("{head} {{"));
        self.indent += 1;
        let known = self.variables.len();
        for _ in 0..1 + self.next(3) {
            self.statement(depth - 1);
        }
        self.variables.truncate(known);
        self.indent -= 1;
    }

    fn statement(&mut self, depth: usize) {
        match self.next(if depth > 0 { 20 } else { 14 }) {
            0 | 1 => {
                let ty = VALUES[self.next(VALUES.len())];
                self.bind(ty);
            }
            2 => self.bind_reference(),
            3 => self.bind_closure(),
            4 | 5 => self.assign(),
            6 | 7 => self.read(),
            8 => self.drop(),
            9 | 10 => self.change_list(),
            11 => self.take_apart(),
            12 => self.call(),
            13 => match self.in_loop && self.chance(50) {
                true if self.chance(50) => self.line("break;"),
                true => self.line("continue;"),
                false => self.declare_only(),
            },
            14 => {
                let condition = self.condition();
                self.block(&format!("if {condition}"), depth);
                if self.chance(50) {
                    self.block("} else", depth);
                }
                self.line("}");
            }
            15 | 16 => {
                let outer = std::mem::replace(&mut self.in_loop, true);
                let head = match self.next(3) {
                    0 => "for _ in 0..2".to_string(),
                    1 => format!("while {}", self.condition()),
                    _ => match self.pick(Ty::List) {
                        Some(list) => {
                            let how = ["&", "&mut ", ""][self.how()];
                            let item = self.fresh();
                            let ty = match how {
                                "&" => Ty::Ref,
                                "&mut " => Ty::Mut,
                                _ => Ty::Owned,
                            };
                            self.variables.push(Variable { name: item.clone(), ty });
                            format!("for {item} in {how}{list}")
                        }
                        None => "for _ in 0..1".to_string(),
                    },
                };
                let item = head.starts_with("for x");
                if head.starts_with("while") {
                    // Ends for certain.
                    self.line("let mut left = 3;");
                    let condition = head.trim_start_matches("while ").to_string();
                    self.line(&format!("while left > 0 && {condition} {{"));
                    self.indent += 1;
                    self.line("left -= 1;");
                    let known = self.variables.len();
                    for _ in 0..1 + self.next(3) {
                        self.statement(depth - 1);
                    }
                    self.variables.truncate(known);
                    self.indent -= 1;
                } else {
                    self.block(&head, depth);
                }
                self.line("}");
                if item {
                    self.variables.retain(|own| !head.starts_with(&format!("for {} ", own.name)));
                }
                self.in_loop = outer;
            }
            17 => {
                self.block("", depth);
                self.line("}");
            }
            _ => {
                let Some(maybe) = self.pick(Ty::Maybe) else { return self.read() };
                let how = ["&", "&mut ", ""][self.how()];
                let item = self.fresh();
                let ty = match how {
                    "&" => Ty::Ref,
                    "&mut " => Ty::Mut,
                    _ => Ty::Owned,
                };
                let known = self.variables.len();
                self.variables.push(Variable { name: item.clone(), ty });
                let head = format!("if let Some({item}) = {how}{maybe}");
                self.block(&head, depth);
                self.variables.truncate(known);
                self.line("}");
            }
        }
    }

    /// Shared, mutable, by value.
    fn how(&mut self) -> usize {
        if self.chance(self.care) { self.next(2) } else { self.next(3) }
    }

    fn bind_reference(&mut self) {
        if self.structs
            && self.chance(30)
            && let Some(pair) = self.pick(Ty::Pair)
        {
            let name = self.fresh();
            let (method, ty) = [("first", Ty::Ref), ("first_mut", Ty::Mut)][self.next(2)];
            self.line(&format!("let {name} = {pair}.{method}();"));
            self.variables.push(Variable { name, ty });
            return;
        }
        let (ty, target, how) = match self.next(4) {
            0 => (Ty::Ref, self.place(), "&"),
            1 => (Ty::Mut, self.place(), "&mut "),
            2 => (Ty::ListRef, self.pick(Ty::List), "&"),
            _ => (Ty::ListMut, self.pick(Ty::List), "&mut "),
        };
        let Some(target) = target else { return self.read() };
        let name = self.fresh();
        self.line(&format!("let {name} = {how}{target};"));
        self.variables.push(Variable { name, ty });
    }

    /// A place of the owned type.
    fn place(&mut self) -> Option<String> {
        match self.next(6) {
            0 | 1 => self.pick(Ty::Pair).map(|pair| format!("{pair}.{}", self.field(0))),
            2 => self.pick(Ty::List).map(|list| format!("{list}[0]")),
            3 => self.pick(Ty::Mut).map(|reference| format!("*{reference}")),
            _ => self.pick(Ty::Owned),
        }
    }

    fn bind_closure(&mut self) {
        let by_move = if self.chance(40) { "move " } else { "" };
        let (ty, body) = match self.next(5) {
            0 | 1 => (Ty::Reader, self.length()),
            2 if self.structs && self.chance(50) => match self.pick(Ty::Pair) {
                Some(pair) => {
                    let body = ["{}.n += 1", "{}.swap()", "{}.b = {}.a.clone()"][self.next(3)];
                    (Ty::Writer, body.replace("{}", &pair))
                }
                None => return self.read(),
            },
            2 => match self.pick(Ty::Number) {
                Some(number) => (Ty::Writer, format!("{number} += 1")),
                None => return self.read(),
            },
            3 => match self.pick(Ty::List) {
                Some(list) => {
                    let made = self.made_new();
                    (Ty::Writer, format!("{list}.push({made})"))
                }
                None => return self.read(),
            },
            _ => match self.pick(Ty::Owned) {
                Some(owned) if !self.chance(self.care) => (Ty::Writer, format!("drop({owned})")),
                _ => return self.read(),
            },
        };
        let name = self.fresh();
        let mutable = if ty == Ty::Writer && self.chance(80) { "mut " } else { "" };
        self.line(&format!("let {mutable}{name} = {by_move}|| {body};"));
        self.variables.push(Variable { name, ty });
    }

    fn call(&mut self) {
        let ty = if self.chance(50) { Ty::Reader } else { Ty::Writer };
        match self.pick(ty) {
            Some(name) if ty == Ty::Reader => self.line(&format!("println!(\"{{}}\", {name}());")),
            Some(name) => self.line(&format!("{name}();")),
            None => self.bind_closure(),
        }
    }

    fn declare_only(&mut self) {
        if self.chance(self.care) {
            return self.assign();
        }
        let ty = VALUES[self.next(VALUES.len())];
        let name = self.fresh();
        let mutable = if self.chance(30) { "mut " } else { "" };
        let type_name = self.type_name(ty);
        self.line(&format!("let {mutable}{name}: {type_name};"));
        self.variables.push(Variable { name, ty });
    }

    fn assign(&mut self) {
        let target = match self.next(6) {
            0 => self.pick(Ty::Mut).map(|name| (format!("*{name}"), Ty::Owned)),
            1 => {
                let pair = self.pick(Ty::Pair);
                pair.map(|name| (format!("{name}.{}", self.field(1)), Ty::Owned))
            }
            2 => self.pick(Ty::List).map(|name| (format!("{name}[0]"), Ty::Owned)),
            3 => self.pick(Ty::Ref).map(|name| (name, Ty::Ref)),
            _ => {
                let ty = VALUES[self.next(VALUES.len())];
                self.pick(ty).map(|name| (name, ty))
            }
        };
        let Some((target, ty)) = target else { return self.read() };
        let value = match ty {
            Ty::Ref => match self.place() {
                Some(place) => format!("&{place}"),
                None => return self.read(),
            },
            ty => self.value(ty, 1),
        };
        self.line(&format!("{target} = {value};"));
    }

    /// An expression of `usize`.
    fn length(&mut self) -> String {
        let ty = [Ty::Owned, Ty::Pair, Ty::List, Ty::Ref, Ty::Mut, Ty::ListRef, Ty::ListMut]
            [self.next(7)];
        match self.pick(ty) {
            Some(name) if ty == Ty::Pair && self.structs && self.chance(50) => {
                format!("{name}.{}", ["size()", "n", "first().len()"][self.next(3)])
            }
            Some(name) if ty == Ty::Pair => {
                let at = self.next(2);
                format!("{name}.{}.len()", self.field(at))
            }
            Some(name) if ty == Ty::List && self.chance(30) => format!("{name}[0].len()"),
            Some(name) => format!("{name}.len()"),
            None => "1usize".to_string(),
        }
    }

    fn condition(&mut self) -> String {
        match self.next(3) {
            0 => {
                let length = self.length();
                format!("{length} > 1")
            }
            1 => match self.pick(Ty::Maybe) {
                Some(name) => format!("{name}.is_some()"),
                None => "true".to_string(),
            },
            _ => match self.pick(Ty::Number) {
                Some(name) => format!("{name} < 5"),
                None => "false".to_string(),
            },
        }
    }

    fn read(&mut self) {
        let text = match self.next(3) {
            0 => match self.pick(Ty::Number) {
                Some(name) => name,
                None => self.length(),
            },
            _ => self.length(),
        };
        self.line(&format!("println!(\"{{}}\", {text});"));
    }

    fn drop(&mut self) {
        if self.chance(self.care) {
            return self.read();
        }
        let ty = [Ty::Owned, Ty::Owned, Ty::Pair, Ty::List, Ty::Maybe, Ty::Reader][self.next(6)];
        match self.pick(ty) {
            Some(name) => self.line(&format!("drop({name});")),
            None => self.read(),
        }
    }

    fn change_list(&mut self) {
        if self.structs
            && self.chance(35)
            && let Some(pair) = self.pick(Ty::Pair)
        {
            let value = self.value(Ty::Owned, 1);
            let size = self.length();
            let line = match self.next(3) {
                0 => format!("{pair}.swap();"),
                1 => format!("{pair}.n += {size};"),
                _ => format!("println!(\"{{}}\", {pair}.put({value}));"),
            };
            return self.line(&line);
        }
        let ty = if self.chance(70) { Ty::List } else { Ty::ListMut };
        let Some(list) = self.pick(ty) else { return self.read() };
        let line = match self.next(5) {
            0 | 1 => {
                let value = self.value(Ty::Owned, 1);
                format!("{list}.push({value});")
            }
            2 => format!("{list}.pop();"),
            3 => format!("{list}.insert(0, {list}[0].clone());"),
            _ => format!("{list}.clear();"),
        };
        self.line(&line);
    }

    fn take_apart(&mut self) {
        let Some(pair) = self.pick(Ty::Pair) else { return self.bind(Ty::Pair) };
        let (a, b) = (self.fresh(), self.fresh());
        if self.structs {
            let (line, ty, both) = match self.next(4) {
                0 => (format!("let Pair {{ a: mut {a}, b: {b}, .. }} = {pair};"), Ty::Owned, true),
                1 => (format!("let Pair {{ a: {a}, .. }} = {pair};"), Ty::Owned, false),
                2 => (format!("let Pair {{ a: {a}, b: {b}, n: _ }} = &{pair};"), Ty::Ref, true),
                _ => (format!("let Pair {{ a: {a}, b: {b}, .. }} = &mut {pair};"), Ty::Mut, true),
            };
            self.line(&line);
            self.variables.push(Variable { name: a, ty });
            if both {
                self.variables.push(Variable { name: b, ty });
            }
            return;
        }
        let (line, ty, both) = match self.next(4) {
            0 => (format!("let (mut {a}, {b}) = {pair};"), Ty::Owned, true),
            1 => (format!("let ({a}, _) = {pair};"), Ty::Owned, false),
            2 => (format!("let ({a}, {b}) = &{pair};"), Ty::Ref, true),
            _ => (format!("let ({a}, {b}) = &mut {pair};"), Ty::Mut, true),
        };
        self.line(&line);
        self.variables.push(Variable { name: a, ty });
        if both {
            self.variables.push(Variable { name: b, ty });
        }
    }

    fn made_new(&mut self) -> String {
        match self.arrays {
            true => format!("ones([{}])", 1 + self.next(3)),
            false => format!("String::from({:?})", ["a", "bc", "def"][self.next(3)]),
        }
    }

    fn value(&mut self, ty: Ty, depth: usize) -> String {
        match ty {
            Ty::Number => match self.next(3) {
                0 => format!("{} as i32", self.length()),
                1 => match self.pick(Ty::Number) {
                    Some(name) => format!("{name} + 1"),
                    None => "3".to_string(),
                },
                _ => self.next(9).to_string(),
            },
            Ty::Owned => self.owned(depth),
            Ty::Pair => match self.pick(Ty::Pair) {
                Some(name) if self.chance(30) && !self.chance(self.care) => name,
                Some(name) if self.structs && self.chance(30) && !self.chance(self.care) => {
                    let b = self.owned(depth);
                    format!("Pair {{ b: {b}, ..{name} }}")
                }
                _ if self.structs => {
                    let (a, b) = (self.owned(depth), self.owned(depth));
                    match self.next(2) {
                        0 => format!("Pair::new({a}, {b})"),
                        _ => format!("Pair {{ n: 0, b: {a}, a: {b} }}"),
                    }
                }
                _ => {
                    let (a, b) = (self.owned(depth), self.owned(depth));
                    format!("({a}, {b})")
                }
            },
            Ty::List => match self.pick(Ty::List) {
                Some(name) if self.chance(20) && !self.chance(self.care) => name,
                Some(name) if self.chance(20) => format!("{name}.clone()"),
                _ => {
                    let (a, b) = (self.owned(depth), self.owned(depth));
                    format!("vec![{a}, {b}]")
                }
            },
            Ty::Maybe => match self.next(3) {
                0 => format!("None::<{}>", self.owned_type()),
                1 => match self.pick(Ty::Maybe) {
                    Some(name) if !self.chance(self.care) => name,
                    _ => {
                        let value = self.owned(depth);
                        format!("Some({value})")
                    }
                },
                _ => {
                    let value = self.owned(depth);
                    format!("Some({value})")
                }
            },
            Ty::Ref | Ty::Mut | Ty::ListRef | Ty::ListMut | Ty::Reader | Ty::Writer => {
                unreachable!("made where they are bound")
            }
        }
    }

    fn owned(&mut self, depth: usize) -> String {
        if depth == 0 || self.chance(25) {
            return self.made_new();
        }
        let own = self.pick(Ty::Owned);
        match (self.next(14), own) {
            (0..=2, Some(name)) if !self.chance(self.care) => name,
            (0..=2, Some(name)) => format!("{name}.clone()"),
            (3, Some(name)) => format!("{name}.clone()"),
            (4 | 6 | 7, Some(name)) if self.chance(self.care) => format!("{name}.clone()"),
            (4, Some(name)) if self.arrays => format!("{name} + 1.0"),
            (4, Some(name)) => format!("{name} + \"!\""),
            (5, Some(name)) if self.arrays => format!("&{name} * 2.0"),
            (5, Some(name)) => format!("format!(\"{{{name}}}?\")"),
            (6, Some(name)) => format!("{{ let y = {name}; y }}"),
            (7, Some(name)) => {
                let condition = self.condition();
                let other = self.owned(depth - 1);
                format!("if {condition} {{ {name} }} else {{ {other} }}")
            }
            (8, Some(name)) if !self.arrays => format!("std::mem::take(&mut {name})"),
            (9 | 10, _) if self.chance(self.care) => self.made_new(),
            (9, _) => match self.pick(Ty::Pair) {
                Some(name) if self.structs && self.chance(40) => format!("{name}.into_first()"),
                Some(name) => {
                    let at = self.next(2);
                    format!("{name}.{}", self.field(at))
                }
                None => self.made_new(),
            },
            (10, _) => match self.pick(Ty::Maybe) {
                Some(name) if self.chance(50) => {
                    let other = self.made_new();
                    format!("match {name} {{ Some(y) => y, None => {other} }}")
                }
                Some(name) => {
                    let other = self.made_new();
                    format!("{name}.unwrap_or({other})")
                }
                None => self.made_new(),
            },
            (11, _) => match self.pick(Ty::Ref) {
                Some(name) => format!("{name}.clone()"),
                None => self.made_new(),
            },
            (12, _) => match self.pick(Ty::List) {
                Some(name) => {
                    let other = self.made_new();
                    format!("{name}.pop().unwrap_or({other})")
                }
                None => self.made_new(),
            },
            _ => match self.pick(Ty::Mut) {
                Some(name) => {
                    let new = self.made_new();
                    format!("std::mem::replace({name}, {new})")
                }
                None => self.made_new(),
            },
        }
    }
}
