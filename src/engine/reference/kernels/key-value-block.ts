/**
 * How the cache keeps keys and values: in blocks of 16 positions, and in a block, for each layer and
 * each head of keys and values,
 *
 * - the keys as two panels of 8 positions, `[2][headSize][8]`, so that a query times a block is a
 *   product with packed weights;
 * - then the values as panels of 8 elements, `[headSize / 8][16][8]`, so that the weighted sum of a
 *   block's values is one too.
 */
export const BLOCK_POSITIONS = 16;

/** Bytes of one head's keys, or of its values, in a block. */
export function headPartBytes(headSize: number): number {
  return headSize * BLOCK_POSITIONS * 4;
}

/** Bytes from one head's keys to the next head's, in a block. */
export function headBlockBytes(headSize: number): number {
  return 2 * headPartBytes(headSize);
}

/** Bytes between a key's consecutive elements. */
export const KEY_ELEMENT_STRIDE = 8 * 4;

/** Bytes between the panels of a block's keys. */
export function keyPanelStride(headSize: number): number {
  return headSize * KEY_ELEMENT_STRIDE;
}

/** Bytes between the panels of a block's values. */
export const VALUE_PANEL_STRIDE = BLOCK_POSITIONS * 8 * 4;

/** Where, within a head's keys, the key of a position starts. */
export function keyOffset(position: number, headSize: number): number {
  const inBlock = position % BLOCK_POSITIONS;
  return Math.floor(inBlock / 8) * keyPanelStride(headSize) + (inBlock % 8) * 4;
}

/** Where, from the start of a head's keys, the value of a position starts. */
export function valueOffset(position: number, headSize: number): number {
  return headPartBytes(headSize) + (position % BLOCK_POSITIONS) * 8 * 4;
}
