import { describe, expect, test } from "vitest";
import { createSeededRandom } from "../../src/environment/seeded-random.ts";
import { type Files, readText, writeAll } from "../../src/run/disk/files.ts";
import { fakeMachine } from "../../src/run/machine.fixture.ts";
import { packRun, unpackRun } from "../../src/run/gzip/pack-run.ts";
import { withPacked } from "../../src/run/gzip/stored-files.ts";
import { type DiskFault, MemoryDisk, ProcessDeath } from "./memory-disk.ts";

const dir = "/run";
const contents: Readonly<Record<string, string>> = {
  "samples.jsonl": '{"rolloutId":"a"}\n'.repeat(3),
  "recording.jsonl": '{"rolloutId":"torn',
};
const calls = { pack: packRun, unpack: unpackRun };

/** Makes a disk with a run on it, all of it synced. */
async function createRunDisk(): Promise<{ readonly disk: MemoryDisk; readonly files: Files }> {
  const disk = new MemoryDisk(() => 0);
  const files = disk.files(() => undefined);
  for (const [name, text] of Object.entries({ ...contents, "run.json": "{}\n" })) {
    const file = await files.open(`${dir}/${name}`, "create");
    await writeAll(file, Buffer.from(text), 0);
    await file.sync();
    await file.close();
  }
  await files.syncFolder(dir);
  return { disk, files };
}

/** Checks that a reader finds each file's content. */
async function expectContents(files: Files): Promise<void> {
  for (const [name, text] of Object.entries(contents)) {
    expect(await readText(withPacked(files), `${dir}/${name}`), name).toBe(text);
  }
}

/** The options of the process with this pid, which alone runs. */
function processOf(files: Files, pid: number) {
  return { files, lock: { machine: fakeMachine({ pid }) } };
}

describe.each(["process", "machine"] as const)("packing when the %s dies", (what) => {
  test.each(["pack", "unpack"] as const)(
    "%s loses nothing at any call, and the next one completes it",
    async (doing) => {
      let deaths = 0;
      for (let fatal = 1; ; fatal++) {
        const { disk, files } = await createRunDisk();
        if (doing === "unpack") await packRun(dir, processOf(files, 1));
        let count = 0;
        const fault = (): DiskFault => (++count >= fatal ? "crash" : undefined);
        const outcome = await calls[doing](dir, processOf(disk.files(fault), 2)).catch(
          (error: unknown) => error,
        );
        if (count < fatal) {
          expect(outcome).toHaveLength(2);
          break;
        }
        // A second error may come from the lock, which the dead process cannot release.
        const { error = outcome } = outcome as { readonly error?: unknown };
        expect(error).toBeInstanceOf(ProcessDeath);
        deaths += 1;
        if (what === "machine") disk.crash(createSeededRandom(`${fatal}`));
        await expectContents(files);
        await calls[doing](dir, processOf(files, 3));
        await expectContents(files);
        const ending = doing === "pack" ? ".gz" : "";
        const left = Object.keys(contents).map((name) => `${name}${ending}`);
        // The lock keeps drafts of dead processes for a while.
        const found = disk.namesIn(dir).filter((name) => !name.startsWith("run.lock."));
        expect(found.toSorted()).toEqual([...left, "run.json"].toSorted());
      }
      expect(deaths).toBeGreaterThan(30);
    },
  );
});
