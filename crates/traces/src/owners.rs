//! Who asked for a block: a name, or a stack of source lines. Each distinct text, line and stack is kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use vramlab_memory::names::Named;

/// One line of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function's name, as a text's number.
    pub name: u32,
    /// The file's name, as a text's number.
    pub file: u32,
    /// The line; 0 where there is none.
    pub line: u32,
}

/// All owners of a trace. Number 0 is nobody.
#[derive(Debug)]
pub struct Owners {
    texts: Vec<Box<str>>,
    text_ids: Named<u64, u32>,
    frames: Vec<Frame>,
    frame_ids: HashMap<Frame, u32>,
    /// The frames of all stacks, one stack after the other, the innermost frame first.
    flat: Vec<u32>,
    ends: Vec<usize>,
    stack_ids: Named<u64, u32>,
}

impl Default for Owners {
    fn default() -> Owners {
        let mut owners = Owners {
            texts: Vec::new(),
            text_ids: Named::default(),
            frames: Vec::new(),
            frame_ids: HashMap::new(),
            flat: Vec::new(),
            ends: Vec::new(),
            stack_ids: Named::default(),
        };
        owners.text("");
        owners.stack(&[]);
        owners
    }
}

fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Owners {
    /// The number of a text; the same text has the same number.
    pub fn text(&mut self, text: &str) -> u32 {
        let mut key = hash(text);
        while let Some(id) = self.text_ids.get(&key) {
            if *self.texts[*id as usize] == *text {
                return *id;
            }
            key = key.wrapping_add(1);
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.into());
        self.text_ids.insert(key, id);
        id
    }

    /// The text of that number.
    pub fn text_of(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }

    /// How many bytes of text are kept.
    pub fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.len()).sum()
    }

    /// The number of a source line.
    pub fn frame(&mut self, frame: Frame) -> u32 {
        let next = self.frames.len() as u32;
        let id = *self.frame_ids.entry(frame).or_insert(next);
        if id == next {
            self.frames.push(frame);
        }
        id
    }

    /// The number of a stack of frames, the innermost first.
    pub fn stack(&mut self, frames: &[u32]) -> u32 {
        let mut key = hash(frames);
        while let Some(id) = self.stack_ids.get(&key) {
            if self.frames_of(*id) == frames {
                return *id;
            }
            key = key.wrapping_add(1);
        }
        let id = self.ends.len() as u32;
        self.flat.extend_from_slice(frames);
        self.ends.push(self.flat.len());
        self.stack_ids.insert(key, id);
        id
    }

    /// The number of an owner that is only a name.
    pub fn named(&mut self, name: &str) -> u32 {
        let name = self.text(name);
        let frame = self.frame(Frame { name, file: 0, line: 0 });
        self.stack(&[frame])
    }

    fn frames_of(&self, stack: u32) -> &[u32] {
        let stack = stack as usize;
        let Some(end) = self.ends.get(stack) else { return &[] };
        let start = if stack == 0 { 0 } else { self.ends[stack - 1] };
        &self.flat[start..*end]
    }

    /// How many distinct stacks there are.
    pub fn stacks(&self) -> usize {
        self.ends.len()
    }

    /// The lines of a stack, the innermost first: `forward (model.py:54)`.
    pub fn lines(&self, stack: u32) -> Vec<String> {
        let show = |frame: &u32| {
            let Frame { name, file, line } = self.frames[*frame as usize];
            match (self.text_of(name), self.text_of(file), line) {
                (name, "", _) => name.to_string(),
                (name, file, 0) => format!("{name} ({file})"),
                (name, file, line) => format!("{name} ({file}:{line})"),
            }
        };
        self.frames_of(stack).iter().map(show).collect()
    }

    /// An owner in one line: its innermost frame, or that nobody said.
    pub fn label(&self, stack: u32) -> String {
        self.lines(stack).into_iter().next().unwrap_or_else(|| "(not told)".to_string())
    }
}
