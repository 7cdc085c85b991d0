import { appendFile, cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { writeSoundRun } from "./sound-run.fixture.ts";
import { auditFolder, verifyRun } from "./verify-run.ts";

let scratch = "";
let sound = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-audit-live-"));
  sound = path.join(scratch, "sound");
  await writeSoundRun(sound);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const lists = {
  episodes: "episodes.jsonl",
  samples: "samples.jsonl",
  slime: "samples.slime.jsonl",
  events: "events.jsonl",
} as const;

/** A line of one of them. */
type Row = Readonly<Record<string, unknown>>;

async function rowsOf(name: string): Promise<readonly Row[]> {
  const lines = (await readFile(path.join(sound, name), "utf8")).split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Row);
}

/** Puts a run on the disk again as it was written, a step at a time. */
async function writeAgain(dir: string): Promise<readonly (() => Promise<void>)[]> {
  const [started, ...events] = await rowsOf(lists.events);
  const samples = await rowsOf(lists.samples);
  const episodes = await rowsOf(lists.episodes);
  const slime = await rowsOf(lists.slime);
  const summary = await readFile(path.join(sound, "summary.json"), "utf8");
  await mkdir(dir);
  await cp(path.join(sound, "run.json"), path.join(dir, "run.json"));
  const textOf = (rows: readonly Row[]): string =>
    rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  const append = async (name: string, text: string) => await appendFile(path.join(dir, name), text);
  const replace = async (name: string, text: string) => {
    await writeFile(path.join(dir, `${name}.next`), text);
    await rename(path.join(dir, `${name}.next`), path.join(dir, name));
  };
  await append(lists.samples, "");
  await append(lists.episodes, "");
  await append(lists.events, textOf([started!]));
  /** A concurrent reader may see only its first part. */
  const inParts = (name: string, text: string) => {
    const half = Math.floor(text.length / 2);
    return [
      async () => await append(name, text.slice(0, half)),
      async () => await append(name, text.slice(half)),
    ];
  };
  return [
    ...events.slice(0, -1).flatMap((event) => {
      const isOf = (row: Row): boolean => row["rolloutId"] === event["rolloutId"];
      return [
        ...inParts(lists.samples, textOf(samples.filter((row) => isOf(row)))),
        ...inParts(lists.episodes, textOf(episodes.filter((row) => isOf(row)))),
        ...inParts(lists.events, textOf([event])),
      ];
    }),
    async () => await replace(lists.samples, textOf(samples)),
    async () => await replace(lists.slime, textOf(slime)),
    ...inParts(lists.events, textOf(events.slice(-1))),
    async () => await replace("summary.json", summary),
  ];
}

describe("a run that is being played", () => {
  test.each([1, 3])(
    "is sound during writes: %j writes at each read of the disk",
    async (writesALook) => {
      for (let writesBefore = 0, isOver = false; !isOver; writesBefore += 1) {
        const dir = path.join(scratch, `live-${writesALook}-${writesBefore}`);
        const writes = [...(await writeAgain(dir))];
        for (const write of writes.splice(0, writesBefore)) await write();
        isOver = writes.length === 0;
        const goOn = async () => {
          for (const write of writes.splice(0, writesALook)) await write();
        };
        const files: Files = {
          ...diskFiles,
          async open(name, mode) {
            await goOn();
            const file = await diskFiles.open(name, mode);
            return {
              ...file,
              read: async (into, position) => {
                await goOn();
                return await file.read(into, position);
              },
            };
          },
          async facts(name) {
            await goOn();
            return await diskFiles.facts(name);
          },
        };
        expect((await auditFolder(files, dir)).violations, `${writesBefore} before`).toEqual([]);
        for (const write of writes) await write();
        expect(await verifyRun(dir)).toMatchObject({ isFinished: true, violations: [] });
        await rm(dir, { recursive: true });
      }
    },
  );

  test("is sound after a kill at any place, and reports the rest", async () => {
    const dir = path.join(scratch, "killed");
    const [half, rest, halfEpisode, restOfEpisode] = await writeAgain(dir);
    const expectFound = async (found: object) =>
      expect(await verifyRun(dir)).toMatchObject({ isFinished: false, violations: [], ...found });
    await half!();
    await expectFound({ samples: 0, episodes: 0 });
    await rest!();
    await expectFound({ samples: 1, episodes: 0 });
    await halfEpisode!();
    await expectFound({ samples: 1, episodes: 0 });
    await restOfEpisode!();
    await expectFound({ samples: 1, episodes: 1 });
  });
});
