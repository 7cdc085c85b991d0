import { pathToFileURL } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { isThrownByUs, placeOfThrow } from "./source-place.ts";

vi.mock("./package-file.ts", () => ({ packageFile: (name: string) => `${root}/${name}` }));

/** A folder as people have them: its address in a stack has other characters than its path. */
const { root } = vi.hoisted(() => ({ root: "/home/Zoë/my work (1)/turnwright" }));

/** What was thrown there, as Node writes it where the module is an ES module or a CommonJS one. */
function thrownAt(...places: readonly string[]): Error {
  const lines = places.map((place) => `    at ${place}\n`).join("");
  return Object.assign(new Error("no"), { stack: `Error: no\n${lines}` });
}

const addressOf = (file: string): string => pathToFileURL(file).href;

describe("in a folder whose name is written otherwise in an address", () => {
  const ours = `${root}/dist/chunks/main-3.js`;
  const theirs = "/home/Zoë/my work (1)/my lamps.js";

  test.each([
    ["a module", `async run (${addressOf(ours)}:7:3)`],
    ["a module without a function", `${addressOf(ours)}:7:3`],
    ["a module without a function, awaited", `async ${addressOf(ours)}:7:3`],
    ["a CommonJS module", `new Run [as run] (${ours}:7:3)`],
    ["a CommonJS module without a function", `${ours}:7:3`],
  ])("what we threw is ours: %s", (_, place) => {
    const error = thrownAt(place, "node:internal/process/task_queues:95:5");
    expect(isThrownByUs(error)).toBe(true);
    expect(placeOfThrow(error)).toBeUndefined();
  });

  test.each([
    ["a module", `lamps.open (${addressOf(theirs)}:5:9)`],
    ["a CommonJS module", `Object.<anonymous> (${theirs}:5:9)`],
    ["a CommonJS module without a function", `${theirs}:5:9`],
  ])("somebody else's place has their file's name: %s", (_, place) => {
    const error = thrownAt(place, `run (${addressOf(ours)}:7:3)`);
    expect(placeOfThrow(error)).toBe("my lamps.js:5");
    expect(isThrownByUs(error)).toBe(false);
  });
});
