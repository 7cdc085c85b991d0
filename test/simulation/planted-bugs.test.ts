import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
// @ts-expect-error The script that plants them has no types.
import { bugs, queueBugs } from "./planted-bugs.mjs";

type PlantedBug = readonly [what: string, file: string, from: string, to: string];

test.each([...(bugs as PlantedBug[]), ...(queueBugs as PlantedBug[])])(
  "it can be planted that %s: there is one place for it",
  async (_, file, from, to) => {
    const source = await readFile(new URL(`../../src/${file}`, import.meta.url), "utf8");
    expect(source.split(from)).toHaveLength(2);
    expect(source.replace(from, to)).not.toBe(source);
  },
);
