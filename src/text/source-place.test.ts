import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { SourcePlaces } from "./source-place.ts";

/** A folder as people have them: its address in a stack has other characters than its path. */
const root = "/home/Zoë/my work (1)/turnwright";
const places = new SourcePlaces((name) => `${root}/${name}`);

/** The stack of an error thrown there, as Node writes it for ES modules and for CommonJS ones. */
function stackAt(...lines: readonly string[]): string {
  return `Error: no\n${lines.map((place) => `    at ${place}\n`).join("")}`;
}

const addressOf = (file: string): string => pathToFileURL(file).href;

describe("in a folder with a name that URLs escape", () => {
  const ours = `${root}/dist/chunks/main-3.js`;
  const theirs = "/home/Zoë/my work (1)/my lamps.js";

  test.each([
    ["a module", `async run (${addressOf(ours)}:7:3)`],
    ["a module without a function", `${addressOf(ours)}:7:3`],
    ["a module without a function, awaited", `async ${addressOf(ours)}:7:3`],
    ["a CommonJS module", `new Run [as run] (${ours}:7:3)`],
    ["a CommonJS module without a function", `${ours}:7:3`],
  ])("our own error is ours: %s", (_, place) => {
    const stack = stackAt(place, "node:internal/process/task_queues:95:5");
    expect(places.isOurs(stack)).toBe(true);
    expect(places.foreignPlace(stack)).toBeUndefined();
  });

  test.each([
    ["a module", `lamps.open (${addressOf(theirs)}:5:9)`],
    ["a CommonJS module", `Object.<anonymous> (${theirs}:5:9)`],
    ["a CommonJS module without a function", `${theirs}:5:9`],
  ])("a foreign place has its file's name: %s", (_, place) => {
    const stack = stackAt(place, `run (${addressOf(ours)}:7:3)`);
    expect(places.foreignPlace(stack)).toBe("my lamps.js:5");
    expect(places.isOurs(stack)).toBe(false);
  });
});
