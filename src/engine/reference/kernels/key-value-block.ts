import { padToPanel, PANEL_ROW_BYTES } from "./multiply.ts";

/**
 * The number of positions in a block of the cache.
 *
 * For each layer and each head of keys and values, the cache has two parts of memory, one after the other:
 *
 * - The keys of all blocks. A block is one panel of its positions, `[headSize][16]`, so that a query times a block is a
 *   product with packed weights.
 * - The values of all blocks. A block is several panels of 16 elements, `[headSize / 16][16][16]`, so that the weighted
 *   sum of its values is such a product too. The last panel may be half empty.
 *
 * Attention reads a block from its start to its end. The blocks of a sequence are mostly consecutive, so attention
 * reads one part of memory sequentially.
 */
export const BLOCK_POSITIONS = 16;

/** Returns the bytes of one head's keys, or values, in a block. */
export function headPartBytes(headSize: number): number {
  return padToPanel(headSize) * BLOCK_POSITIONS * 4;
}

/** Bytes between consecutive elements of a key. */
export const KEY_ELEMENT_STRIDE = BLOCK_POSITIONS * 4;

/** Bytes between the panels of a block's values. */
export const VALUE_PANEL_STRIDE = BLOCK_POSITIONS * PANEL_ROW_BYTES;

/** Returns the offset of a position's key within a block's keys, in bytes. */
export function keyOffset(position: number): number {
  return (position % BLOCK_POSITIONS) * 4;
}

/** Returns the offset of a position's value within a block's values, in bytes. */
export function valueOffset(position: number): number {
  return (position % BLOCK_POSITIONS) * PANEL_ROW_BYTES;
}
