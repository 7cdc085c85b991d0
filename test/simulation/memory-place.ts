import type { SharedPlace } from "../../src/queue/place/shared-place.ts";
import type { SimulatedProcess } from "./simulated-process.ts";

/** Files that all processes of a simulation reach. */
export class MemoryPlace {
  readonly #files = new Map<string, Buffer>();

  /** The shared place as one process sees it; `fault` decides for each call if it fails. */
  of(process: SimulatedProcess, fault: () => boolean): SharedPlace {
    const call = async <Answer>(work: () => Answer): Promise<Answer> => {
      await process.clock.sleep(1);
      if (fault()) throw Object.assign(new Error("EIO: made up"), { code: "EIO" });
      return work();
    };
    const namesIn = (folder: string): readonly string[] =>
      [...this.#files.keys()].filter((name) => name.startsWith(`${folder}/`));
    return {
      shown: "the simulated place",
      write: async (name, bytes) => await call(() => void this.#files.set(name, bytes)),
      read: async (name) => await call(() => this.#files.get(name)),
      remove: async (name) => await call(() => void this.#files.delete(name)),
      recordings: {
        begin: async (folder) =>
          await call(() => {
            const names = namesIn(folder).toReversed();
            const earlier = names.map((name) => this.#files.get(name)!);
            const number = names.length + 1;
            const name = `${folder}/${number}`;
            this.#files.set(name, Buffer.alloc(0));
            const append = async (text: string): Promise<void> =>
              await call(() => {
                const before = this.#files.get(name);
                if (before === undefined) return;
                this.#files.set(name, Buffer.concat([before, Buffer.from(text)]));
              });
            return { number, earlier, append };
          }),
        remove: async (folder) =>
          await call(() => {
            for (const name of namesIn(folder)) this.#files.delete(name);
          }),
      },
    };
  }
}
