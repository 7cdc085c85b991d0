import { UsageError } from "../../../errors.ts";

/** A compiled module. Threads may share it. */
export interface WasmModule {
  readonly [Symbol.toStringTag]: string;
}

/** Memory that threads share. */
export interface WasmMemory {
  readonly buffer: SharedArrayBuffer;
}

/** Bytes in a page of memory. */
export const PAGE_BYTES = 65_536;

/** The part of the WebAssembly API that is used. Node's types lack it. */
interface WebAssemblyApi {
  compile(bytes: Uint8Array<ArrayBuffer>): Promise<WasmModule>;
  readonly Memory: new (descriptor: {
    initial: number;
    maximum: number;
    shared: true;
  }) => WasmMemory;
  readonly Instance: new (
    module: WasmModule,
    imports: { readonly env: { readonly memory: WasmMemory } },
  ) => { readonly exports: unknown };
}

const { WebAssembly } = globalThis as unknown as { WebAssembly: WebAssemblyApi };

/** Compiles a module off the calling thread. */
export async function compileModule(bytes: Uint8Array<ArrayBuffer>): Promise<WasmModule> {
  return await WebAssembly.compile(bytes);
}

/**
 * Reserves shared memory of a fixed size. The machine allocates pages when they are first used.
 *
 * @throws UsageError if the memory cannot be reserved.
 */
export function createSharedMemory(pages: number): WasmMemory {
  try {
    return new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(
      `Cannot reserve ${(pages * PAGE_BYTES) / 2 ** 20} MiB of memory for weights and cache: ` +
        "the machine lacks it, expected a lower kvMemoryBytes or a smaller model",
      { cause: error },
    );
  }
}

/** Instantiates a module over a memory and returns its exports. */
export function instantiate(module: WasmModule, memory: WasmMemory): unknown {
  return new WebAssembly.Instance(module, { env: { memory } }).exports;
}
