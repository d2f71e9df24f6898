//! Element-wise work on the finished parts of a contraction, while they are in cache.

use super::access::{self, Nest, Place};
use super::bind_all;
use super::copy::Tile;
use super::decode::Decoder;
use super::frame::{Bound, Frame, Layout};
use super::lanes::BLOCK;
use super::rows::{SHORT, rows_of_tile};
use super::step::{Drain, StageProgram};
use crate::LaunchError;
use crate::cpu::isa::Isa;
use crate::cpu::space::DevicePtr;
use vramlab_ir::kernel::{Access, Dot as Image, Epilogue as EpilogueImage, LoopInst, Per, Sink};
use vramlab_ir::{Inst, Kernel, Reg};

/// Part of one batch's result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    pub batch: usize,
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// Element-wise work on finished parts of the result.
#[derive(Debug)]
pub(super) struct Epilogue {
    nest: Nest,
    /// The last is the product.
    reads: Vec<Place>,
    writes: Vec<Place>,
    program: StageProgram,
    layout: Layout,
    tile_rows: usize,
}

impl Epilogue {
    /// With `apart`, the product is not read from the result's place but from rows of so many columns.
    pub fn new(
        kernel: &Kernel,
        image: &Image,
        epilogue: &EpilogueImage,
        isa: Isa,
        apart: Option<usize>,
    ) -> Result<Epilogue, LaunchError> {
        let mut extents = image.batch.clone();
        extents.extend([image.m, image.n]);
        super::check_ranks(kernel, epilogue.reads.iter(), extents.len())?;
        let product = epilogue.reads.len() as u32;
        let insts: Vec<LoopInst> =
            epilogue.insts.iter().map(|inst| read_product(inst, product)).collect();
        let mut accesses: Vec<&Access> = epilogue.reads.iter().collect();
        accesses.extend([&image.c, &image.c]);
        let keep = vec![true; extents.len()];
        let (nest, mut reads) = access::simplify(&extents, &accesses, &keep, false);
        let writes = reads.split_off(reads.len() - 1);
        if let (Some(columns), Some(product)) = (apart, reads.last_mut()) {
            let wide = image.n.max(1) as isize;
            product.outer.iter_mut().for_each(|stride| *stride = *stride / wide * columns as isize);
        }
        let short = (1..=SHORT).contains(&image.n) && image.m > 1;
        let tile_rows = if short { rows_of_tile(image.n, image.m) } else { 1 };
        let types = [image.c.dtype];
        let mut decoder = Decoder::new(&kernel.name, isa, &nest, &mut reads, &types, tile_rows);
        let Some(last) = (insts.len() as u32).checked_sub(1) else {
            return Err(decoder.malformed("an epilogue without instructions"));
        };
        let store = Sink::Store { write: 0, reg: Reg(last) };
        let program = decoder.stage(Per::Columns, &insts, &[store])?;
        let layout = Layout {
            constants: decoder.constants(),
            bytes: decoder.frame_bytes,
            slots: decoder.slots,
            once: program.once.clone(),
            columns: nest.columns,
        };
        Ok(Epilogue { nest, reads, writes, program, layout, tile_rows })
    }

    /// As [`Epilogue::run`] where the panel's product lies apart, in rows of `columns`, and not in the result.
    pub fn run_apart(
        &self,
        bound: &Bound,
        m: usize,
        panel: Panel,
        product: *mut u8,
        columns: usize,
    ) {
        let row = panel.batch * m + panel.row;
        let before = (row * columns + panel.column) * self.writes[0].size;
        let mut bound = bound.clone();
        if let Some(last) = bound.reads.last_mut() {
            *last = product.wrapping_sub(before);
        }
        self.run(&bound, m, panel);
    }

    /// Works on one finished panel of a result of `m` rows a batch.
    pub fn run(&self, bound: &Bound, m: usize, panel: Panel) {
        let e = self;
        let mut frame = Frame::new(&e.layout, &e.reads, &e.writes, bound, 64);
        let mut row = panel.row;
        while row < panel.row + panel.rows {
            let rows = (panel.row + panel.rows - row).min(e.tile_rows);
            frame.go_to_row(panel.batch * m + row, &e.nest.outer);
            let mut column = panel.column;
            let most = if e.tile_rows > 1 { panel.columns } else { BLOCK };
            let first = panel.columns.min(most);
            frame.tile = Tile { rows, columns: first, first_column: column };
            frame.run(&e.program.tile);
            while column < panel.column + panel.columns {
                let columns = (panel.column + panel.columns - column).min(most);
                frame.tile = Tile { rows, columns, first_column: column };
                frame.aim(&e.program.drains);
                frame.run(&e.program.block);
                for drain in &e.program.drains {
                    if let Drain::Store { write, slot, .. } = *drain {
                        frame.store(write, slot);
                    }
                }
                column += columns;
            }
            row += rows;
        }
    }

    pub fn code_bytes(&self) -> usize {
        (self.program.block.len() + self.program.tile.len()) * 48
    }

    pub fn bind(
        &self,
        buffers: &[DevicePtr],
        kernel: &str,
    ) -> Result<(&Epilogue, Bound), LaunchError> {
        Ok((self, bind_all(&self.reads, &self.writes, buffers, kernel)?))
    }
}

/// The product is read from the result's own place.
fn read_product(inst: &LoopInst, product: u32) -> LoopInst {
    match inst {
        LoopInst::Kept { slot: 0, dtype } => {
            LoopInst::Scalar(Inst::Input { input: product, dtype: *dtype })
        }
        other => other.clone(),
    }
}
