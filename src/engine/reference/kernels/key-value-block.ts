import { padToPanel, PANEL_ROW_BYTES } from "./multiply.ts";

/**
 * How the cache keeps keys and values: in blocks of 16 positions. For each layer and each head of
 * keys and values there are two parts of memory, one behind the other,
 *
 * - the keys of all blocks, a block as a panel of its positions, `[headSize][16]`, so that a query
 *   times a block is a product with packed weights;
 * - the values of all blocks, a block as panels of 16 elements, `[headSize / 16][16][16]`, so that
 *   the weighted sum of a block's values is one too. A last panel may be half empty.
 *
 * Attention reads a block from its start to its end. A sequence mostly has consecutive blocks: it
 * reads on and on in one part, as fast as the machine's memory goes.
 */
export const BLOCK_POSITIONS = 16;

/** Bytes of one head's keys, or of its values, in a block. */
export function headPartBytes(headSize: number): number {
  return padToPanel(headSize) * BLOCK_POSITIONS * 4;
}

/** Bytes between a key's consecutive elements. */
export const KEY_ELEMENT_STRIDE = BLOCK_POSITIONS * 4;

/** Bytes between the panels of a block's values. */
export const VALUE_PANEL_STRIDE = BLOCK_POSITIONS * PANEL_ROW_BYTES;

/** Where, within a block's keys, the key of a position starts. */
export function keyOffset(position: number): number {
  return (position % BLOCK_POSITIONS) * 4;
}

/** Where, within a block's values, the value of a position starts. */
export function valueOffset(position: number): number {
  return (position % BLOCK_POSITIONS) * PANEL_ROW_BYTES;
}
