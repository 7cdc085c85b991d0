const ALIGNMENT = 64;

/** Assigns consecutive addresses. */
export interface Allocator {
  readonly floats: (count: number) => number;
  readonly bytes: (count: number) => number;
  readonly end: number;
}

/** Creates an allocator. Addresses are multiples of 64. */
export function createAllocator(): Allocator {
  // Address 0 stays unused.
  let end = ALIGNMENT;
  const bytes = (count: number): number => {
    const address = end;
    end = Math.ceil((end + count) / ALIGNMENT) * ALIGNMENT;
    return address;
  };
  return {
    bytes,
    floats: (count) => bytes(count * 4),
    get end() {
      return end;
    },
  };
}
