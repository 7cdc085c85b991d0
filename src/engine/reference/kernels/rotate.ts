import type { Code } from "../wasm/instruction.ts";
import { f32x4, i32, sequence, v128 } from "../wasm/instruction.ts";
import type { FunctionScope, ModuleBuilder, Variable } from "../wasm/module-builder.ts";
import { countUp, countUpOnce } from "../wasm/module-builder.ts";
import { KEY_ELEMENT_STRIDE, VALUE_PANEL_STRIDE } from "./key-value-block.ts";
import type { KernelShape } from "./kernel-shape.ts";
import { padToPanel, PANEL_ROW_BYTES } from "./multiply.ts";

/**
 * Bytes of one entry of the table of rows: the addresses of the row's cosines and sines, of its key
 * and of its value in the first layer's first head, and the number of positions that it sees.
 */
export const ROW_ENTRY_BYTES = 16;

const VECTOR_BYTES = 16;

/**
 * Adds the kernel `rotate(x, rows, table, queries, queryHeadStride, layerOffset, headStride)`.
 *
 * Its input rows contain queries, keys and values, rounded up to full panels. The kernel rotates
 * queries and keys by the angles of their positions. It groups the queries of the heads that share
 * keys, `queries[keyValueHead][row][head in group][headSize]`, and copies keys and values to their
 * blocks.
 *
 * `layerOffset` is the offset of the layer's parts. `headStride` is the distance between the parts
 * of two heads.
 *
 * **Source:** Su et al., "RoFormer", 2021, with halves paired as in huggingface/transformers
 * src/transformers/models/llama/modeling_llama.py (rotate_half).
 */
export function addRotate(module: ModuleBuilder, shape: KernelShape): void {
  const { headSize, keyValueHeadCount, groupSize } = shape;
  module.add({
    name: "rotate",
    parameters: {
      x: "i32",
      rows: "i32",
      table: "i32",
      queries: "i32",
      queryHeadStride: "i32",
      layerOffset: "i32",
      headStride: "i32",
    },
    body(scope, p) {
      const [row, head, inGroup, to, group] = scope.locals("i32", "i32", "i32", "i32", "i32");
      const [angles, key, value] = scope.locals("i32", "i32", "i32");
      const heads = i32.constant(keyValueHeadCount);
      const nextHead = p.x.increase(headSize * 4);
      const rowSize = keyValueHeadCount * (groupSize + 2) * headSize;
      const nextRow = p.x.increase((padToPanel(rowSize) - rowSize) * 4);
      const entry = (offset: number): Code =>
        i32.add(i32.load(p.table.get, offset), p.layerOffset.get);
      const fromZero = (counter: Variable, end: Code, ...body: readonly Code[]): Code =>
        sequence(counter.set(i32.constant(0)), countUp(counter, { end, step: 1 }, ...body));
      const queries = sequence(
        group.set(p.queries.get),
        fromZero(
          head,
          heads,
          to.set(group.get),
          fromZero(
            inGroup,
            i32.constant(groupSize),
            turnQuery(scope, { from: p.x, angles, to, headSize }),
            nextHead,
            to.increase(headSize * 4),
          ),
          group.increase(p.queryHeadStride.get),
        ),
      );
      const keys = fromZero(
        head,
        heads,
        turnKey(scope, { from: p.x, angles, to: key, headSize }),
        nextHead,
        key.increase(p.headStride.get),
      );
      const values = fromZero(
        head,
        heads,
        copyValue({ from: p.x, to: value, headSize }),
        nextHead,
        value.increase(p.headStride.get),
      );
      return countUp(
        row,
        { end: p.rows.get, step: 1 },
        angles.set(i32.load(p.table.get)),
        key.set(entry(4)),
        value.set(entry(8)),
        queries,
        keys,
        values,
        nextRow,
        p.queries.increase(groupSize * headSize * 4),
        p.table.increase(ROW_ENTRY_BYTES),
      );
    },
  });
}

interface Turn {
  readonly from: Variable;
  /** Cosines of half a head, then sines. */
  readonly angles: Variable;
  readonly to: Variable;
  readonly headSize: number;
}

/**
 * Runs `store` with four rotated elements of each half. `at` is the offset of the first, in bytes.
 */
function turn(
  scope: FunctionScope,
  { from, angles, headSize }: Turn,
  store: (at: Variable, low: Code, high: Code) => Code,
): Code {
  const halfBytes = headSize * 2;
  const at = scope.local("i32");
  const [low, high, cosine, sine] = scope.locals("v128", "v128", "v128", "v128");
  const here = (pointer: Variable): Code => i32.add(pointer.get, at.get);
  return sequence(
    at.set(i32.constant(0)),
    countUpOnce(
      at,
      { end: i32.constant(halfBytes), step: 16 },
      low.set(v128.load(here(from))),
      high.set(v128.load(here(from), halfBytes)),
      cosine.set(v128.load(here(angles))),
      sine.set(v128.load(here(angles), halfBytes)),
      store(
        at,
        f32x4.subtract(f32x4.multiply(low.get, cosine.get), f32x4.multiply(high.get, sine.get)),
        f32x4.add(f32x4.multiply(high.get, cosine.get), f32x4.multiply(low.get, sine.get)),
      ),
    ),
  );
}

function turnQuery(scope: FunctionScope, query: Turn): Code {
  return turn(scope, query, (at, low, high) => {
    const to = i32.add(query.to.get, at.get);
    return sequence(v128.store(to, low), v128.store(to, high, query.headSize * 2));
  });
}

/** Rotates a key. Its elements are spread, with those of the other 16 positions in between. */
function turnKey(scope: FunctionScope, key: Turn): Code {
  const to = scope.local("i32");
  const [low, high] = scope.locals("v128", "v128");
  const highOffset = (key.headSize / 2) * KEY_ELEMENT_STRIDE;
  const store = (four: Variable, offset: number): Code =>
    sequence(
      ...[0, 1, 2, 3].map((lane) =>
        v128.storeLane(to.get, four.get, { lane, offset: offset + lane * KEY_ELEMENT_STRIDE }),
      ),
    );
  return sequence(
    to.set(key.to.get),
    turn(scope, key, (_at, lowFour, highFour) =>
      sequence(
        low.set(lowFour),
        high.set(highFour),
        store(low, 0),
        store(high, highOffset),
        to.increase(4 * KEY_ELEMENT_STRIDE),
      ),
    ),
  );
}

/** Copies a value to panels of 16 elements. The value may fill only half of the last panel. */
function copyValue({
  from,
  to,
  headSize,
}: {
  from: Variable;
  to: Variable;
  headSize: number;
}): Code {
  return sequence(
    ...Array.from({ length: (headSize * 4) / VECTOR_BYTES }, (_, index) => {
      const offset = index * VECTOR_BYTES;
      const panel = Math.floor(offset / PANEL_ROW_BYTES);
      const target = panel * VALUE_PANEL_STRIDE + (offset % PANEL_ROW_BYTES);
      return v128.store(to.get, v128.load(from.get, offset), target);
    }),
  );
}
